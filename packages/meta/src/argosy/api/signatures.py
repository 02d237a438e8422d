"""Operators' parameters and results as type stubs write them."""

from __future__ import annotations

from typing import Any

from argosy_phi_ops.declare.signature import ATTRIBUTE, LIST, OPTIONAL, REQUIRED

__all__ = ["IMPORTS", "parameters", "result"]

_KINDS = {OPTIONAL: "Tensor | _complex | None", LIST: "Sequence[Tensor] | Tensor"}
_ATTRIBUTES = {"bool": "_bool", "int": "_int", "float": "_float | Tensor", "str": "_str"}
"""What attributes of these types may be given; of others anything: a size may be a tensor, too, and a dtype a name."""
IMPORTS = """from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from typing import Any
"""


def parameters(op: Any) -> list[str]:
    """The parameters of an operator or composed function with their types, as in a stub."""
    shown = [p for p in op.signature.parameters if p.name not in op.signature.hidden]
    optional = False
    found = []
    for p in shown:
        optional = optional or p.default is not REQUIRED
        kind = _attribute(p.name, op.body) if p.kind == ATTRIBUTE else _KINDS.get(p.kind, "Tensor | _complex")
        found.append(f"{p.name}: {kind}" + (f" = {_default(p.default)}" if optional else ""))
    if getattr(op, "form", None) is not None:  # there are other ways to write the call: sizes one by one, axes first
        found.append("*more: Any")
    if not any(p.name == "name" for p in shown):
        found.append("name: _str | None = None")
    return found


def result(op: Any) -> str:
    """The type of what it gives."""
    given = op.body.__annotations__.get("return", "Any")
    return given if given in ("Tensor", "tuple[Tensor, Tensor]", "tuple[Tensor, ...]") else "Any"


def _attribute(name: str, body: Any) -> str:
    declared, none, _ = body.__annotations__.get(name, "Any").partition(" | None")
    kind = _ATTRIBUTES.get(declared) if name != "dtype" else None
    return "Any" if kind is None else kind + none


def _default(value: object) -> str:
    return repr(value) if type(value) in (bool, int, float, str, type(None)) else "..."
