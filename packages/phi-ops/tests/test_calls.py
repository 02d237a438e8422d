"""How operators and composed functions are called: signatures, other names, ``out``, shared keywords, members."""

import inspect

import numpy as np
import pytest

from argosy_phi_ops.bounded_cache import BoundedCache
from argosy_phi_ops.context import context
from argosy_phi_ops.declare.composition import find_function
from argosy_phi_ops.declare.expansion import EXPANSIONS
from argosy_phi_ops.declare.index import MODULES
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.errors import OperatorError
from argosy_phi_ops.listing import methods
from argosy_phi_ops.methods import find
from argosy_tensorcore.tensor import Tensor


def test_a_signature_shows_parameters_defaults_name_and_out():
    shown = inspect.signature(get_operator("sum"))
    assert list(shown.parameters) == ["x", "axis", "dtype", "keepdim", "name", "out"]
    assert shown.parameters["keepdim"].default is False
    assert shown.parameters["out"].kind is inspect.Parameter.KEYWORD_ONLY
    assert list(inspect.signature(Tensor.add_).parameters)[:2] == ["x", "y"]
    assert "rng" not in inspect.signature(get_operator("rand")).parameters


def test_every_operator_and_function_has_a_signature():
    from argosy_phi_ops.declare.index import COMPOSED, MODULES

    for name in {**MODULES, **COMPOSED}:
        assert inspect.signature(find_function(name)) is not None


def test_out_receives_values_shape_and_dtype():
    x, out = Tensor(np.ones((2, 3))), Tensor(np.zeros(7, np.float32))
    assert get_operator("add")(input=x, other=x, out=out) is out
    assert out.shape == [2, 3]
    assert out.dtype.name == "float64"
    assert out.numpy().max() == 2
    with pytest.raises(OperatorError, match="out should hold a Tensor"):
        get_operator("add")(x, x, out=3)


@pytest.mark.parametrize("name", ["norm", "normalize", "vector_norm"])
def test_functions_with_out_put_their_result_there(name):
    x, out = Tensor(np.arange(6.0).reshape(2, 3)), Tensor(np.zeros(1))
    function = find_function(name)
    assert function(x, out=out) is out
    np.testing.assert_array_equal(out.numpy(), function(x).numpy())


def test_out_of_equal_shape_is_written_in_its_own_memory():
    x, out = Tensor(np.ones(3)), Tensor(np.zeros(3))
    shared, version = out.detach(), out.inplace_version
    get_operator("exp")(x, out=out)
    np.testing.assert_array_max_ulp(shared.numpy(), np.exp(np.ones(3)), 2)
    assert out.inplace_version == version + 1


def test_keywords_change_calls_as_they_say():
    x, y = Tensor(np.array([7.0, -7.0])), Tensor(np.array([2.0, 2.0]))
    assert get_operator("add")(x, y, alpha=3).tolist() == [13.0, -1.0]
    assert get_operator("divide")(x, y, rounding_mode="floor").tolist() == [3.0, -4.0]
    assert get_operator("divide")(x, y, rounding_mode="trunc").tolist() == [3.0, -3.0]
    assert not get_operator("zeros")([2], requires_grad=True).stop_gradient
    with pytest.raises(OperatorError, match="rounding_mode 'up'"):
        get_operator("divide")(x, y, rounding_mode="up")
    with pytest.raises(NotImplementedError, match="pinned"):
        get_operator("zeros")([2], pin_memory=True)


def test_views_share_memory_and_members_convert():
    x = Tensor(np.arange(6.0).reshape(2, 3))
    x.T[0, 1] = 9.0
    assert x[1, 0].item() == 9.0
    x.unfold(1, 2, 2)[0, 0, 1] = 8.0
    assert x[0, 1].item() == 8.0
    assert x.int().dtype.name == "int32"
    assert x.to("float32").dtype.name == "float32"
    assert x.to("cpu") is x.to(x.dtype) is x.to(x) is x.to(dtype=x.dtype) is x.astype("float64") is x
    assert x._to() is x._to("cpu", x.dtype) is x
    assert x._to(dtype="float32").dtype.name == "float32"
    assert x._to(copy_tensor=True) is not x
    for copy in (x.to("float64"), x.to(dtype="float64"), x.to("cpu", "float64"), x.to(x.dtype, copy=True)):
        assert copy.data_ptr() != x.data_ptr()  # text copies, as in Paddle
    with pytest.raises(NotImplementedError, match="a method of sparse tensors; this tensor is dense"):
        x.values()
    assert x.resize_([2]).tolist() == [0.0, 8.0]


@pytest.mark.parametrize("name", ["split", "chunk", "tensor_split", "hsplit", "unstack"])
def test_parts_have_memory_of_their_own(name):
    """As in Paddle, also the tenth time (the operator is hot then)."""
    x = Tensor(np.arange(8.0, dtype=np.float32).reshape(2, 4))
    cut = getattr(x, name)
    for _ in range(10):
        parts = cut() if name == "unstack" else cut(2)
        parts[0].zero_()
        assert x.sum().item() == 28.0
        assert sum(part.sum().item() for part in parts[1:]) > 0
    x.unbind()[0].zero_()  # whereas these are views
    assert x.sum().item() == 22.0


def test_strides_outside_the_memory_are_refused():
    with pytest.raises(ValueError, match="element 7 of a tensor of 6; elements should be from 0 to 5"):
        get_operator("as_strided")(Tensor(np.zeros(6)), [2], [7])


@pytest.mark.parametrize(
    ("name", "parameters", "mean", "variance"),
    [
        ("poisson", (3.0,), 3.0, 3.0),
        ("poisson", (40.0,), 40.0, 40.0),
        ("binomial", (20.0, 0.2), 4.0, 3.2),
        ("binomial", (100.0, 0.7), 70.0, 21.0),
        ("standard_gamma", (0.4,), 0.4, 0.4),
        ("standard_gamma", (6.0,), 6.0, 6.0),
    ],
)
def test_counts_have_the_moments_of_their_distribution(name, parameters, mean, variance):
    generator, count = context().generator, 20000
    before = generator.get_state()
    generator.manual_seed(5)
    drawn = get_operator(name)(*(Tensor(np.full(count, p)) for p in parameters)).numpy().astype(float)
    generator.set_state(before)
    assert abs(drawn.mean() - mean) < 5 * (variance / count) ** 0.5
    assert abs(drawn.var() / variance - 1) < 0.1


def test_in_place_comparisons_and_fills():
    x = Tensor(np.array([1.0, 2.0]))
    assert find("less_than_")(x, 1.5) is x
    assert x.tolist() == [True, False]
    y = Tensor(np.zeros((3, 3)))
    assert y.fill_diagonal_(2.0).sum().item() == 6.0
    assert y.zero_().sum().item() == 0.0


BAD_CALLS = {
    "a string for a tensor": (("text",), {}),
    "None for a tensor": ((None,), {}),
    "a list with a string": (([1, "a"],), {}),
    "an axis that is not there": ((Tensor(np.ones((2, 3))),), {"axis": 9}),
    "an unknown argument": ((Tensor(np.ones((2, 3))),), {"nope": 1}),
}


@pytest.mark.parametrize("call", BAD_CALLS.values(), ids=BAD_CALLS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bad_calls_end_in_errors_that_are_meant_for_users(call):
    """No operator or composed function fails with an error of Python's insides."""
    from argosy_phi_ops.declare.index import COMPOSED, MODULES

    args, kwargs = call
    failed = []
    for name in {**MODULES, **COMPOSED}:
        try:
            find_function(name)(*args, **dict(kwargs))
        except (KeyError, AttributeError, AssertionError, UnboundLocalError) as error:
            failed.append(f"{name}: {error!r}")
        except (ValueError, TypeError, IndexError, RuntimeError):
            pass
    assert failed == []


SPOILED = {"text": "text", "a mapping": {}, "a far number": 29}
"""No farther than that: what a padding adds in three dimensions grows with its cube."""


@pytest.mark.parametrize("value", SPOILED.values(), ids=SPOILED)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_errors_of_a_spoiled_attribute_name_the_operator(value):
    """Each attribute of each operator replaced in a call that works: no error is one of Python's or numpy's insides."""
    failed = []
    for name in MODULES:
        op = get_operator(name)
        sample = next(iter(op.sampler(np.random.default_rng(0))), None) if op.sampler else None
        if sample is None:
            continue
        args = [as_tensors(a) for a in sample.args]
        given = op.signature.match(tuple(args), {k: as_tensors(v) for k, v in sample.kwargs.items()})
        for p in op.signature.attributes:
            if p.name in op.signature.hidden:
                continue
            call = {k: v for k, v in given.items() if k not in op.signature.hidden} | {p.name: value}
            try:
                op(**call)
            except (OperatorError, NotImplementedError, RuntimeError):
                pass
            except Exception as error:  # noqa: BLE001 (which is the question)
                if op.name not in str(error):
                    failed.append(f"{name}({p.name}={value!r}): {error!r}")
    assert failed == []


def as_tensors(x):
    return Tensor(x) if isinstance(x, np.ndarray) else [as_tensors(v) for v in x] if isinstance(x, list) else x


def test_applications_of_an_operator_are_bounded():
    """Shapes that never come again do not fill the memory; what was dropped is worked out anew."""
    op = get_operator("det")
    op(Tensor(np.eye(2)))
    table, expansions = op.applications, EXPANSIONS[op]
    table.clear()
    expansions.clear()
    table.limit = expansions.limit = 4
    try:
        for n in [*range(1, 9), 1, 2]:
            assert op(Tensor(np.eye(n) * 2)).item() == 2**n
            assert len(table.by_key) <= 4
            assert len(table.by_types) <= 4
            assert len(expansions) <= 4
    finally:
        table.limit = expansions.limit = 1024


def test_a_bounded_table_drops_its_oldest_entry():
    kept = BoundedCache(2)
    for key in "abbc":
        kept[key] = key.upper()
    assert dict(kept) == {"b": "B", "c": "C"}


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "pow", "maximum"])
def test_numpys_float64_counts_as_a_float_of_python(name):
    """As in Paddle: integers beside it become float32, and nothing is cut off."""
    x, number = Tensor(np.array([3, 2])), np.float64(2.5)
    for made in (get_operator(name)(x, number), get_operator(name)(x, 2.5)):
        assert made.dtype.name == "float32"
    np.testing.assert_array_equal(get_operator(name)(x, number).numpy(), get_operator(name)(x, 2.5).numpy())
    assert (x + number).dtype.name == (number / x).dtype.name == (x**number).dtype.name == "float32"
    assert (x * np.complex128(1j)).dtype.name == "complex64"


def test_composed_functions_take_keywords_that_fit_as_they_stand(monkeypatch):
    """Without matching names anew; what does not fit is matched, and refused as ever."""
    split = find_function("split")
    x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    matched = []
    kind = type(split.signature)
    match = kind.match
    monkeypatch.setattr(
        kind, "match", lambda self, *given: (self is split.signature and matched.append(1)) or match(self, *given)
    )
    for call in (
        lambda: split(x, 2, axis=1),
        lambda: split(x, num_or_sections=2, axis=1),
        lambda: split(axis=1, x=x, num_or_sections=2),
    ):
        for part, wanted in zip(call(), np.split(x.numpy(), 2, 1), strict=True):
            np.testing.assert_array_equal(part.numpy(), wanted)
    assert not matched
    for wrong, message in (
        (lambda: split(x, axis=1), "needs argument 'num_or_sections'"),
        (lambda: split(x, 2, x=x), "several values for argument 'x'"),
        (lambda: split(x, 2, axes=1), "no argument"),
        (lambda: split(x, 2, axis="last"), "axis"),
    ):
        with pytest.raises(TypeError, match=message):
            wrong()
    assert len(matched) == 4
    assert len(split(x, 2, axis=Tensor(np.int64(1)))) == 2


def test_methods_that_are_composed_functions_are_listed_too():
    assert {"pow", "pow_", "norm"} <= set(methods())
