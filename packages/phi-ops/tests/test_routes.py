"""The short way of eager execution gives what the long way gives, and is not taken where it would not."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy_phi_ops import get_operator
from argosy_phi_ops.context import set_grad_enabled
from argosy_phi_ops.eager.dispatch import Interpreter, layer
from argosy_phi_ops.eager.table import ApplicationTable, forget
from argosy_phi_ops.errors import OperatorError
from argosy_tensorcore.dtype import default_dtype, set_default_dtype
from argosy_tensorcore.tensor import Tensor

BINARY = ("add", "subtract", "multiply", "divide", "maximum", "less_than", "floor_divide", "pow", "atan2", "equal")
UNARY = ("exp", "neg", "relu", "floor", "abs", "sigmoid", "assign", "isnan")


def twice(name, *args, **kwargs):
    """The result of the long way and that of the call after it, which may be the short one."""
    forget()
    op = get_operator(name)
    first = op(*args, **kwargs)
    return first, op(*args, **kwargs)


def agree(first, second):
    assert first.dtype is second.dtype
    assert first.shape == second.shape
    assert first.stop_gradient == second.stop_gradient
    assert (first._node is None) == (second._node is None)
    np.testing.assert_array_equal(first.numpy(), second.numpy())


@settings(deadline=None)
@given(
    name=st.sampled_from(BINARY),
    shapes=st.sampled_from([((), ()), ((3,), ()), ((3,), (3,)), ((2, 1), (3,)), ((0,), (1,))]),
    dtypes=st.sampled_from(["ff", "dd", "ii", "fd"]),
    wants=st.tuples(st.booleans(), st.booleans()),
)
def test_two_tensors_give_the_same_on_both_ways(name, shapes, dtypes, wants):
    """Of all ranks, dtypes that agree or promote, wherever gradients are wanted."""
    if name in ("atan2",) and "i" in dtypes:
        return
    operands = []
    for shape, dtype, want in zip(shapes, dtypes, wants, strict=True):
        operands.append(Tensor(np.full(shape, 2, dtype), stop_gradient=not (want and dtype != "i")))
    agree(*twice(name, *operands))


@settings(deadline=None)
@given(
    name=st.sampled_from(("add", "multiply", "divide", "maximum", "less_than", "pow")),
    dtype=st.sampled_from("fdi?"),
    number=st.sampled_from([2, 2.5, True, -0.0, float("inf"), 1 + 2j]),
)
def test_numbers_give_the_same_on_both_ways(name, dtype, number):
    """A number adapts to the tensor or raises its dtype alike, whatever number of its class came first."""
    if isinstance(number, complex) and name in ("maximum", "less_than"):
        return
    x = Tensor(np.ones(3, dtype))
    op = get_operator(name)
    forget()
    op(x, type(number)(1))
    short = op(x, number)
    forget()
    agree(op(x, number), short)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("shape", [(), (2, 3), (0,)])
@pytest.mark.parametrize("want", [False, True])
def test_one_tensor_gives_the_same_on_both_ways(name, shape, want):
    """And memory is not shared with the operand."""
    x = Tensor(np.ones(shape, np.float32), stop_gradient=not want)
    first, second = twice(name, x)
    agree(first, second)
    assert not np.may_share_memory(second.payload.ndarray, x.payload.ndarray)


def test_attributes_that_are_equal_but_not_the_same_are_told_apart():
    """1, True and 1.0; 0.0 and -0.0."""
    x = Tensor(np.array([[1, 2], [3, 4]], np.float32))
    total = get_operator("sum")
    assert total(x, 1).tolist() == [3, 7]
    assert total(x, axis=1, keepdim=True).tolist() == [[3], [7]]
    assert total(x, axis=1, keepdim=False).tolist() == [3, 7]
    full = get_operator("full_like")
    assert not np.signbit(full(x, 0.0).numpy()).any()
    assert np.signbit(full(x, -0.0).numpy()).all()


def test_views_of_the_short_way_share_memory_and_versions():
    """reshape and getitem give views, also the second time."""
    x = Tensor(np.arange(6, dtype=np.float32))
    for _ in range(2):
        view = get_operator("reshape")(x, [2, 3])
        assert view.payload.shares_storage(x.payload)
    row = x[1:3]
    row = x[1:3]
    row.set_value(np.zeros(2, np.float32))
    assert x.tolist() == [0, 0, 0, 3, 4, 5]
    assert x.inplace_version == 1


def test_errors_of_operands_are_explained_on_both_ways():
    """Shapes that do not fit never have a route."""
    x, y = Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((2, 3), np.float32))
    for _ in range(2):
        with pytest.raises(OperatorError, match="matmul"):
            get_operator("matmul")(x, y)
        with pytest.raises(TypeError):
            get_operator("add")(x)


def test_layers_see_what_has_a_route():
    """An operator that was applied before still goes through a layer that is pushed."""
    seen = []

    class Watch(Interpreter):
        def process(self, op, operands, attributes, below):
            seen.append(op.name)
            return below(op, operands, attributes)

    x = Tensor(np.ones(3, np.float32))
    for _ in range(2):
        x + x, x.exp(), x.sum(), x * 2.0
    with layer(Watch()):
        x + x, x.exp(), x.sum(), x * 2.0
    assert seen == ["add", "exp", "sum", "multiply"]


def test_nothing_is_recorded_while_gradients_are_off():
    """On the short way, too."""
    x = Tensor(np.ones(3, np.float32), stop_gradient=False)
    x + x, x.exp(), x.sum()
    previous = set_grad_enabled(False)
    try:
        made = [x + x, x.exp(), x.sum()]
    finally:
        set_grad_enabled(previous)
    assert all(y.stop_gradient and y._node is None for y in made)


def test_a_new_default_dtype_is_respected():
    """What was planned under the old one is forgotten."""
    x = Tensor(np.ones(3, np.int64))
    before = default_dtype()
    try:
        for name in ("float32", "float64", "float32"):
            set_default_dtype(name)
            assert (x + 0.5).dtype.name == name
            assert (x + 0.5).dtype.name == name
            assert get_operator("exp")(x).dtype.name == name
    finally:
        set_default_dtype(before)


def test_threads_share_routes():
    """Applications at the same time give right results."""
    x = Tensor(np.full(20_000, 3, np.float32))
    x + x
    wrong = []

    def work():
        for _ in range(200):
            if (x + x).payload.ndarray[-1] != 6:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_overflow_is_quiet():
    """IEEE results are what is meant: no warning (the test run turns warnings into errors)."""
    x = Tensor(np.full(3, 3e38, np.float32))
    for _ in range(2):
        assert (x + x).numpy().tolist() == [float("inf")] * 3
        assert (x * 1e30).numpy().tolist() == [float("inf")] * 3


@settings(deadline=None)
@given(
    rows=st.integers(1, 4),
    classes=st.integers(1, 5),
    ignored=st.sampled_from([-100, 0, 2]),
    labels=st.lists(st.sampled_from([-100, -1, 0, 1, 2, 7]), min_size=4, max_size=4),
    scale=st.sampled_from([1.0, 100.0]),
)
def test_the_specialised_loss_is_that_of_the_decomposition(rows, classes, ignored, labels, scale):
    """Labels that are ignored included."""
    x = Tensor(np.random.default_rng(rows).standard_normal((rows, classes)) * scale)
    label = Tensor(np.array([each if each == ignored else each % classes for each in labels[:rows]]))
    first, second = twice("cross_entropy", x, label, ignore_index=ignored)
    np.testing.assert_allclose(second.numpy(), first.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_specialised_gelu_is_that_of_the_decomposition(dtype):
    """By tanh, to rounding."""
    x = Tensor(np.linspace(-12, 12, 50).astype(dtype))
    first, second = twice("gelu", x, True)
    np.testing.assert_allclose(second.numpy(), first.numpy(), rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("queries", [1, 4, 6])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3}, {"is_causal": True, "training": False}])
def test_the_specialised_attention_is_that_of_the_decomposition(dtype, queries, options):
    """With fewer, as many and more queries than keys; also of views."""
    rng = np.random.default_rng(1)
    query, key, value = (
        Tensor(rng.standard_normal(shape).astype(dtype).swapaxes(1, 2))
        for shape in ((2, 3, queries, 5), (2, 3, 4, 5), (2, 3, 4, 2))
    )
    first, second = twice("scaled_dot_product_attention", query, key, value, **options)
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(second.numpy(), first.numpy(), rtol=tolerance, atol=tolerance)
    assert first.dtype is second.dtype


@pytest.mark.parametrize(("name", "shapes"), [("matmul", [(2, 3), (3, 4)]), ("relu", [(3,)]), ("sum", [(2, 3)])])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_specialised_kernels_are_those_of_the_operator(name, shapes, dtype):
    """Small integers, so that every order of summation agrees; also of views."""
    rng = np.random.default_rng(0)
    operands = [Tensor(rng.integers(-9, 9, shape[::-1]).astype(dtype).T) for shape in shapes]
    agree(*twice(name, *operands))


def test_a_table_makes_room_while_finalisers_fill_it():
    """Garbage is collected wherever objects are made, and what is called then, or on another thread meanwhile, may
    have applications of its own to keep."""
    table = ApplicationTable(limit=8000)  # more pairs than CPython has in store: making them collects garbage

    class Garbage:
        def __init__(self):
            self.itself = self

        def __del__(self):
            if before:
                table.by_key[object()] = None
                Garbage()

    before = gc.get_threshold()
    table.by_key.update({i: object() for i in range(table.limit)})
    Garbage()
    try:
        gc.set_threshold(1)
        table.keep("the last", "application")
    finally:
        gc.set_threshold(*before)
        before = ()
    assert table.by_key["the last"] == "application"
    assert len(table.by_key) < table.limit
