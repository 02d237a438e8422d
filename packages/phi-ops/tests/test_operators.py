"""Every operator on its samples: eager, decomposed and decomposed with symbolic sizes must agree."""

import numpy as np
import pytest

from argosy_phi_ops.context import context
from argosy_phi_ops.declare.index import COMPOSED, MEMBERS, MODULES, scan, scan_compositions, scan_members
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir.dims import SymExpr
from argosy_pir.types import TensorType
from argosy_tensorcore.tensor import Tensor

# Samples (by position) in which symbols cannot stand in for the sizes of all, or even of the leading axes; and why.
FIXED_SIZES = {
    # an attribute names the size of an axis that the operand has, too
    "broadcast_to": {"all": {1}},
    "expand": {"all": {1}},
    "layer_norm": {"all": {0, 1, 2}},
    "as_complex": {"all": {0}},
    "rms_norm": {"all": {0, 1}},
    # an attribute has one entry for each slice
    "repeat_interleave": {"all": {2}},
    # it cannot be known that a symbolic size divides into groups
    "reshape": {"all": {2}},
    "group_norm": {"all": {0, 1}},
    # tables of places are made for a known size
    "as_strided": {"leading": {0, 1}},
    "unfold": {"leading": {0}},
    "permutation_of": {"leading": {0}},
    "channel_shuffle": {"all": {0}},
    "pixel_shuffle": {"all": {0, 1}},
    "pixel_unshuffle": {"all": {0}},
    "unflatten": {"all": {0}, "leading": {0}},
    "conv1d": {"all": {0}},
    "conv2d": {"all": {3}},
    "conv1d_transpose": {"all": {0}},
    "paged_attention": {"all": {0, 1, 2, 3}},
    # the number of results, or which of two sizes is smaller, depends on the size
    "unbind": {"all": {0}},
    "scaled_dot_product_attention": {"all": {4}},
    "attention_with_dropout": {"all": {1}},
    "gather_nd": {"all": {0, 2}},
    "scatter_nd": {"all": {0}},
    "scatter_nd_add": {"all": {0}},
    # which elements a slice meets depends on the size
    "getitem": {"all": {5}, "leading": {5}},
    "setitem": {"all": {2, 4, 9}, "leading": {4, 9}},
    "cross": {"all": {0, 1}, "leading": {1}},
    "overwritten_view": {"all": {3, 5, 7}, "leading": {3, 5, 7}},
}


def samples(name):
    """The samples of an operator as lists of (positional, keyword) arguments with tensors in place of arrays."""
    sampler = get_operator(name).sampler
    return [] if sampler is None else list(sampler(np.random.default_rng(0)))


def as_tensors(value):
    if isinstance(value, np.ndarray):
        return Tensor(value)
    return [as_tensors(item) for item in value] if isinstance(value, list) else value


def bound(op, sample):
    """Flat operands and attributes of a call, the random state included."""
    operands, attributes = op.signature.bind(
        tuple(as_tensors(a) for a in sample.args), {k: as_tensors(v) for k, v in sample.kwargs.items()}
    )
    if op.random:
        generator = context().generator
        state = Tensor(np.array([generator.seed, generator.offset], np.uint64))
        attributes = {**attributes, "counter": 0}
        if "segments" in attributes:
            attributes["segments"] = (*attributes["segments"][:-1], 1)
        operands = (*[x for x in operands if x is not None], state)
    return operands, attributes


def is_tensor(x):
    return isinstance(x, Tensor)


def arrays_of(operands):
    return [x.numpy() if is_tensor(x) else x for x in operands]


def listed(results):
    return [np.asarray(r.payload.array()) for r in (results if isinstance(results, tuple | list) else (results,))]


def assert_close(actual, expected):
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype.kind in "iub":
            np.testing.assert_array_equal(a, b)
        else:
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            eps = 1e-12 if a.dtype.itemsize >= 8 and a.dtype != np.complex64 else 2e-6
            np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=eps, atol=eps)


def expanded(op, operands, attributes, symbolic):
    """The decomposition for these operands and the arrays its program takes.

    Equal sizes get equal symbols: all sizes, or those of leading axes that are as long as the first operand's (if no
    inner axis is).
    """
    arrays = [(x if is_tensor(x) else Tensor(x)).payload.array() for x in operands]
    inner = {n for array in arrays for n in array.shape[1:]}
    leading = tuple(n for n in arrays[0].shape[:1] if n not in inner) if arrays else ()

    def size(array, axis, n):
        chosen = symbolic == "all" or (symbolic == "leading" and axis == 0 and (n,) == leading)
        is_random_state = array.dtype == np.uint64
        return SymExpr.symbol(f"s{n}") if chosen and n > 1 and not is_random_state else n

    shapes = [[size(array, axis, n) for axis, n in enumerate(array.shape)] for array in arrays]
    types = [TensorType(shape, array.dtype.name) for shape, array in zip(shapes, arrays, strict=True)]
    return op.expand(types, attributes), arrays


def run_expanded(op, operands, attributes, symbolic):
    """The decomposition's results, interpreted."""
    expansion, arrays = expanded(op, operands, attributes, symbolic)
    return interpret(expansion.program, arrays)[0]


def uses_numbers(operands):
    """Python numbers adapt to tensors, which a program of typed inputs cannot show."""
    return any(not is_tensor(x) for x in operands)


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("name", sorted(MODULES))
def test_operator_agrees_with_its_decomposition(name):
    op = get_operator(name)
    assert op.__doc__, f"{name} has no docstring"
    found = samples(name)
    assert found, f"{name} has no samples"
    for number, sample in enumerate(found):
        operands, attributes = bound(op, sample)
        before = [array.copy() for array in arrays_of(operands) if isinstance(array, np.ndarray)]
        args = [as_tensors(a) for a in sample.args]
        eager = listed(op(*args, **{k: as_tensors(v) for k, v in sample.kwargs.items()}))
        after = [array for array in arrays_of(operands) if isinstance(array, np.ndarray)]
        for old, new in zip(before, after, strict=True):
            np.testing.assert_array_equal(old, new, err_msg=f"{name} changed an operand")
        if op.opaque or uses_numbers(operands):
            continue
        expansion, arrays = expanded(op, operands, attributes, symbolic="")
        expansion.program.verify()
        static, _ = interpret(expansion.program, arrays)
        assert_close(eager, static)
        for symbolic in ("leading", "all"):
            if number not in FIXED_SIZES.get(name, {}).get(symbolic, ()):
                try:
                    expansion, arrays = expanded(op, operands, attributes, symbolic)
                except NotImplementedError:  # a refusal in so many words
                    assert symbolic == "all"
                    continue
                expansion.program.verify()
                assert_close(interpret(expansion.program, arrays)[0], static)


@pytest.mark.parametrize("name", sorted(FIXED_SIZES))
def test_no_sample_is_exempt_from_symbolic_sizes_without_need(name):
    op, found = get_operator(name), samples(name)
    for symbolic, numbers in FIXED_SIZES[name].items():
        for number in numbers:
            operands, attributes = bound(op, found[number])
            with pytest.raises((ShapeError, NotImplementedError, RuntimeError)):
                run_expanded(op, operands, attributes, symbolic)


def test_the_index_of_operators_is_current():
    assert scan() == MODULES
    assert scan_compositions() == COMPOSED
    assert scan_members() == MEMBERS


def test_kernels_do_not_warn_where_ieee_results_are_intended():
    one, zero = Tensor(np.ones(2)), Tensor(np.zeros(2))
    assert np.isinf(get_operator("divide")(one, zero).numpy()).all()
    assert np.isnan(get_operator("log")(zero - one).numpy()).all()
    assert np.isinf(get_operator("exp")(one * 1e4).numpy()).all()


@pytest.mark.parametrize(
    "index", ["a", 1.5, ("a", 0), (0, 1.5), {}, ["a"], [None], [1.5], np.float32(1), slice("a", None), slice(0, 1.5)]
)
@pytest.mark.parametrize("writes", [False, True])
def test_what_is_no_index_is_a_value_error(index, writes):
    """As in Paddle."""
    x = Tensor(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match=r"cannot be indexed by|cannot be an index|a slice goes between integers"):
        x.__setitem__(index, 1.0) if writes else x[index]
