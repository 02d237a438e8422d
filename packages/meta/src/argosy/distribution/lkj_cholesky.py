"""Cholesky factors of random correlation matrices."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from math import log, pi
from typing import Any

import numpy as np

from argosy.distribution.beta import Beta
from argosy.distribution.distribution import Distribution
from argosy.distribution.parameters import is_known_false, parameters, sizes
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors of correlation matrices with density proportional to ``det**(concentration - 1)``
    (Lewandowski, Kurowicka and Joe, 2009).

    sample_method: "onion" grows the matrix row by row from points of spheres; "cvine" draws partial correlations.
    Raises ``ValueError`` for dim < 2, a concentration that is not positive, and other methods.
    """

    def __init__(self, dim: int = 2, concentration: Any = 1.0, sample_method: str = "onion") -> None:
        if not isinstance(dim, int):
            raise TypeError(f"LKJCholesky: dim should be an integer, got {dim!r:.80}")
        if dim < 2:
            raise ValueError(f"LKJCholesky: dim should be at least 2, got {dim}")
        if sample_method not in ("onion", "cvine"):
            raise ValueError(f"LKJCholesky: sample_method is 'onion' or 'cvine', got {sample_method!r:.80}")
        (self.concentration,) = parameters("LKJCholesky", concentration=concentration)
        if is_known_false(self.concentration > 0):
            raise ValueError("LKJCholesky: concentration must be positive")
        self.dim, self.sample_method, self.dtype = dim, sample_method, self.concentration.dtype
        self._beta = self._onion_beta() if sample_method == "onion" else self._vine_beta()
        super().__init__(self.concentration.shape, (dim, dim))

    def _marginal(self) -> Any:
        return (self.concentration + 0.5 * (self.dim - 2)).unsqueeze(-1)

    def _onion_beta(self) -> Beta:
        """Of the squared length of each row but for its last element."""
        offset = Tensor(np.array([0, *range(self.dim - 1)], np.float64), self.dtype)
        return Beta(offset + 0.5, self._marginal() - 0.5 * offset)

    def _vine_beta(self) -> Beta:
        """Of the partial correlations below the diagonal, row by row."""
        column = np.concatenate([np.arange(row) for row in range(1, self.dim)]).astype(np.float64)
        shape = self._marginal() - Tensor(0.5 * column, self.dtype)
        return Beta(shape, shape)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Factors of shape ``sample_shape + batch_shape + [dim, dim]``."""
        wanted = sizes("LKJCholesky", sample_shape)
        with no_grad():
            return self._onion(wanted) if self.sample_method == "onion" else self._vine(wanted)

    def _onion(self, wanted: tuple[int, ...]) -> Tensor:
        y = self._beta.sample(wanted).unsqueeze(-1)
        points = get_operator("randn")(list(self._extend_shape(wanted)), self.dtype.name).tril(-1)
        length = points.square().sum(-1, keepdim=True).sqrt()
        rows = y.sqrt() * points / get_operator("where")(length > 0, length, 1.0)  # the first row has no elements
        return rows + get_operator("diag_embed")(self._rest(rows.square().sum(-1)))

    def _rest(self, used: Any) -> Tensor:
        tiny = float(np.finfo(self.dtype.numpy).tiny)
        return get_operator("clip")(1 - used, tiny).sqrt()

    def _vine(self, wanted: tuple[int, ...]) -> Tensor:
        partial: Any = 2 * self._beta.sample(wanted) - 1
        place = np.full((self.dim, self.dim), partial.shape[-1])  # one past the last element: a zero
        place[np.tril_indices(self.dim, -1)] = np.arange(partial.shape[-1])
        padded = get_operator("concat")([partial, get_operator("zeros_like")(partial[..., :1])], -1)
        flat: Any = get_operator("gather")(padded, Tensor(place.ravel()), -1)
        r: Any = flat.reshape([*flat.shape[:-1], self.dim, self.dim])
        left = (1 - r.square()).sqrt().cumprod(-1)
        ones = get_operator("ones_like")(left[..., :1])
        shifted = get_operator("concat")([ones, left[..., :-1]], -1)
        return (r + get_operator("eye")(self.dim, None, self.dtype.name)) * shifted

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density of the factor ``value`` [..., dim, dim]."""
        x, less = self._value(value, self.dtype), self.dim - 1
        diagonal = x.diagonal(axis1=-2, axis2=-1)[..., 1:]
        order = Tensor(np.arange(2, self.dim + 1, dtype=np.float64), self.dtype)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        alpha = self.concentration + 0.5 * less
        # The multivariate gamma function of alpha - 1/2 in dim - 1 dimensions, over that of alpha.
        steps = Tensor(np.arange(less, dtype=np.float64) / 2, self.dtype)
        numerator = less * (less - 1) / 4 * log(pi) + ((alpha - 0.5).unsqueeze(-1) - steps).lgamma().sum(-1)
        norm = 0.5 * less * log(pi) + numerator - alpha.lgamma() * less
        return (order * diagonal.log()).sum(-1) - norm
