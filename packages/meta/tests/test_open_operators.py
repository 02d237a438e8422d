"""Every operator with the axes of its operands left open: captured code answers and refuses as eager code does."""

import warnings
from collections import Counter

import numpy as np
import pytest

import argosy as paddle
from argosy_phi_ops.declare.index import MODULES
from argosy_phi_ops.declare.operator import get_operator

SIZES = (0, 1, 2, 5)
BY_VALUES = "looks at values, captured code does not"
EXCEPTIONS = {
    "bincount": "the size of its result depends on values: eager only",
    "masked_select": "the size of its result depends on values: eager only",
    "nonzero": "the size of its result depends on values: eager only",
    "unique": "the size of its result depends on values: eager only",
    "cholesky": BY_VALUES,
    "permutation_of": BY_VALUES,
    "adaptive_max_pool1d": "over no elements",
    "adaptive_max_pool2d": "over no elements",
    "adaptive_max_pool3d": "over no elements",
    "max_pool2d": "over no elements: the least number or an infinity",
    "interpolate": "of no elements: two classes of IndexError",
}
NAMES = [name for name in sorted(MODULES) if name not in EXCEPTIONS and not get_operator(name).random]


def arrays_of(arguments):
    """The arrays among arguments and in lists of them."""
    for x in arguments:
        if isinstance(x, np.ndarray):
            yield x
        elif isinstance(x, (list, tuple)):
            yield from arrays_of(x)


def resized(x, old, new):
    """The arguments with axes of size ``old`` as long as ``new``; values are repeated."""
    if isinstance(x, np.ndarray):
        shape = tuple(new if n == old else n for n in x.shape)
        return np.resize(x, shape) if 0 not in shape and x.size else np.zeros(shape, x.dtype)
    return type(x)(resized(item, old, new) for item in x) if isinstance(x, (list, tuple)) else x


def with_tensors(x, tensors):
    """The arguments with the next of ``tensors`` in place of each array."""
    if isinstance(x, np.ndarray):
        return next(tensors)
    return type(x)(with_tensors(item, tensors) for item in x) if isinstance(x, (list, tuple)) else x


def answer(function, tensors):
    """The arrays that a function gives, or the class with which it refuses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = function(*tensors)
    except Exception as error:  # noqa: BLE001  (whichever it is)
        return type(error)
    given = given if isinstance(given, (list, tuple)) else [given]
    return [x.numpy() if isinstance(x, paddle.Tensor) else x for x in given]


def differences(name):
    """For each size at which the two do not agree, what they gave."""
    op = get_operator(name)
    sample = next(op.sampler(np.random.default_rng(0)))
    sizes = Counter(n for x in arrays_of(sample.args) for n in x.shape)
    if not sizes:
        return
    opened = max(sizes, key=lambda n: (sizes[n], n))

    def function(*tensors):
        return op(*with_tensors(sample.args, iter(tensors)), **sample.kwargs)

    given = list(arrays_of(sample.args))
    specs = [paddle.static.InputSpec([None] * x.ndim, str(x.dtype)) for x in given]
    captured = paddle.jit.to_static(function, input_spec=specs, full_graph=True, backend="reference")
    for size in SIZES:
        tensors = [paddle.to_tensor(resized(x, opened, size)) for x in given]
        eager, static = answer(function, tensors), answer(captured, tensors)
        if not agree(eager, static):
            yield size, eager, static


def agree(eager, static):
    """Whether both refuse with one class, or give the same values."""
    if isinstance(eager, type) or isinstance(static, type):
        return eager is static
    return len(eager) == len(static) and all(
        np.shape(x) == np.shape(y) and np.allclose(x, y, rtol=1e-4, atol=1e-5, equal_nan=True)
        for x, y in zip(eager, static, strict=True)
    )


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("name", NAMES)
def test_an_operator_with_open_axes_answers_and_refuses_as_eagerly(name):
    assert list(differences(name)) == []


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_exceptions_are_needed(name):
    assert list(differences(name))
