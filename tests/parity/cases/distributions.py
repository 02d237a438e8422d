"""Every random operator and initialiser by its distribution."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, distribution
from parity.scripts.draws import COUNT, SIDE


def cases() -> Iterator[Case]:
    yield from _functions()
    yield from _methods()
    yield from _noise()
    yield from _initialisers()


def _functions() -> Iterator[Case]:
    n = [COUNT]
    for dtype in ("float32", "float64"):
        yield distribution("drawn", "rand", n, dtype)
        yield distribution("drawn", "randn", n, dtype)
        yield distribution("drawn", "uniform", n, dtype, -1.0, 3.0)
        yield distribution("drawn", "standard_normal", n, dtype)
    yield distribution("drawn", "randn", n, "complex64")
    yield distribution("drawn", "normal", 1.0, 2.0, n)
    yield distribution("drawn", "normal", 1 + 1j, 2.0, n)
    yield distribution("by_parameter", "normal", 1.0, 2.0)
    yield distribution("drawn", "log_normal", 0.5, 0.3, n)
    yield distribution("drawn", "tensor.random.gaussian", n, 1.0, 2.0)
    yield distribution("drawn", "randint", -3, 9, n)
    yield distribution("drawn", "randperm", COUNT)
    for name, args in (("rand_like", ()), ("randn_like", ()), ("randint_like", (-2, 5)), ("bernoulli", ())):
        yield distribution("activated_by", name, 0.3, *args)
    for rate in (0.7, 5.0, 40.0):
        yield distribution("by_parameter", "poisson", rate)
    for shape in (0.4, 1.0, 7.5):
        yield distribution("by_parameter", "standard_gamma", shape)
    for trials, chance in ((1.0, 0.3), (9.0, 0.6), (60.0, 0.2)):
        yield distribution("by_parameter", "binomial", trials, chance)
    yield distribution("competing", "multinomial", [0.1, 0.5, 0.4], 1)
    yield distribution("competing", "multinomial", [0.1, 0.5, 0.4], 2)
    yield distribution("competing", "multinomial", [1.0, 5.0, 4.0], 4, True)


def _methods() -> Iterator[Case]:
    for dtype in ("float32", "float64"):
        yield distribution("filled", "uniform_", -2.0, 1.0, dtype=dtype)
        yield distribution("filled", "normal_", 1.0, 3.0, dtype=dtype)
        yield distribution("filled", "exponential_", 2.0, dtype=dtype)
    yield distribution("filled", "log_normal_", 0.5, 0.4)
    yield distribution("filled", "cauchy_", 1.0, 2.0)
    yield distribution("filled", "geometric_", 0.3)
    yield distribution("filled", "bernoulli_", 0.3)
    yield distribution("filled", "random_", 2, 9)


def _noise() -> Iterator[Case]:
    for mode in ("upscale_in_train", "downscale_in_infer"):
        yield distribution("activated", "dropout", 1.5, p=0.3, mode=mode)
    yield distribution("activated", "dropout", 1.5, [SIDE, SIDE], p=0.3)
    yield distribution("activated", "dropout1d", 1.5, [64, 64, 4], p=0.3)
    yield distribution("activated", "dropout2d", 1.5, [64, 64, 2, 2], p=0.3)
    yield distribution("activated", "dropout3d", 1.5, [64, 64, 2, 2, 1], p=0.3)
    yield distribution("activated", "alpha_dropout", 0.7, p=0.3)
    yield distribution("activated", "feature_alpha_dropout", 0.7, [64, 64, 4], p=0.3)
    yield distribution("activated", "rrelu", -1.0, training=True)
    yield distribution("softened", temperature=0.7)
    yield distribution("softened", hard=True)
    yield distribution("sampled_classes")


def _initialisers() -> Iterator[Case]:
    yield distribution("new_parameter", "Uniform", -0.3, 0.7)
    yield distribution("new_parameter", "Normal", 0.5, 2.0)
    yield distribution("new_parameter", "TruncatedNormal", 0.5, 2.0)
    yield distribution("new_parameter", "TruncatedNormal", 0.0, 1.0, -1.0, 0.5)
    yield distribution("new_parameter", "Orthogonal", gain=2.0)
    for name in ("XavierNormal", "XavierUniform", "KaimingNormal", "KaimingUniform"):
        yield distribution("new_parameter", name)
        yield distribution("new_parameter", name, shape=[32, 64, 3, 11])
    for name in ("XavierNormal", "XavierUniform"):
        yield distribution("new_parameter", name, 300, 200, gain=1.5)
    for name in ("KaimingNormal", "KaimingUniform"):
        yield distribution("new_parameter", name, 300, 0.3, "leaky_relu")
    yield distribution("layer_weight", "Linear", SIDE, SIDE)
    yield distribution("layer_weight", "Conv2D", 64, 64, 4)
    yield distribution("layer_weight", "Embedding", SIDE, SIDE)
    yield distribution("layer_weight", "GRUCell", SIDE, SIDE)
    yield distribution("layer_weight", "Conv2DTranspose", 64, 64, 4)
