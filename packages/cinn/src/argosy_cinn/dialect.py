"""Operations of the compiler's own, which stand between primitives and kernels."""

from __future__ import annotations

from argosy_pir.dialect import Dialect, register_dialect
from argosy_pir.opdef import PURE, OpDef

#: The windows of a convolution's input, see `argosy_cinn.rewrites.convolution`.
PATCHES = "cinn.patches"
#: A value that has memory whatever it is made by: an image that a product would otherwise look at through views.
KEPT = "cinn.kept"
#: The positions that sort tensors together, see `argosy_cinn.ordering`.
ORDER = "cinn.order"
#: A step of a Fourier transform, see `argosy_cinn.fourier`.
FOURIER = "cinn.fourier"

_OPERATIONS = {PATCHES: ["x"], KEPT: ["x"], ORDER: ["*keys"], FOURIER: ["x"]}

register_dialect(Dialect("cinn", [OpDef(name, operands, traits=[PURE]) for name, operands in _OPERATIONS.items()]))
