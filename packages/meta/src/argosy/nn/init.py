"""Initialisers as functions: each fills a tensor in place and returns it."""

from __future__ import annotations

from argosy.nn import initializer as of
from argosy.nn.initializer import calculate_gain
from argosy.nn.initializer.variance_scaling import fans
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_",
    "orthogonal_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip


def _fill(tensor: Tensor, how: of.Initializer) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"argument 'tensor' must be a Tensor, got {tensor!r:.60} ({type(tensor).__name__})")
    how(tensor)
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Every element is ``val``."""
    return _fill(tensor, of.Constant(val))


def zeros_(tensor: Tensor) -> Tensor:
    """Every element is 0."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Every element is 1."""
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix [rows, columns]. Raises ValueError for a tensor that is no matrix."""
    if len(tensor.shape) != 2:
        raise ValueError(f"eye_(): argument 'tensor' must be a matrix, got {list(tensor.shape)}")
    import argosy

    return _fill(tensor, of.Assign(argosy.eye(tensor.shape[0], tensor.shape[1], dtype=tensor.dtype)))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Filters [out, in, *kernel] that pass channels on, in ``groups``; as :class:`Dirac`."""
    return _fill(tensor, of.Dirac(groups))


def orthogonal_(tensor: Tensor, gain: float = 1) -> Tensor:
    """Orthogonal rows or columns times ``gain``; as :class:`Orthogonal`."""
    return _fill(tensor, of.Orthogonal(gain))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Uniform from ``a`` to ``b``."""
    return _fill(tensor, of.Uniform(a, b))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal of that mean and standard deviation."""
    return _fill(tensor, of.Normal(mean, std))


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Tensor:
    """Normal, of which only values from ``a`` to ``b`` are drawn."""
    return _fill(tensor, of.TruncatedNormal(mean, std, a, b))


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, fan_in: float | None = None, fan_out: float | None = None
) -> Tensor:
    """Uniform in ±gain √(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    return _fill(tensor, of.XavierUniform(fan_in, fan_out, gain=gain))


def xavier_normal_(
    tensor: Tensor, gain: float = 1.0, fan_in: float | None = None, fan_out: float | None = None
) -> Tensor:
    """Normal with standard deviation gain √(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    return _fill(tensor, of.XavierNormal(fan_in, fan_out, gain=gain))


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Uniform in ±gain √(3 / fan) (He et al., 2015); ``a`` is the negative slope of a leaky ReLU."""
    return _fill(tensor, of.KaimingUniform(negative_slope=a, nonlinearity=nonlinearity, mode=mode))


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Normal with standard deviation gain / √fan (He et al., 2015); ``a`` is the negative slope of a leaky ReLU."""
    return _fill(tensor, of.KaimingNormal(negative_slope=a, nonlinearity=nonlinearity, mode=mode))


def _calculate_fan_in_and_fan_out(var: Tensor) -> tuple[int, int]:
    """Inputs and outputs of a unit of the weights ``var``."""
    return fans(list(var.shape))
