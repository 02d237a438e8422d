"""Windows as functions of their own, under the names that other frameworks have, too: ``hann_window(512)``.

They are those of :func:`argosy.audio.functional.get_window`, in float32 by default.
"""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import validate_call
from argosy.signal.windows import get_window
from argosy_tensorcore.place import as_place
from argosy_tensorcore.tensor import Tensor

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]


def _place(window: Any, device: Any, pin_memory: bool, requires_grad: bool) -> Tensor:
    placed = window.pin_memory() if pin_memory else window if device is None else window.to(as_place(device))
    placed.stop_gradient = not requires_grad
    return placed  # type: ignore[no-any-return]


@validate_call
def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: str = "float32",
    layout: str | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle, [window_length]; ``periodic`` for spectra, else symmetric. ``layout`` is taken and ignored."""
    return _place(get_window("bartlett", window_length, periodic, dtype), device, pin_memory, requires_grad)


@validate_call
def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: str = "float32",
    layout: str | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Blackman's window of three cosines, [window_length]; see :func:`bartlett_window`."""
    return _place(get_window("blackman", window_length, periodic, dtype), device, pin_memory, requires_grad)


@validate_call
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: str = "float32",
    layout: str | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """``alpha - beta cos(2 pi n / N)``, [window_length]; see :func:`bartlett_window`."""
    raised: Any = get_window("hann", window_length, periodic, dtype)  # (1 - cos) / 2
    window = raised * (2.0 * beta) + (alpha - beta) if window_length > 1 else raised
    return _place(window, device, pin_memory, requires_grad)


@validate_call
def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: str = "float32",
    layout: str | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """``(1 - cos(2 pi n / N)) / 2``, [window_length]; see :func:`bartlett_window`."""
    return _place(get_window("hann", window_length, periodic, dtype), device, pin_memory, requires_grad)


@validate_call
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: str = "float32",
    layout: str | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Kaiser's window of the parameter ``beta``, [window_length]; see :func:`bartlett_window`."""
    return _place(get_window(("kaiser", beta), window_length, periodic, dtype), device, pin_memory, requires_grad)
