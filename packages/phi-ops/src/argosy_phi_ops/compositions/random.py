"""Random tensors by the names that fill a tensor in place, and distributions made of others."""

# mypy: disable-error-code="no-any-return,index,operator"

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import Any

from argosy_phi_ops.declare.composition import compose
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.eager.dispatch import write
from argosy_phi_ops.errors import OperatorError
from argosy_tensorcore.tensor import Tensor


def _fill(x: Tensor, values: Tensor) -> Tensor:
    write(x, values if values.dtype is x.dtype else values.astype(x.dtype))
    return x


def _draw_dtype(x: Tensor) -> str:
    """The dtype in which random numbers for ``x`` are drawn."""
    return x.dtype.name if x.dtype.kind == "f" else "float32"


@compose(aliases={"to": "max", "from": "min"})
def uniform_(x: Tensor, min: float = 0, max: float = 1.0, seed: int = 0) -> Tensor:
    """``x`` overwritten with numbers uniform in [min, max)."""
    return _fill(x, op("uniform")(list(x.shape), _draw_dtype(x), min, max, seed))


@compose()
def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """``x`` overwritten with normal numbers; complex ones have that variance in total."""
    if x.dtype.kind != "c":
        return _fill(x, op("gaussian")(list(x.shape), mean, std, dtype=_draw_dtype(x)))
    width = "float64" if x.dtype.name == "complex128" else "float32"
    parts = [op("gaussian")(list(x.shape), 0.0, std / 2**0.5, dtype=width) for _ in range(2)]
    return _fill(x, op("complex")(parts[0], parts[1]) + mean)


@compose(out=True)
def standard_normal(
    shape: Sequence[int], dtype: object = None, *, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Standard normal numbers."""
    return op("randn")(shape, dtype, device=device, requires_grad=requires_grad)


@compose()
def log_normal(mean: Any = 1.0, std: Any = 2.0, shape: Sequence[int] | None = None) -> Tensor:
    """Numbers whose logarithms are normal with ``mean`` and ``std``."""
    return op("exp")(op("normal")(mean, std, shape))


@compose()
def log_normal_(x: Tensor, mean: float = 1.0, std: float = 2.0) -> Tensor:
    """``x`` overwritten with numbers whose logarithms are normal."""
    return _fill(x, op("exp")(op("gaussian")(list(x.shape), mean, std, dtype=_draw_dtype(x))))


@compose()
def bernoulli_(x: Tensor, p: float | Tensor = 0.5) -> Tensor:
    """``x`` overwritten with ones, of probability ``p``, and zeros."""
    draw = op("rand")(list(x.shape), _draw_dtype(x))
    return _fill(x, (draw < p).astype(x.dtype))


@compose(aliases={"lambd": "lam"})
def exponential_(x: Tensor, lam: float = 1.0) -> Tensor:
    """``x`` overwritten with exponentially distributed numbers of rate ``lam``."""
    if lam <= 0:
        raise OperatorError(f"exponential_: lam should be positive, got {lam}")
    return _fill(x, op("exponential")(x, lam))


@compose()
def cauchy_(x: Tensor, loc: float = 0, scale: float = 1) -> Tensor:
    """``x`` overwritten with Cauchy distributed numbers."""
    draw = op("uniform")(list(x.shape), _draw_dtype(x), 0.0, 1.0)
    return _fill(x, op("tan")((draw - 0.5) * pi) * scale + loc)


@compose()
def geometric_(x: Tensor, probs: float | Tensor) -> Tensor:
    """``x`` overwritten with ``log(u) / log(1 - probs)``, u uniform: as in Paddle, not rounded to integers."""
    draw = 1.0 - op("rand")(list(x.shape), _draw_dtype(x))
    odds = probs if isinstance(probs, Tensor) else op("full")([], float(probs), _draw_dtype(x))
    return _fill(x, op("log")(draw) / op("log1p")(-odds))


def _integer_limit(x: Tensor) -> int:
    """How many integers from 0 on the dtype holds exactly; of integers the last one is left out, as in Paddle."""
    if x.dtype.kind in "iu":
        return (1 << 8 * x.dtype.itemsize - (x.dtype.kind == "i")) - 1
    return 1 << {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53, "bool": 1}[x.dtype.name]


@compose()
def random_(x: Tensor, from_: int = 0, to: int | None = None, *, generator: Any = None) -> Tensor:
    """``x`` overwritten with integers uniform in [from_, to), in [0, from_) without ``to``, and without both up to what
    the dtype holds exactly."""
    if generator is not None:
        raise NotImplementedError("random_ with a generator of its own is not implemented; seed the default one")
    if to is None:
        from_, to = 0, from_ or _integer_limit(x)
    if to <= from_:
        raise OperatorError(f"random_: the range from {from_} to {to} is empty")
    return _fill(x, op("randint")(from_, to, list(x.shape)))


@compose()
def randint_like(x: Tensor, low: int = 0, high: int | None = None, dtype: object = None) -> Tensor:
    """Integers uniform in [low, high), in [0, low) without ``high``, in the shape (and dtype, unless told) of ``x``."""
    drawn = op("randint")(low, high, list(x.shape))
    return drawn.astype(x.dtype if dtype is None else dtype)


@compose()
def top_p_sampling(
    x: Tensor,
    ps: Tensor,
    threshold: Tensor | None = None,
    topp_seed: Tensor | None = None,
    seed: int = -1,
    k: int = 0,
    mode: str = "truncated",
    return_top: bool = False,
) -> tuple[Tensor, ...]:
    """For each row of probabilities one index out of the most probable ones that make up ``ps``, and its probability.

    Without ``ps`` being met by one element alone the draw is in proportion to the probabilities.
    """
    if threshold is not None or topp_seed is not None or k or mode != "truncated":
        raise NotImplementedError("top_p_sampling: threshold, topp_seed, k and mode 'non-truncated' are missing")
    order = op("argsort")(x, -1, True)
    ordered = op("take_along_axis")(x, order, -1)
    before = op("cumsum")(ordered, -1) - ordered
    kept = op("where")(before < op("reshape")(ps, [-1, 1]), ordered, op("zeros_like")(ordered))
    place = op("multinomial")(kept, 1, True)
    found = op("take_along_axis")(ordered, place, -1), op("take_along_axis")(order, place, -1)
    return (*found, ordered[:, :1], order[:, :1]) if return_top else found
