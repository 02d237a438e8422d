"""Functions and layers that undo max pooling, and pooling by windows of uneven sizes."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from argosy.argument_checks import Sizes, validate_call
from argosy.nn import functional as F
from argosy.nn.integers import Integral
from argosy.nn.layer import Layer
from argosy_phi_ops.context import context
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.rng import philox_bits, uniform_from_bits
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "FractionalMaxPool2D", "FractionalMaxPool3D", "MaxUnPool1D", "MaxUnPool2D", "MaxUnPool3D",
    "fractional_max_pool2d", "fractional_max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip


def _each(function: str, argument: str, value: Any, rank: int) -> list[int]:
    values = [value] * rank if isinstance(value, Integral) else list(value)
    if len(values) != rank:
        raise ValueError(f"{function}: {argument} is a number or {rank}, got {value}")
    return values


def _unpool(
    rank: int, x: Any, indices: Any, kernel: Sizes, stride: Any, padding: Any, data_format: str, size: Any
) -> Tensor:
    function = f"max_unpool{rank}d"
    if data_format != ("NCL", "NCHW", "NCDHW")[rank - 1]:
        raise ValueError(f"{function}: data_format is channels first, got {data_format!r}")
    if x.ndim != rank + 2 or list(x.shape) != list(indices.shape):
        raise ValueError(f"{function}: x and indices are [N, C, *S] alike, got {list(x.shape)}, {list(indices.shape)}")
    kernels = _each(function, "kernel_size", kernel, rank)
    strides = kernels if stride is None else _each(function, "stride", stride, rank)
    paddings = _each(function, "padding", padding, rank)
    usual = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(x.shape[2:], strides, kernels, paddings, strict=True)]
    chosen = usual if size is None else [int(n) for n in list(size)[-rank:]]
    if len(chosen) != rank or any(abs(n - d) >= s for n, d, s in zip(chosen, usual, strides, strict=True)):
        raise ValueError(f"{function}: output_size {size} is not within a stride {strides} of {usual}")
    _check_places(function, indices, prod(chosen))
    return get_operator("unpool")(x, indices, chosen)  # type: ignore[no-any-return]


def _check_places(function: str, indices: Any, plane: int) -> None:
    if indices.payload.is_traced or not indices.size:
        return
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or high >= plane:
        raise ValueError(f"{function}: indices should be from 0 to {plane - 1}, got {low} to {high}")


@validate_call
def max_unpool1d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Any = 0,
    data_format: str = "NCL",
    output_size: Any = None,
    name: str | None = None,
) -> Tensor:
    """Maxima [N, C, L] back at the places where ``max_pool1d(..., return_mask=True)`` found them, zeros elsewhere."""
    return _unpool(1, x, indices, kernel_size, stride, padding, data_format, output_size)


@validate_call
def max_unpool2d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Any = 0,
    data_format: str = "NCHW",
    output_size: Any = None,
    name: str | None = None,
) -> Tensor:
    """Maxima [N, C, H, W] back at the places where ``max_pool2d(..., return_mask=True)`` found them."""
    return _unpool(2, x, indices, kernel_size, stride, padding, data_format, output_size)


@validate_call
def max_unpool3d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Any = 0,
    data_format: str = "NCDHW",
    output_size: Any = None,
    name: str | None = None,
) -> Tensor:
    """Maxima [N, C, D, H, W] back at the places where ``max_pool3d(..., return_mask=True)`` found them."""
    return _unpool(3, x, indices, kernel_size, stride, padding, data_format, output_size)


def _fractional_pool(rank: int, x: Any, output_size: Any, kernel_size: Any, random_u: float | None, mask: bool) -> Any:
    function = f"fractional_max_pool{rank}d"
    if x.ndim != rank + 2:
        raise ValueError(f"{function}: x has {rank + 2} axes, got shape {list(x.shape)}")
    if random_u is None:
        random_u = float(uniform_from_bits(philox_bits(*context().generator.draw(), [1]))[0])
    elif not 0 < random_u < 1:
        raise ValueError(f"{function}: random_u is between 0 and 1, got {random_u}")
    sizes = [output_size] * rank if isinstance(output_size, Integral) else list(output_size)
    sizes = [n if out is None else out for out, n in zip(sizes, x.shape[2:], strict=True)]
    kernels = [0] * rank if kernel_size is None else _each(function, "kernel_size", kernel_size, rank)
    windows = [_windows(n, out, k, random_u) for n, out, k in zip(x.shape[2:], sizes, kernels, strict=True)]
    pooled, places = get_operator("fractional_windows")(x, [w[0] for w in windows], [w[1] for w in windows])
    return (pooled, places) if mask else pooled


def _windows(size: int, count: int, kernel: int, u: float) -> tuple[list[int], list[int]]:
    """Where ``count`` windows over ``size`` elements begin and end (Graham, 2014)."""
    ratio = (size - kernel) / (count - (1 if kernel else 0)) if count > 1 or not kernel else 0.0
    if not kernel:
        base = size // count
        u *= min((base + 2) / ratio - 1, (size + 1 - base) / ratio - (count - 1))
    starts = [int((i + u) * ratio) - int(u * ratio) for i in range(count)]
    if kernel:
        return starts, [min(start + kernel, size) for start in starts]
    return starts, [min(int((i + 1 + u) * ratio) - int(u * ratio), size) for i in range(count)]


@validate_call
def fractional_max_pool2d(
    x: Tensor,
    output_size: Any,
    kernel_size: Sizes | None = None,
    random_u: float | None = None,
    return_mask: bool = False,
    name: str | None = None,
) -> Any:
    """Maxima [N, C, *output_size] of [N, C, H, W] over windows whose sizes differ by one at random (Graham, 2014).

    ``random_u`` in (0, 1) makes the choice; windows overlap when ``kernel_size`` is given. With ``return_mask`` the
    places of the maxima (int32) come, too. Returns a tensor, or (maxima, indices).
    """
    return _fractional_pool(2, x, output_size, kernel_size, random_u, return_mask)


@validate_call
def fractional_max_pool3d(
    x: Tensor,
    output_size: Any,
    kernel_size: Sizes | None = None,
    random_u: float | None = None,
    return_mask: bool = False,
    name: str | None = None,
) -> Any:
    """Maxima of [N, C, D, H, W]; see :func:`fractional_max_pool2d`. Returns a tensor, or (maxima, indices)."""
    return _fractional_pool(3, x, output_size, kernel_size, random_u, return_mask)


class _Unpool(Layer):
    """``functional.max_unpool<n>d`` with its settings."""

    function: ClassVar[str]

    def _keep(self, kernel_size: Sizes, stride: Any, padding: Any, data_format: str, output_size: Any) -> None:
        self.ksize, self.stride, self.padding = kernel_size, stride, padding
        self.data_format, self.output_size = data_format, output_size

    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """The larger input; ``output_size`` wins over the layer's."""
        size = self.output_size if output_size is None else output_size
        settings = (self.ksize, self.stride, self.padding, self.data_format, size)
        return getattr(F, self.function)(x, indices, *settings)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The output's size."""
        return f"output_size={self.output_size}"


class MaxUnPool1D(_Unpool):
    """The inverse of MaxPool1D with ``return_mask``, as far as there is one."""

    function = "max_unpool1d"

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Any = 0,
        data_format: str = "NCL",
        output_size: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._keep(kernel_size, stride, padding, data_format, output_size)


class MaxUnPool2D(_Unpool):
    """The inverse of MaxPool2D with ``return_mask``, as far as there is one."""

    function = "max_unpool2d"

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Any = 0,
        data_format: str = "NCHW",
        output_size: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._keep(kernel_size, stride, padding, data_format, output_size)


class MaxUnPool3D(_Unpool):
    """The inverse of MaxPool3D with ``return_mask``, as far as there is one."""

    function = "max_unpool3d"

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Any = 0,
        data_format: str = "NCDHW",
        output_size: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._keep(kernel_size, stride, padding, data_format, output_size)


class _FractionalMaxPool(Layer):
    function: ClassVar[str]

    def __init__(
        self,
        output_size: Any,
        kernel_size: Sizes | None = None,
        random_u: float | None = None,
        return_mask: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.random_u, self.return_mask = random_u, return_mask

    def forward(self, x: Tensor) -> Any:
        """The pooled input, with ``return_mask`` also the places of the maxima."""
        settings = (self.output_size, self.kernel_size, self.random_u, self.return_mask)
        return getattr(F, self.function)(x, *settings)

    def extra_repr(self) -> str:
        """The settings."""
        return f"output_size={self.output_size}, return_mask={self.return_mask}"


class FractionalMaxPool2D(_FractionalMaxPool):
    """:func:`fractional_max_pool2d` as a layer."""

    function = "fractional_max_pool2d"


class FractionalMaxPool3D(_FractionalMaxPool):
    """:func:`fractional_max_pool3d` as a layer."""

    function = "fractional_max_pool3d"
