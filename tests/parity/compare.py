"""Whether argosy's outcome is the wheel's."""

from __future__ import annotations

from typing import Any

import numpy as np

from parity.runner import Outcome

__all__ = ["TOLERANCES", "differences", "distribution_differences"]

TOLERANCES = {
    "float32": (1e-5, 2e-6),
    "float64": (1e-10, 1e-12),
    "narrow": (1.6e-2, 1e-2),
    "complex64": (1e-5, 2e-6),
    "complex128": (1e-10, 1e-12),
}
"""Relative and absolute tolerance by dtype, the latter times the largest magnitude of the expected array (of gradients:
of all gradients of the case) where that exceeds one; all other dtypes must be equal. "narrow" is for results in float32
of cases in bfloat16 and float16. In a case with results or gradients in float32, those in float64 come from numbers in
float32 as well."""

_SINGLE = ("float32", "complex64")

REFUSALS = ("ValueError", "TypeError", "IndexError", "NotImplementedError", "ZeroDivisionError")
"""The builtin classes that an operator's error for wrong arguments has."""


def differences(expected: Outcome, found: Outcome, with_gradients: bool, narrow: bool = False) -> list[str]:
    """What differs, in words; empty when nothing does. ``narrow``: the case computes in half precision."""
    if expected.error:  # argosy may do more than the wheel, but when it refuses, it does so as users may expect
        return [f"argosy raises {found.message}"] if found.error not in ("", expected.error, *REFUSALS) else []
    if found.error:
        return [f"the wheel gives a result, argosy raises {found.message}"]
    arrays = [a for a in (*expected.outputs, *(expected.gradients or ())) if isinstance(a, np.ndarray)]
    floor = "narrow" if narrow else next((str(a.dtype) for a in arrays if a.dtype in _SINGLE), "")
    wrong = _lists("output", expected.outputs, found.outputs, floor)
    if with_gradients and expected.gradients:  # argosy may differentiate what the wheel does not
        if found.gradient_error:
            wrong.append(f"the wheel gives gradients, argosy raises {found.message}")
        else:
            wrong += _lists("gradient", [*map(_or_zero, expected.gradients, found.gradients)], found.gradients, floor)
    return wrong


def distribution_differences(expected: Outcome, found: Outcome) -> list[str]:
    """What differs between two samples by their quantiles: the greatest distance of their distribution functions.

    The bound is that of Kolmogorov and Smirnov for two samples of 2**16 numbers at level 1e-6, and one step of the
    quantiles. Extremes are left out where they are of no finite variance.
    """
    if expected.error or found.error:
        return differences(expected, found, False)
    first, second = (np.sort(o.outputs[0].astype("float64")) for o in (expected, found))
    points = np.union1d(first, second)
    distances = [np.searchsorted(s, points, side) / s.size for side in ("right", "left") for s in (first, second)]
    gap = max(np.abs(distances[0] - distances[1]).max(), np.abs(distances[2] - distances[3]).max())
    limit = 2.7 * (2 / 2**16) ** 0.5 + 1 / first.size
    return [f"the distribution functions are {gap:.4f} apart, more than {limit:.4f}"] if gap > limit else []


def _or_zero(expected: Any, found: Any) -> Any:
    """No gradient and a gradient of zeros are the same claim."""
    return np.zeros_like(found) if expected is None and isinstance(found, np.ndarray) else expected


def _lists(what: str, expected: list[Any], found: list[Any], floor: str) -> list[str]:
    if len(expected) != len(found):
        return [f"{len(expected)} {what}s of the wheel, {len(found)} of argosy"]
    scale = max((_magnitude(e) for e in expected), default=0.0) if what == "gradient" else 0.0
    texts = [_values(e, f, floor, scale) for e, f in zip(expected, found, strict=True)]
    return [f"{what} {i}: {text}" for i, text in enumerate(texts) if text]


def _magnitude(array: Any) -> float:
    """The largest finite magnitude of an array of floating or complex numbers."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fc":
        return 0.0
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


def _values(expected: Any, found: Any, floor: str, scale: float) -> str:
    if not isinstance(expected, np.ndarray) or not isinstance(found, np.ndarray):
        same = type(expected) is type(found) and expected == found
        return "" if same else f"the wheel gives {expected!r}, argosy {found!r}"
    for name in ("dtype", "shape"):
        if getattr(expected, name) != getattr(found, name):
            return f"{name} {getattr(expected, name)} of the wheel, {getattr(found, name)} of argosy"
    close = _close(expected, found, floor, scale)
    if close.all():
        return ""
    where = tuple(int(i) for i in np.argwhere(~close)[0])
    count = int((~close).sum())
    return f"{count} of {close.size} differ, first at {where}: {expected[where]!r} of the wheel, {found[where]!r}"


def _close(expected: np.ndarray, found: np.ndarray, floor: str, scale: float) -> np.ndarray:
    """``floor``: the dtype of the least precision in the case, where it is not each array's own. ``scale``: the largest
    magnitude beside these numbers; they are sums of terms as large, which may have cancelled in all of an array."""
    name = floor if floor and expected.dtype.kind in "fc" else str(expected.dtype)
    relative, absolute = TOLERANCES.get(name, (0.0, 0.0))
    if not relative:
        return np.asarray(expected == found)
    absolute *= max(1.0, scale, _magnitude(expected))
    return np.isclose(found, expected, rtol=relative, atol=absolute, equal_nan=True)
