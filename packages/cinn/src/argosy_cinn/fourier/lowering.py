"""From ``cinn.fourier`` to its form."""

from __future__ import annotations

from argosy_cinn.forms.fourier import FourierForm
from argosy_pir.core import Operation


def lower_fourier(op: Operation) -> FourierForm:
    """The form of a ``cinn.fourier``."""
    a = op.attributes
    return FourierForm(
        op.operand(0), op.result, a["outers"], a["lanes"], a["length"], tuple(a["source"]), tuple(a["target"]),
        a["kind"], a["inverse"], a["scale"], a["turn"], tuple(a["pieces"]),
    )  # fmt: skip
