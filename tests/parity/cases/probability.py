"""Distributions: their figures and densities with gradients, divergences, transforms, and samples by distribution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from parity.case import Case, distribution, script
from parity.inputs import given
from parity.inputs import tensor as t

UNIT = given([0.2, 0.5, 0.9])
ANY = given([-1.5, 0.25, 2.0])
OVER = given([0.3, 1.0, 4.0])
COUNTS = given([0.0, 1.0, 4.0], grad=False)


def positive(*shape: int, **rest: Any) -> Any:
    """Drawn parameters that are not small."""
    return t(*shape, low=0.5, high=3.0, **rest)


def chance(*shape: int, **rest: Any) -> Any:
    """Drawn probabilities."""
    return t(*shape, low=0.1, high=0.9, **rest)


FAMILIES: dict[str, tuple[tuple[Any, ...], Any]] = {
    "Bernoulli": ((chance(3),), given([0.0, 1.0, 1.0], grad=False)),
    "Beta": ((positive(3), positive(3)), UNIT),
    "Binomial": ((given([5.0, 4.0, 7.0], grad=False), chance(3)), COUNTS),
    "Cauchy": ((t(3), positive(3)), ANY),
    "Chi2": ((positive(3),), OVER),
    "ContinuousBernoulli": ((given([0.2, 0.5, 0.8]),), UNIT),
    "Exponential": ((positive(3),), OVER),
    "Gamma": ((positive(3), positive(3)), OVER),
    "Gumbel": ((t(3), positive(3)), ANY),
    "Laplace": ((t(3), positive(3)), ANY),
    "LogNormal": ((t(3), positive(3)), OVER),
    "Normal": ((t(3), positive(3)), ANY),
    "Poisson": ((positive(3),), COUNTS),
    "StudentT": ((given([0.5, 1.5, 4.0]), t(3), positive(3)), ANY),
    "Uniform": ((t(3, low=-2.0, high=0.0), t(3, low=1.0, high=2.0)), UNIT),
    "Dirichlet": ((positive(2, 3),), given([0.2, 0.5, 0.3])),
    "Normal+1": ((t(2, 3), positive(2, 3)), ANY),
    "Geometric": ((chance(3),), COUNTS),
    "Categorical": ((positive(2, 3),), given([[2, 0], [1, 1]], "int64")),
    "Multinomial": ((5, chance(2, 3)), given([2.0, 0.0, 3.0], grad=False)),
    "MultivariateNormal": ((t(3), given([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])), ANY),
    "LKJCholesky": ((3, positive(2)), given([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]])),
}
NO_MOMENTS = ("Cauchy", "Uniform", "Categorical", "LKJCholesky")
DIVERGING = ("Bernoulli", "Beta", "Binomial", "Cauchy", "Chi2", "ContinuousBernoulli", "Exponential", "Gamma",
             "Geometric", "Laplace", "LogNormal", "Normal", "Poisson", "Dirichlet", "Categorical",
             "MultivariateNormal")  # fmt: skip
WITH_CDF = ("Bernoulli", "Cauchy", "ContinuousBernoulli", "Exponential", "Gumbel", "Laplace", "Geometric")


CRASHING = {
    "Bernoulli": ("log_prob", "prob", "cdf"),
    "Binomial": ("mean", "variance", "entropy", "log_prob", "prob"),
    "Laplace": ("mean", "variance", "entropy", "stddev"),
    "StudentT": ("mean", "variance", "entropy"),
    "Multinomial": ("log_prob", "prob"),
}
"""Members whose backward pass kills the wheel: a tensor that it broadcasts wants no gradient, or gets none."""


def cases() -> Iterator[Case]:
    for family, (parameters, value) in FAMILIES.items():
        for case in _figures(family, parameters, value):
            yield replace(case, gradients=case.args[1:2] == () or case.args[1] not in CRASHING.get(family, ()))
    for case in _divergences():
        yield replace(case, gradients=case.args[0] != "Binomial")
    yield from _transforms()
    yield from _samples()
    yield script("normal_of_numbers")


def _figures(family: str, parameters: tuple[Any, ...], value: Any) -> Iterator[Case]:
    def member(name: str, *values: Any) -> Case:
        return script("member_of", family, name, parameters, *values)

    for moment in () if family in NO_MOMENTS else ("mean", "variance"):
        yield member(moment)
    if family != "LKJCholesky":
        yield member("entropy")
    yield member("log_pmf" if family == "Geometric" else "log_prob", value)
    yield member("pmf" if family == "Geometric" else "prob", value)
    if family in WITH_CDF:
        yield member("cdf", value)
    if family in ("ContinuousBernoulli", "Exponential", "Laplace"):
        yield member("icdf", UNIT)
    if family in ("Cauchy", "Geometric", "Gumbel", "Laplace"):
        yield member("stddev")
    if family in ("Normal", "LogNormal", "Uniform", "Categorical"):
        yield member("probs", value)
    if family != "Categorical":
        yield script("shapes_of", family, parameters)


def _divergences() -> Iterator[Case]:
    for family in DIVERGING:
        mine = FAMILIES[family][0]
        other = [positive(*p.shape) if p.low >= 0.5 else p for p in mine] if family != "MultivariateNormal" else mine
        yield script("divergence", family, mine, tuple(other))
        if family not in ("Beta", "Dirichlet", "Chi2"):
            yield script("divergence_of", family, mine, tuple(other))
    yield script("divergence_of_a_family_of_ones_own", positive(3), positive(3))


def _transforms() -> Iterator[Case]:
    x = t(2, 3)
    yield script("transformed", "AffineTransform", (t(3), positive(3)), x)
    yield script("transformed", "ExpTransform", (), x)
    yield script("transformed", "PowerTransform", (given([2.0, 0.5, 1.0]),), positive(2, 3))
    yield script("transformed", "SigmoidTransform", (), x)
    yield script("transformed", "TanhTransform", (), x)
    yield script("transformed", "ReshapeTransform", ((3,), (3, 1)), x)
    yield script("transformed", "StickBreakingTransform", (), x)
    yield script("transformed", "IndependentTransform", ("ExpTransform", 1), x)
    yield script("transformed", "ChainTransform", (["TanhTransform", "ExpTransform"],), x)
    yield script("transformed", "ChainTransform", (["TanhTransform", "StickBreakingTransform"],), x)
    yield script("transformed", "StackTransform", (["TanhTransform", "ExpTransform"], 0), x)
    yield script("mapped_only", "AbsTransform", x)
    yield script("mapped_only", "SoftmaxTransform", t(3))
    yield script("attributes_of_transforms", t(3))
    yield script("density_of_a_transformed", t(2, 3), positive(2, 3), t(2, 3, low=0.1, high=0.9))


def _samples() -> Iterator[Case]:
    for family, parameters in (
        ("Bernoulli", (0.3,)), ("Beta", (2.0, 3.0)), ("Binomial", (9, 0.3)), ("Cauchy", (1.0, 2.0)), ("Chi2", (3.0,)),
        ("ContinuousBernoulli", (0.2,)), ("Exponential", (2.0,)), ("Gamma", (2.5, 3.0)), ("Geometric", (0.3,)),
        ("Gumbel", (1.0, 2.0)), ("Laplace", (1.0, 2.0)), ("LogNormal", (0.5, 0.4)), ("Normal", (1.0, 2.0)),
        ("Poisson", (4.0,)), ("StudentT", (5.0, 1.0, 2.0)), ("Uniform", (1.0, 3.0)),
        ("Categorical", ([0.1, 1.0, 2.0],)),
        ("Dirichlet", (given([0.5, 1.0, 3.0]),)), ("Multinomial", (5, given([0.5, 0.2, 0.3]))),
        ("MultivariateNormal", (given([1.0, 0.0]), given([[2.0, 0.5], [0.5, 1.0]]))),
        ("LKJCholesky", (3, 1.5)), ("LKJCholesky", (3, 1.5, "cvine")),
    ):  # fmt: skip
        yield distribution("sampled", family, *parameters)
    for family, parameters in (
        ("Bernoulli", (0.3,)), ("Cauchy", (1.0, 2.0)), ("Gamma", (2.5, 3.0)), ("Laplace", (1.0, 2.0)),
        ("Normal", (1.0, 2.0)), ("LogNormal", (0.5, 0.4)), ("Gumbel", (1.0, 2.0)), ("Exponential", (2.0,)),
    ):  # fmt: skip
        yield distribution("sampled", family, *parameters, member="rsample")
    yield distribution("sampled", "Bernoulli", 0.3, member="rsample", temperature=0.5)
