"""Windows of signals, by name (Harris, 1978, unless a function names another source)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import argosy.runtime  # noqa: F401  (operators come with the first tensor)
from argosy.argument_checks import validate_call
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["get_window"]

Window = np.ndarray[Any, Any]


@validate_call
def get_window(window: str | tuple[Any, ...], win_length: int, fftbins: bool = True, dtype: str = "float64") -> Tensor:
    """The window of that name, [win_length]; one with parameters is a tuple of its name and these.

    fftbins: periodic, as spectra want it; else symmetric. Raises ``ValueError`` for an unknown name, for parameters
    that are missing, and for a negative length.
    """
    name, *parameters = window if isinstance(window, tuple) else (window,)
    function = _WINDOWS.get(name)
    if function is None:
        raise ValueError(f"get_window(): argument 'window' should be one of {', '.join(_WINDOWS)}, got {window!r}")
    if win_length < 0:
        raise ValueError(f"get_window(): argument 'win_length' should not be negative, got {win_length}")
    needed = _NEEDED.get(name, 0)
    if len(parameters) < needed:
        raise ValueError(f"get_window(): the window {name!r} needs {needed} parameters in a tuple, got {window!r}")
    length = int(win_length)
    if length <= 1:
        values = np.ones(length)
    else:
        values = function(length + 1, *parameters)[:-1] if fftbins else function(length, *parameters)
    return Tensor(values.astype(as_dtype(dtype).numpy))


def _centre(n: int) -> Window:
    return np.arange(n) - (n - 1) / 2


def _general_cosine(n: int, a: Sequence[float]) -> Window:
    angles = np.linspace(-math.pi, math.pi, n)
    return np.sum([factor * np.cos(k * angles) for k, factor in enumerate(a)], axis=0)  # type: ignore[no-any-return]


def _general_hamming(n: int, alpha: float) -> Window:
    return _general_cosine(n, [alpha, 1.0 - alpha])


def _bartlett(n: int) -> Window:
    return 1.0 - np.abs(_centre(n)) * 2.0 / (n - 1)


def _kaiser(n: int, beta: float) -> Window:
    return np.kaiser(n, beta)


def _general_gaussian(n: int, p: float, sig: float) -> Window:
    return np.exp(-0.5 * np.abs(_centre(n) / sig) ** (2 * p))


def _gaussian(n: int, std: float) -> Window:
    return _general_gaussian(n, 1.0, std)


def _exponential(n: int, center: float | None = None, tau: float = 1.0) -> Window:
    middle = (n - 1) / 2 if center is None else center
    return np.exp(-np.abs(np.arange(n) - middle) / tau)  # type: ignore[no-any-return]


def _triang(n: int) -> Window:
    return 1.0 - np.abs(_centre(n)) * 2.0 / (n + n % 2)


def _bohman(n: int) -> Window:
    distance = np.abs(np.linspace(-1, 1, n))
    values = (1 - distance) * np.cos(math.pi * distance) + np.sin(math.pi * distance) / math.pi
    values[[0, -1]] = 0.0
    return values


def _cosine(n: int) -> Window:
    return np.sin(math.pi / n * (np.arange(n) + 0.5))  # type: ignore[no-any-return]


def _tukey(n: int, alpha: float = 0.5) -> Window:
    """Half a cosine at each end, ``alpha`` of the length together."""
    if alpha <= 0:
        return np.ones(n)
    reach = min(alpha, 1.0) * (n - 1) / 2.0
    from_end = np.minimum(np.arange(n), np.arange(n)[::-1])
    return np.where(from_end <= reach, 0.5 * (1 - np.cos(math.pi * from_end / reach)), 1.0)


def _taylor(n: int, nbar: int = 4, sll: float = 30, norm: bool = True) -> Window:
    """``nbar`` side lobes of nearly ``sll`` decibels (Taylor, 1955)."""
    a = np.arccosh(10 ** (sll / 20)) / math.pi
    spread = nbar**2 / (a**2 + (nbar - 0.5) ** 2)
    m = np.arange(1, nbar)
    factors = np.empty(nbar - 1)
    for i in range(nbar - 1):
        above = np.prod(1 - m[i] ** 2 / spread / (a**2 + (m - 0.5) ** 2))
        below = np.prod(1 - m[i] ** 2 / np.delete(m, i) ** 2.0)
        factors[i] = (-1) ** i * above / (2 * below)

    def at(places: Any) -> Any:
        return 1 + 2 * factors @ np.cos(2 * math.pi * m[:, None] * (places - n / 2.0 + 0.5) / n)

    values = at(np.arange(n))
    return values / at(np.array([(n - 1) / 2])) if norm else values  # type: ignore[no-any-return]


_WINDOWS: dict[str, Callable[..., Window]] = {
    "bartlett": _bartlett,
    "blackman": lambda n: _general_cosine(n, [0.42, 0.5, 0.08]),
    "bohman": _bohman,
    "cosine": _cosine,
    "exponential": _exponential,
    "gaussian": _gaussian,
    "general_cosine": _general_cosine,
    "general_gaussian": _general_gaussian,
    "general_hamming": _general_hamming,
    "hamming": lambda n: _general_hamming(n, 0.54),
    "hann": lambda n: _general_hamming(n, 0.5),
    "kaiser": _kaiser,
    "nuttall": lambda n: _general_cosine(n, [0.3635819, 0.4891775, 0.1365995, 0.0106411]),
    "taylor": _taylor,
    "triang": _triang,
    "tukey": _tukey,
}
_NEEDED = {
    "gaussian": 1,
    "exponential": 1,
    "kaiser": 1,
    "general_gaussian": 2,
    "general_hamming": 1,
    "general_cosine": 1,
}
