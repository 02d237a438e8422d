"""How tensors print, in Paddle's format::

Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
       [1., 2.])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_tensorcore.conversion import host_array, is_elsewhere
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import Array
from argosy_tensorcore.uninitialized_payload import UninitializedPayload

if TYPE_CHECKING:
    from argosy_tensorcore.tensor import Tensor


class PrintOptions:
    """precision: digits after the point; threshold: element count above which the middle is left out;
    edgeitems: what stays at either end; linewidth: characters per line; sci_mode: scientific notation.
    """

    __slots__ = ("edgeitems", "linewidth", "precision", "sci_mode", "threshold")

    def __init__(self) -> None:
        self.precision, self.threshold, self.edgeitems = 8, 1000, 3
        self.linewidth, self.sci_mode = 80, False


OPTIONS = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    sci_mode: bool | None = None,
    linewidth: int | None = None,
) -> None:
    """Change how tensors print from now on; what is None stays. Raises TypeError for other types."""
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in given.items():
        if value is not None and type(value) is not int:
            raise TypeError(f"set_printoptions: {name} must be an int, not {value!r}")
    if sci_mode is not None and type(sci_mode) is not bool:
        raise TypeError(f"set_printoptions: sci_mode must be a bool, not {sci_mode!r}")
    for name, value in (given | {"sci_mode": sci_mode}).items():
        if value is not None:
            setattr(OPTIONS, name, value)


def _layout(payload: object) -> str:
    """What a payload of its own kind says before the values: a distributed one its mesh and placements."""
    describe = getattr(payload, "describe", None)
    return "" if describe is None else f" {describe()}"


def format_tensor(tensor: Tensor, prefix: str = "Tensor") -> str:
    """The text of a tensor; a traced one shows its payload instead of values."""
    indent = len(prefix) + 1
    payload = tensor.payload
    heading = "Parameter containing:\n" if tensor.is_parameter else ""
    text = (
        f"{heading}{prefix}(shape={list(payload.shape)}, dtype={payload.dtype.name}, place={tensor.place!r}, "
        f"stop_gradient={tensor.stop_gradient},{_layout(payload)}"
    )
    if is_elsewhere(tensor) or type(payload) is UninitializedPayload:
        return f"{text})"
    values = repr(payload) if payload.is_traced else format_array(host_array(tensor, "printing"), indent)
    return f"{text}\n{' ' * indent}{values})"


def format_array(a: Array, indent: int = 0) -> str:
    """The nested brackets of an array whose first bracket stands in column indent."""
    if not as_dtype(a.dtype).in_numpy:  # bfloat16 and float8 print as the float32 they stand for
        a = a.astype(np.float32)
    return _Formatter(a).format(a, indent)


class _Formatter:
    """One array's common element width, found from the elements that may be shown."""

    def __init__(self, a: Array) -> None:
        self.options = OPTIONS
        self.summarised = a.ndim > 0 and a.size > self.options.threshold
        shown = _edges(a, self.options.edgeitems).reshape(-1)
        self.signed = bool((shown < 0).any()) if shown.dtype.kind != "b" else False
        self.width = max((len(self.element(x)) for x in shown), default=0)

    def element(self, x: Any) -> str:
        """The text of one element, unpadded."""
        if x.dtype.kind == "c":
            style = f".{self.options.precision}{'e' if self.options.sci_mode else 'f'}"
            return f"({x.real:{style}}{x.imag:+{style}}j)"
        if x.dtype.kind != "f":
            return str(x)
        if self.options.sci_mode:
            return f"{x:.{self.options.precision}e}"
        return f"{x:.0f}." if np.ceil(x) == x else f"{x:.{self.options.precision}f}"

    def pad(self, x: Any) -> str:
        """The text of one element in the common width, with room for a sign where any element has one."""
        text = self.element(x)
        if self.signed and len(text) < self.width and not x < 0:
            text = " " + text
        return text.ljust(self.width)

    def format(self, a: Array, indent: int) -> str:
        """The text of an array of any rank."""
        if a.ndim == 0:
            return self.pad(a[()])
        if a.ndim == 1:
            return self._row(a, indent)
        parts = self._ends(a, lambda part: self.format(part, indent + 1))
        return "[" + ("," + "\n" * (a.ndim - 1) + " " * (indent + 1)).join(parts) + "]"

    def _row(self, a: Array, indent: int) -> str:
        items = self._ends(a, self.pad)
        per_line = max(1, (self.options.linewidth - indent) // (self.width + 2))
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"

    def _ends(self, a: Array, show: Any) -> list[str]:
        """All parts along the first axis, or the ends with dots between when the array is summarised."""
        edge = self.options.edgeitems
        if not self.summarised or len(a) <= 2 * edge:
            return [show(part) for part in a]
        return [*(show(part) for part in a[:edge]), "...", *(show(part) for part in a[len(a) - edge :])]


def _edges(a: Array, edge: int) -> Array:
    """The elements within edge of either end of every axis, which alone decide the width."""
    for axis in range(a.ndim):
        if a.shape[axis] > 2 * edge:
            index = np.r_[0:edge, a.shape[axis] - edge : a.shape[axis]]
            a = a.take(index, axis)
    return a
