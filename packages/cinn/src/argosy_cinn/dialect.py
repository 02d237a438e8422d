"""Operations of the compiler's own, which stand between primitives and kernels."""

from __future__ import annotations

from argosy_pir.core import Operation
from argosy_pir.dialect import Dialect, register_dialect
from argosy_pir.opdef import EFFECT, PURE, OpDef

#: The windows of a convolution's input, see `argosy_cinn.rewrites.convolution`.
PATCHES = "cinn.patches"
#: A value that has memory whatever it is made by: an image that a product would otherwise look at through views.
KEPT = "cinn.kept"
#: The positions that sort tensors together, see `argosy_cinn.ordering`.
ORDER = "cinn.order"
#: A step of a Fourier transform, see `argosy_cinn.fourier`.
FOURIER = "cinn.fourier"
#: A product whose terms have a scale for each group and output, see `argosy_cinn.rewrites.scaled_products`.
SCALED = "cinn.scaled_product"
#: A grouped product whose matrices have a scale for each group of inputs and output.
SCALED_GROUPED = "cinn.scaled_grouped_dot"
#: Where the first index that is out of range is, and what it is, for the call to raise; see `argosy_cinn.checks`.
NOTE = "cinn.note_index"

_OPERATIONS = {
    PATCHES: ["x"],
    KEPT: ["x"],
    ORDER: ["*keys"],
    FOURIER: ["x"],
    SCALED: ["x", "weight", "scales", "offsets?"],
    SCALED_GROUPED: ["lhs", "rhs", "starts", "scales", "offsets?"],
}

_DEFINITIONS = [OpDef(name, operands, traits=[PURE]) for name, operands in _OPERATIONS.items()]
_DEFINITIONS.append(OpDef(NOTE, ["first", "value"], traits=[EFFECT]))

register_dialect(Dialect("cinn", _DEFINITIONS))


def window_axes(op: Operation) -> list[tuple[int, int, int, int]]:
    """(stride, low padding, spread of the input, spread of the window) of every spatial axis of ``cinn.patches``."""
    a = op.attributes
    return [
        (stride, padding[0], spread, dilation)
        for stride, padding, spread, dilation in zip(
            a["strides"], a["padding"], a["lhs_dilation"], a["rhs_dilation"], strict=True
        )
    ]
