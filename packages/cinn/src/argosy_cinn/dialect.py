"""Operations of the compiler's own, which stand between primitives and kernels."""

from __future__ import annotations

from argosy_pir.dialect import Dialect, register_dialect
from argosy_pir.opdef import PURE, OpDef

#: The windows of a convolution's input, see `argosy_cinn.rewrites.convolution`.
PATCHES = "cinn.patches"
#: The positions that sort tensors together, see `argosy_cinn.ordering`.
ORDER = "cinn.order"

register_dialect(Dialect("cinn", [OpDef(PATCHES, ["x"], traits=[PURE]), OpDef(ORDER, ["*keys"], traits=[PURE])]))
