"""Operations of constants are constants."""

from __future__ import annotations

import numpy as np

from argosy_cinn.rewrites.building import constant, result_type, splat_of
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.reference.kernels import kernel_for
from argosy_pir.core import Operation
from argosy_pir.values import Value

FOLDABLE = frozenset(name for name, p in PRIMITIVES.items() if p.category == "elementwise") | {
    "broadcast",
    "reshape",
    "transpose",
    "slice",
    "reverse",
}


def fold_constants(op: Operation) -> Value | None:
    """Elementwise and layout operations of splat constants are splat constants."""
    name = op.kind
    if name not in FOLDABLE or not op.operands:
        return None
    numbers = [splat_of(v) for v in op.operands]
    if any(n is None for n in numbers):
        return None
    type = result_type(op)
    if PRIMITIVES[name].category != "elementwise":
        return constant(numbers[0], type)
    attributes = {k: v for k, v in op.attributes.items() if k != "phase"}
    folded = kernel_for(name)(*[np.asarray(n) for n in numbers], **attributes)
    return constant(folded, type)
