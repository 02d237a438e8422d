"""Discrete Fourier transforms: ``paddle.fft`` on the transforms of the operator library.

``n`` and ``s`` are lengths to which the input is cut or padded with zeros first. ``norm`` says which direction is
divided by the number of points: "backward" the inverse one, "forward" the forward one, "ortho" both, by its square
root.
"""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.argument_checks import validate_call
from argosy.framework.aliases import parameter_aliases
from argosy_phi_ops.declare.composition import Composition
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

Sizes = Sequence[int] | None

taking_out = partial(Composition, out=True)
"""Decorator: the function can put its result in a tensor ``out``."""


def _place_spectrum(name: str, x: Tensor, s: Sizes, axes: Sizes) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """The axes meant by ``s`` and ``axes`` (the last ones by default), and the lengths wanted along them."""
    rank = len(x.shape)
    if axes is None:
        axes = range(rank - len(s), rank) if s is not None else range(rank)
    along = tuple(axis + rank if axis < 0 else axis for axis in axes)
    if any(not 0 <= axis < rank for axis in along) or len(set(along)) != len(along) or not along:
        raise ValueError(f"{name}: axes {list(axes)} do not name different axes of a tensor of shape {list(x.shape)}")
    if s is None:
        return along, None
    if len(s) != len(along) or any(n < 1 for n in s):
        raise ValueError(f"{name}: s {list(s)} should hold a positive length for each of the axes {list(along)}")
    return along, tuple(s)


def _check_two(name: str, s: Sizes, axes: Sizes) -> None:
    """Raise ValueError for other numbers of axes or sizes than two, where they are given."""
    for argument, value in (("s", s), ("axes", axes)):
        if value is not None and (not isinstance(value, (list, tuple)) or len(value) != 2):
            raise ValueError(f"{name}: {argument} should be two integers, got {value!r}")


def _resize(x: Tensor, axes: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """``x`` cut, or padded with zeros at the end, to ``sizes`` along ``axes``."""
    for axis, n in zip(axes, sizes, strict=True):
        have = x.shape[axis]
        if n < have:
            x = get_operator("slice")(x, [axis], [0], [n])
        elif n > have:
            shape = [n - have if i == axis else size for i, size in enumerate(x.shape)]
            x = get_operator("concat")([x, get_operator("zeros")(shape, x.dtype)], axis)
    return x


def _complex_transform(name: str, x: Tensor, s: Sizes, axes: Sizes, norm: str, forward: bool) -> Tensor:
    along, sizes = _place_spectrum(name, x, s, axes)
    if sizes is not None:
        x = _resize(x, along, sizes)
    return get_operator("fft_c2c")(x, along, norm, forward)


def _from_real(name: str, x: Tensor, s: Sizes, axes: Sizes, norm: str, forward: bool) -> Tensor:
    along, sizes = _place_spectrum(name, x, s, axes)
    if sizes is not None:
        x = _resize(x, along, sizes)
    return get_operator("fft_r2c")(x, along, norm, forward, True)


def _to_real(name: str, x: Tensor, s: Sizes, axes: Sizes, norm: str, forward: bool) -> Tensor:
    along, sizes = _place_spectrum(name, x, s, axes)
    length = 2 * (x.shape[along[-1]] - 1) if sizes is None else sizes[-1]
    open_length = not isinstance(length, int)
    if not open_length and length < 1:
        raise ValueError(
            f"{name}: {x.shape[along[-1]]} frequencies along axis {along[-1]} give no element; pass a size"
        )
    if x.dtype.kind != "c":  # frequencies without imaginary parts
        wide = x.dtype.name if x.dtype.kind == "f" else default_dtype().name
        x = x.astype("complex128" if wide == "float64" else "complex64")
    if sizes is not None:
        x = _resize(x, along, (*sizes[:-1], length // 2 + 1))
    return get_operator("fft_c2r")(x, along, norm, forward, 0 if open_length else length)


def _one(n: int | None) -> Sizes:
    return None if n is None else [n]


@taking_out
def fft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None) -> Tensor:
    """The transform along ``axis``: complex, of the shape of ``x`` (``n`` along the axis)."""
    return _complex_transform("fft", x, _one(n), [axis], norm, True)


@taking_out
def ifft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None) -> Tensor:
    """The inverse of :func:`fft`."""
    return _complex_transform("ifft", x, _one(n), [axis], norm, False)


@taking_out
def rfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None) -> Tensor:
    """The ``n // 2 + 1`` non-negative frequencies of real ``x`` along ``axis``."""
    return _from_real("rfft", x, _one(n), [axis], norm, True)


@taking_out
def irfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None) -> Tensor:
    """The inverse of :func:`rfft`: real, of length ``n`` (even by default)."""
    return _to_real("irfft", x, _one(n), [axis], norm, False)


@taking_out
def hfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None) -> Tensor:
    """The real transform of a signal that is Hermitian in time, given by its first half."""
    return _to_real("hfft", x, _one(n), [axis], norm, True)


@taking_out
def ihfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None) -> Tensor:
    """The inverse of :func:`hfft`."""
    return _from_real("ihfft", x, _one(n), [axis], norm, False)


@taking_out
def fftn(x: Tensor, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None) -> Tensor:
    """:func:`fft` along several axes (all by default)."""
    return _complex_transform("fftn", x, s, axes, norm, True)


@taking_out
def ifftn(x: Tensor, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None) -> Tensor:
    """The inverse of :func:`fftn`."""
    return _complex_transform("ifftn", x, s, axes, norm, False)


@taking_out
def rfftn(x: Tensor, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None) -> Tensor:
    """:func:`fftn` of real ``x``; the last axis keeps its non-negative frequencies."""
    return _from_real("rfftn", x, s, axes, norm, True)


@taking_out
def irfftn(x: Tensor, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None) -> Tensor:
    """The inverse of :func:`rfftn`."""
    return _to_real("irfftn", x, s, axes, norm, False)


@taking_out
def hfftn(x: Tensor, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None) -> Tensor:
    """:func:`hfft` along several axes."""
    return _to_real("hfftn", x, s, axes, norm, True)


@taking_out
def ihfftn(x: Tensor, s: Sizes = None, axes: Sizes = None, norm: str = "backward", name: str | None = None) -> Tensor:
    """The inverse of :func:`hfftn`."""
    return _from_real("ihfftn", x, s, axes, norm, False)


@taking_out
def fft2(x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None) -> Tensor:
    """:func:`fftn` along two axes."""
    _check_two("fft2", s, axes)
    return fftn(x, s, axes, norm)


@taking_out
def ifft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """:func:`ifftn` along two axes."""
    _check_two("ifft2", s, axes)
    return ifftn(x, s, axes, norm)


@taking_out
def rfft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """:func:`rfftn` along two axes."""
    _check_two("rfft2", s, axes)
    return rfftn(x, s, axes, norm)


@taking_out
def irfft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """:func:`irfftn` along two axes."""
    _check_two("irfft2", s, axes)
    return irfftn(x, s, axes, norm)


@taking_out
def hfft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """:func:`hfftn` along two axes."""
    _check_two("hfft2", s, axes)
    return hfftn(x, s, axes, norm)


@taking_out
def ihfft2(
    x: Tensor, s: Sizes = None, axes: Sizes = (-2, -1), norm: str = "backward", name: str | None = None
) -> Tensor:
    """:func:`ihfftn` along two axes."""
    _check_two("ihfft2", s, axes)
    return ihfftn(x, s, axes, norm)


@taking_out
def fftfreq(
    n: int,
    d: float = 1.0,
    dtype: object = None,
    name: str | None = None,
    *,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of :func:`fft` for ``n`` points that lie ``d`` apart: from 0 up, then the negative ones."""
    wanted = dtype or default_dtype()
    counts = [*range((n + 1) // 2), *range(-(n // 2), 0)]
    return Tensor([count / (n * d) for count in counts], wanted, device, not requires_grad)


@taking_out
def rfftfreq(
    n: int,
    d: float = 1.0,
    dtype: object = None,
    name: str | None = None,
    *,
    device: object = None,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of :func:`rfft` for ``n`` points that lie ``d`` apart."""
    return Tensor([count / (n * d) for count in range(n // 2 + 1)], dtype or default_dtype(), device, not requires_grad)


def _shift(x: Tensor, axes: int | Sequence[int] | None, forward: bool) -> Tensor:
    along = list(range(len(x.shape))) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    shifts = [x.shape[axis] // 2 if forward else -(x.shape[axis] // 2) for axis in along]
    return get_operator("roll")(x, shifts, along)


@parameter_aliases(input="x", dim="axes")
@validate_call
def fftshift(x: Tensor, axes: int | Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """The spectrum with the frequency 0 moved to the middle along ``axes`` (all by default)."""
    return _shift(x, axes, True)


@parameter_aliases(input="x", dim="axes")
@validate_call
def ifftshift(x: Tensor, axes: int | Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """The inverse of :func:`fftshift`."""
    return _shift(x, axes, False)
