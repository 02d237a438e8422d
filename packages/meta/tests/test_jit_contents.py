"""Python objects that a captured function reads and that are changed in place: the next call sees the change."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import argosy as paddle
from argosy import nn
from argosy.jit.contents import content_check


def _ones():
    return np.ones(3, np.float32)


ARRAY, ARRAYS, TABLE, BYTES = _ones(), [_ones()], {"a": _ones()}, bytearray(b"\1")


class Holder(nn.Layer):
    shared = _ones()

    def __init__(self):
        super().__init__()
        self.array, self.nest = _ones(), {"k": [_ones()]}

    def forward(self, x):
        return x * self.array * self.nest["k"][0] * self.shared


def closure():
    array = _ones()
    return lambda x: x * array, lambda: array.__setitem__(0, 5)


def large():
    array = np.ones((1 << 19, 3), np.float32)
    return lambda x: x * float(array[77, 1]), lambda: array.__setitem__((77, 1), 5)


def view():
    base = np.ones((3, 2), np.float32)
    array = base[:, 0]
    return lambda x: x * array, lambda: base.__setitem__((0, 0), 5)


def of_globals():
    ARRAY[:] = ARRAYS[0][:] = TABLE["a"][:] = BYTES[0] = 1

    def f(x):
        return x * ARRAY * ARRAYS[0] * TABLE["a"] * BYTES[0]

    return f, [
        lambda: ARRAY.__setitem__(0, 5),
        lambda: ARRAYS[0].__setitem__(0, 6),
        lambda: TABLE["a"].__setitem__(0, 7),
        lambda: BYTES.__setitem__(0, 8),
    ]


def of_a_layer():
    layer = Holder()
    Holder.shared[:] = 1
    changes = [
        lambda: layer.array.__setitem__(0, 5),
        lambda: layer.nest["k"][0].__setitem__(1, 3),
        lambda: Holder.shared.__setitem__(2, 2),
    ]
    return layer.forward, changes


def of_defaults():
    def f(x, array=_ones(), *, scale=[1.0], other=_ones()):  # noqa: B006, B008
        return x * array * scale[0] * other

    return f, [
        lambda: f.__defaults__[0].__setitem__(0, 5),
        lambda: f.__kwdefaults__["scale"].__setitem__(0, 2.0),
        lambda: f.__kwdefaults__["other"].__setitem__(1, 3),
    ]


def of_a_partial():
    array = _ones()
    return partial(lambda x, a: x * a, a=array), lambda: array.__setitem__(0, 5)


def of_objects():
    space, thing = SimpleNamespace(array=_ones()), type("Thing", (), {})()
    thing.array = _ones()
    return lambda x: x * space.array * thing.array, [
        lambda: space.array.__setitem__(0, 5),
        lambda: thing.array.__setitem__(0, 5),
        lambda: setattr(thing, "array", np.zeros(3, np.float32)),
    ]


def read_by_python():
    array = _ones()

    def total():
        return array.sum()

    return lambda x: x * float(total()) + paddle.to_tensor(array), lambda: array.__setitem__(0, 5)


def of_lists():
    long, arrays, nest = list(range(200)), [_ones() for _ in range(100)], [1.0, [2.0]]
    return lambda x: x * long[150] * arrays[99] * nest[1][0], [
        lambda: long.__setitem__(150, 5),
        lambda: arrays[99].__setitem__(0, 5),
        lambda: nest[1].__setitem__(0, 3.0),
    ]


def of_a_set():
    chosen = {1, 2}
    return lambda x: x * (3 if 7 in chosen else 1) * len(chosen), lambda: (chosen.add(7), chosen.remove(1))


def of_a_sublayer():
    layers = nn.LayerList([nn.Linear(3, 3)])
    layers[0].scale = [1.0]
    return lambda x: layers[0](x) * layers[0].scale[0], lambda: layers[0].scale.__setitem__(0, 5.0)


CASES = [
    closure, large, view, of_globals, of_a_layer, of_defaults, of_a_partial, of_objects, read_by_python, of_lists,
    of_a_set, of_a_sublayer,
]  # fmt: skip


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_change_in_place_is_seen(case, full_graph):
    """The captured function gives what the plain one gives, before and after each change, and compiles no more."""
    f, changes = case()
    run = paddle.jit.to_static(f, backend=None, full_graph=full_graph)
    x = paddle.arange(1, 4, dtype="float32")
    changes = changes if isinstance(changes, list) else [changes]
    for change in (lambda: None, *changes):
        change()
        with paddle.jit.count_compiles() as compiles:
            for _ in range(3):
                np.testing.assert_allclose(run(x).numpy(), f(x).numpy(), rtol=1e-6)
        assert compiles.value == 1


def test_an_array_that_each_call_changes_is_changed_by_each_call():
    """Where the graph may break, Python counts in an array as it does in a number."""
    calls = np.zeros(1, np.float32)

    def f(x):
        calls[0] += 1
        return x * float(calls[0])

    run = paddle.jit.to_static(f, full_graph=False)
    with pytest.warns(UserWarning, match="changes a number"):
        made = [float(run(paddle.ones([1]))) for _ in range(5)]
    assert made == [1, 2, 3, 4, 5]


def test_arrays_among_the_arguments_are_inputs():
    """An array that a caller fills anew for each call costs no capture for each."""
    run = paddle.jit.to_static(lambda x, rest: x * rest[0], full_graph=True)
    array = _ones()
    with paddle.jit.count_compiles() as compiles:
        for i in range(4):
            array[:] = i
            assert float(run(array, [array]).sum()) == 3 * i * i
    assert compiles.value == 1


@pytest.mark.parametrize("dtype", ["float32", "complex64", "datetime64[s]", "object", "bool"])
def test_every_bit_of_an_array_counts(dtype):
    """NaN equals itself, and a change of any element shows, be it the sign of a zero."""
    array = np.zeros((2, 3), dtype)
    if dtype == "float32":
        array[0, 0] = np.nan
    same = content_check(array)
    assert same()
    array[1, 2] = -0.0 if dtype in ("float32", "complex64") else 1
    assert not same()
    assert content_check(np.zeros((), np.int8))()
    assert content_check(np.zeros((0, 2)))()
