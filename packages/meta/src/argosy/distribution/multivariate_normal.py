"""The multivariate normal distribution."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from math import log, pi
from typing import Any

from argosy.distribution.distribution import Distribution
from argosy.distribution.kl import register_kl
from argosy.distribution.parameters import parameters
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.shape import broadcast_shapes
from argosy_tensorcore.tensor import Tensor

__all__ = ["MultivariateNormal", "half_log_det", "mahalanobis"]


class MultivariateNormal(Distribution):
    """Normal vectors with mean ``loc`` [..., d] and one of: covariance, precision (its inverse) or lower Cholesky
    factor of the covariance, [..., d, d]. Raises ``ValueError`` unless exactly one of the three is given.
    """

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None
    ) -> None:
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        named = [(name, matrix) for name, matrix in given.items() if matrix is not None]
        if len(named) != 1:
            raise ValueError("MultivariateNormal: exactly one of covariance_matrix, precision_matrix and scale_tril")
        ((name, matrix),) = named
        (mean,) = parameters("MultivariateNormal", loc=loc)
        mean = mean if mean.shape else mean.reshape([1])
        (matrix,) = parameters("MultivariateNormal", **{name: matrix})
        matrix = matrix if matrix.dtype is mean.dtype else matrix.cast(mean.dtype.name)
        _check_square(name, matrix)
        batch = broadcast_shapes(tuple(matrix.shape[:-2]), tuple(mean.shape[:-1]))
        size = matrix.shape[-1]
        self.dtype = mean.dtype
        self.covariance_matrix: Tensor | None = None
        self.precision_matrix: Tensor | None = None
        self.scale_tril: Tensor | None = None
        setattr(self, name, matrix.expand([*batch, size, size]))
        self.loc = mean.expand([*batch, size])
        self._factor = _lower_factor(name, matrix)
        super().__init__(batch, (size,))

    @property
    def mean(self) -> Tensor:
        """``loc``."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        return self._factor.square().sum(-1).expand(list(self._batch_shape + self._event_shape))

    def rsample(self, shape: Sequence[int] = ()) -> Tensor:
        """``loc + factor @ noise``."""
        noise = get_operator("randn")(list(self._extend_shape(shape)), self.dtype.name)
        return self.loc + get_operator("matmul")(self._factor, noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at ``value`` [..., d]."""
        away = self._value(value, self.dtype) - self.loc
        distance = mahalanobis(self._factor, away)
        return -0.5 * (self._event_shape[0] * log(2 * pi) + distance) - half_log_det(self._factor)

    def entropy(self) -> Tensor:
        """``log(det(2 pi e covariance)) / 2``."""
        found = 0.5 * self._event_shape[0] * (1.0 + log(2 * pi)) + half_log_det(self._factor)
        return found.expand(list(self._batch_shape))


def _check_square(name: str, matrix: Tensor) -> None:
    if len(matrix.shape) < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"MultivariateNormal: {name} should be square matrices, got {list(matrix.shape)}")


def _lower_factor(name: str, matrix: Any) -> Any:
    """The lower triangular L with covariance L L^T."""
    if name == "scale_tril":
        return matrix
    cholesky = get_operator("cholesky")
    if name == "covariance_matrix":
        return cholesky(matrix)
    # With J the reversal of axes, J P J = M M^T makes P^-1 = L L^T for the lower triangular L = J M^-T J.
    reverse = get_operator("flip")
    upper = reverse(cholesky(reverse(matrix, [-2, -1])), [-2, -1])
    identity = get_operator("eye")(matrix.shape[-1], None, matrix.dtype.name)
    return get_operator("triangular_solve")(upper.mT, identity.expand(list(matrix.shape)), upper=False)


def half_log_det(factor: Any) -> Any:
    """Half the logarithm of the determinant of ``factor @ factor.mT``."""
    return factor.diagonal(axis1=-2, axis2=-1).log().sum(-1)


def mahalanobis(factor: Any, away: Any) -> Any:
    """``|factor^-1 away|**2`` of lower triangular ``factor`` [batch, d, d] and ``away`` [sample, batch, d].

    The samples become columns, so that each factor is used once for all of them.
    """
    rank, size = len(factor.shape) - 2, away.shape[-1]
    extra = len(away.shape) - 1 - rank
    order = [*range(extra, extra + rank), extra + rank, *range(extra)]
    columns = away.transpose(order)
    batch, samples = tuple(columns.shape[:rank]), tuple(columns.shape[rank + 1 :])
    flat = columns.reshape([*batch, size, -1] if samples else [*batch, size, 1])
    spread = factor.expand([*batch, size, size])
    lengths = get_operator("triangular_solve")(spread, flat, upper=False).square().sum(-2)
    back = lengths.reshape([*batch, *samples])
    return back.transpose([*range(rank, rank + extra), *range(rank)])


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(f"kl_divergence: event shapes {p.event_shape} and {q.event_shape} should be equal")
    mine, other = get_operator("broadcast_tensors")([p._factor, q._factor])
    spread = get_operator("triangular_solve")(other, mine, upper=False).square().sum([-2, -1])
    distance = mahalanobis(q._factor, p.loc - q.loc)
    return half_log_det(q._factor) - half_log_det(p._factor) + 0.5 * (spread + distance - p.event_shape[0])
