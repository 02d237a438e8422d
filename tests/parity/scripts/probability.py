"""Distributions, transforms and divergences: what a member gives for parameters and values."""

from __future__ import annotations

from typing import Any

COUNT = 1 << 14


def distribution_of(paddle: Any, family: str, *parameters: Any) -> Any:
    """``family(*parameters)``; a trailing "Independent" takes one batch axis into the event."""
    name, _, wrapped = family.partition("+")
    made = getattr(paddle.distribution, name)(*parameters)
    return paddle.distribution.Independent(made, 1) if wrapped else made


def member_of(paddle: Any, family: str, member: str, parameters: Any, *values: Any) -> Any:
    """The member of a distribution: a property, or what the method gives for ``values``."""
    found = getattr(distribution_of(paddle, family, *parameters), member)
    return found(*values) if callable(found) else found


def shapes_of(paddle: Any, family: str, parameters: Any) -> Any:
    """Shapes of the batch, of an event, and of samples."""
    made = distribution_of(paddle, family, *parameters)
    drawn = [made.sample(shape) for shape in ([], [2, 3])]
    return [str(tuple(made.batch_shape)), str(tuple(made.event_shape)), *(f"{list(d.shape)}{d.dtype}" for d in drawn)]


def sampled(paddle: Any, family: str, *parameters: Any, member: str = "sample", **settings: Any) -> Any:
    """Many draws of one distribution, one after another; events are weighted sums of their elements."""
    made = getattr(paddle.distribution, family)(*parameters)
    drawn = getattr(made, member)([COUNT], **settings).astype("float32")
    weights = paddle.arange(1, drawn.size // COUNT + 1, dtype="float32")
    return (drawn.reshape([COUNT, -1]) * weights).sum(-1)


def divergence(paddle: Any, family: str, mine: Any, other: Any) -> Any:
    """``kl_divergence`` of two members of one family."""
    p, q = distribution_of(paddle, family, *mine), distribution_of(paddle, family, *other)
    return paddle.distribution.kl_divergence(p, q)


def divergence_of(paddle: Any, family: str, mine: Any, other: Any) -> Any:
    """The same by the method."""
    return distribution_of(paddle, family, *mine).kl_divergence(distribution_of(paddle, family, *other))


def divergence_of_a_family_of_ones_own(paddle: Any, rate: Any, other: Any) -> Any:
    """An exponential family that says nothing but its log-normaliser has an entropy and a divergence."""

    class Decay(paddle.distribution.ExponentialFamily):  # type: ignore[name-defined,misc]
        def __init__(self, rate: Any) -> None:
            self.rate = rate
            super().__init__(rate.shape)

        @property
        def _natural_parameters(self) -> Any:
            return (-self.rate,)

        def _log_normalizer(self, x: Any) -> Any:
            return -paddle.log(-x)

        @property
        def _mean_carrier_measure(self) -> float:
            return 0.0

    p, q = Decay(rate), Decay(other)
    return [p.entropy().detach(), paddle.distribution.kl_divergence(p, q).detach()]


def made_transform(paddle: Any, name: str, *arguments: Any) -> Any:
    """The transform of that name; names within ``arguments`` are those of transforms without parameters."""
    kinds = paddle.distribution
    built = [[getattr(kinds, n)() for n in a] if isinstance(a, list) and a and isinstance(a[0], str) else a
             for a in arguments]  # fmt: skip
    built = [getattr(kinds, a)() if isinstance(a, str) else a for a in built]
    return getattr(kinds, name)(*built)


def transformed(paddle: Any, name: str, arguments: Any, x: Any) -> Any:
    """A transform forward and back, with its log-determinants and shapes."""
    made = made_transform(paddle, name, *arguments)
    y = made.forward(x)
    shapes = [str(list(made.forward_shape(list(x.shape)))), str(list(made.inverse_shape(list(y.shape))))]
    return [y, made.inverse(y), made.forward_log_det_jacobian(x), made.inverse_log_det_jacobian(y), *shapes]


def mapped_only(paddle: Any, name: str, x: Any) -> Any:
    """A transform without an inverse function."""
    made = made_transform(paddle, name)
    y = made.forward(x)
    back = made.inverse(y)
    return [y, *(back if isinstance(back, (list, tuple)) else [back])]


def attributes_of_transforms(paddle: Any, x: Any) -> Any:
    """What transforms are made of can be read, and calling one applies it to what is given."""
    kinds = paddle.distribution
    affine, power = kinds.AffineTransform(x, 2 * x), kinds.PowerTransform(x)
    reshape = kinds.ReshapeTransform((2, 3), (3, 2))
    stack = kinds.StackTransform([affine, kinds.ExpTransform()], 1)
    chain = affine(kinds.ExpTransform())
    base = kinds.Normal(paddle.zeros_like(x), paddle.ones_like(x))
    applied = [type(affine(base)).__name__, type(chain).__name__, len(stack.transforms), stack.axis]
    return [affine.loc, affine.scale, power.power, chain.forward(x), affine(x), *applied,
            str(reshape.in_event_shape), str(reshape.out_event_shape)]  # fmt: skip


def density_of_a_transformed(paddle: Any, loc: Any, scale: Any, value: Any) -> Any:
    """The density of a chain of transforms of a normal variable, and of one whose event has an axis."""
    kinds = paddle.distribution
    base = kinds.Normal(loc, scale)
    chain = [kinds.AffineTransform(loc, scale), kinds.SigmoidTransform()]
    plain = kinds.TransformedDistribution(base, chain)
    broken = kinds.TransformedDistribution(base, [kinds.StickBreakingTransform()])
    point = paddle.nn.functional.softmax(paddle.concat([value, value[..., :1]], -1), -1)
    shapes = [broken.batch_shape, broken.event_shape, broken.sample([4]).shape, plain.rsample([4]).shape]
    return [plain.log_prob(value), plain.prob(value), broken.log_prob(point), *(str(list(s)) for s in shapes)]


def normal_of_numbers(paddle: Any) -> Any:
    """Numbers, lists and arrays as parameters: dtypes and shapes that follow."""
    import numpy as np

    kinds = paddle.distribution
    made = [kinds.Normal(0.0, 1.0), kinds.Normal([0.0, 1.0], 2.0), kinds.Normal(np.zeros(2), np.ones(2)),
            kinds.Uniform(0, 2), kinds.Uniform([0.0], [1.0, 2.0]), kinds.Laplace(0.5, 1.0), kinds.Beta(0.5, 1.0),
            kinds.Exponential(2.0), kinds.Gamma(2.0, 1.0), kinds.Poisson(3.0), kinds.Bernoulli(0.3),
            kinds.StudentT(3.0, 0.0, 1.0), kinds.Binomial(4, 0.5), kinds.Categorical([1.0, 2.0]),
            kinds.Geometric(0.5), kinds.Gumbel(0.5, 1.0), kinds.Cauchy(0.5, 1.0), kinds.Chi2(3.0)]  # fmt: skip
    return [f"{type(m).__name__}{list(m.sample([3]).shape)}{m.sample([3]).dtype}" for m in made]
