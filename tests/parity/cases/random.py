"""Random tensors: dtypes and shapes, for the generators differ on purpose, and draws that leave no choice."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call, shape_of
from parity.inputs import given
from parity.inputs import tensor as t

F = "nn.functional."


def cases() -> Iterator[Case]:
    for name in ("rand", "randn", "uniform", "standard_normal"):
        for shape in ([2, 3], [], [0, 3], (4,)):
            yield shape_of(name, shape)
        yield shape_of(name, [2], "float64")
    yield shape_of("uniform", [2], min=1.0, max=2.0)
    yield shape_of("tensor.random.gaussian", [2, 2], 1.0, 2.0)
    yield shape_of("normal", 0.0, 1.0, [2, 3])
    yield shape_of("normal", t(2, 3, grad=False), t(2, 3, low=0.1, grad=False))
    yield shape_of("normal", t(2, 3, grad=False), 1.0)
    yield shape_of("rand_like", t(2, 3))
    yield shape_of("randn_like", t(2, 3), "float64")
    yield shape_of("randint", 5)
    yield shape_of("randint", 2, 5, [2, 3])
    yield shape_of("randint", 0, 5, [2], "int32")
    yield shape_of("randint_like", t(2, 3, dtype="int64"), 5)
    yield shape_of("randperm", 5)
    yield shape_of("randperm", 5, "int32")
    yield shape_of("bernoulli", t(2, 3, low=0, high=1))
    yield shape_of("Tensor.exponential_", t(3, low=0.5, grad=False))
    for name in ("poisson", "standard_gamma"):
        yield shape_of(name, t(2, 3, low=0.5, high=20, grad=False))
        yield shape_of(name, t(3, low=0.5, dtype="float64", grad=False))
    yield shape_of("binomial", t(2, 3, low=1, high=9, grad=False), t(2, 3, low=0, high=1, grad=False))
    yield shape_of("log_normal", 0.0, 1.0, [2, 3])
    for name in ("normal_", "uniform_", "log_normal_", "cauchy_", "bernoulli_", "random_"):
        yield shape_of("Tensor." + name, t(3, grad=False))
    yield shape_of("Tensor.geometric_", t(3, grad=False), 0.3)
    yield call("poisson", given([0.0, 0.0], grad=False))
    yield call("binomial", given([3.0, 4.0], grad=False), given([0.0, 1.0], grad=False))
    yield shape_of("multinomial", t(4, low=0, high=1, grad=False), 2)
    yield shape_of("multinomial", t(2, 4, low=0, high=1, grad=False), 6, True)
    for training in (True, False):
        yield shape_of(F + "dropout", t(2, 3), 0.5, training=training)
    yield call("randint", 3, 4, [2, 2])
    yield call("uniform", [3], min=2.0, max=2.0)
    yield call("bernoulli", given([0.0, 1.0, 1.0], grad=False))
    yield call("multinomial", given([0.0, 1.0, 0.0], grad=False), 1)
    for p in (0.0, 1.0):
        yield call(F + "dropout", t(2, 3), p)
    yield call(F + "dropout", t(2, 3), 0.4, training=False)
    yield call(F + "dropout", t(2, 3), 0.4, training=False, mode="downscale_in_infer")
    yield call(F + "dropout", t(2, 3), 1.5)
    yield call(F + "dropout2d", t(2, 3, 2, 2), 0.4, training=False)
    yield call(F + "alpha_dropout", t(2, 3), 0.4, training=False)
