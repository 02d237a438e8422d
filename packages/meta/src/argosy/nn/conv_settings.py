"""What convolution layers hold their settings against when they are made, before there is an input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.argument_checks import check_choice
from argosy.nn.integers import Integral

__all__ = ["LAYOUTS", "check_settings"]

_OF_AXES = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
LAYOUTS = tuple(layout for layouts in _OF_AXES.values() for layout in layouts)
"""Those of inputs with one, two or three spatial axes."""


def check_settings(name: str, spatial: int, data_format: str, padding: Any, **steps: int | Sequence[int]) -> None:
    """Raise ``ValueError`` for settings of the layer ``name`` over ``spatial`` axes that no input fits."""
    check_choice(name, "data_format", data_format, _OF_AXES[spatial])
    for argument, given in steps.items():
        if not isinstance(given, Integral) and len(given) not in (1, spatial):
            raise ValueError(f"{name}(): argument {argument!r} should hold {spatial} numbers, got {list(given)}")
    _check_padding(name, spatial, padding)


def _check_padding(name: str, spatial: int, padding: int | str | Sequence[Any]) -> None:
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(f"{name}(): argument 'padding' should be numbers, 'SAME' or 'VALID', got {padding!r}")
        return
    given = [padding] if isinstance(padding, Integral) else list(padding)
    pairs = [each for each in given if not isinstance(each, Integral)]
    counts = sorted({spatial, spatial + 2} if pairs else {1, spatial, 2 * spatial})
    if len(given) not in counts or (pairs and (len(pairs) != len(given) or any(len(p) != 2 for p in pairs))):
        counted = " or ".join(map(str, counts)) + (" pairs" if pairs else " numbers")
        raise ValueError(f"{name}(): argument 'padding' should hold {counted}, got {padding}")
    numbers = [n for each in given for n in ([each] if isinstance(each, Integral) else each)]
    if any(isinstance(n, Integral) and n < 0 for n in numbers):
        raise ValueError(f"{name}(): argument 'padding' should hold no negative numbers, got {padding}")
