"""The type stub of the methods that ``Tensor`` finds when they are used: ``typed_methods.pyi`` in argosy-tensorcore, a
base of ``Tensor`` for editors and type checkers alone. ``python -m argosy.api.stubs`` writes it with the others."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import argosy.runtime  # noqa: F401  (which says what tensors can be asked)
import argosy_autoparallel.dist_tensor  # noqa: F401  (and what distributed ones can)
from argosy.api.signatures import IMPORTS, parameters, result
from argosy_phi_ops.declare.composition import Composition
from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.listing import methods
from argosy_tensorcore import operators, tensor
from argosy_tensorcore.rare_members import MEMBERS
from argosy_tensorcore.tensor import Tensor

__all__ = ["PLACE", "tensor_stub"]

PLACE = Path(operators.__file__).with_name("typed_methods.pyi")
_PLAIN = {"bool", "float", "int", "str"}
_KNOWN = re.compile(r"[\w\[\], |.]*")
_WORDS = _PLAIN | {"Any", "None", "Sequence", "Tensor", "tuple", "list"}


def tensor_stub() -> str:
    """The text of the stub."""
    own = {name for base in Tensor.__mro__ for name in vars(base)} - set(tensor._found)
    names = sorted({*methods(), *MEMBERS} - own)
    members = [_member(name, inspect.getattr_static(Tensor, name, None)) for name in names if hasattr(Tensor, name)]
    head = '"""Written by ``python -m argosy.api.stubs``."""\n\n' + IMPORTS
    head += "\nfrom argosy_tensorcore.tensor import Tensor\n\nclass Methods:\n"
    return head + "".join(members)


def _member(name: str, member: Any) -> str:
    if isinstance(member, property):
        return f"    @property\n    def {name}(self) -> Any: ...\n"
    op: Any = getattr(member, "__wrapped__", None)
    while not isinstance(op, (Operator, Composition)) and hasattr(op, "__wrapped__"):
        op = op.__wrapped__
    if isinstance(op, (Operator, Composition)):
        given = "Tensor" if name.endswith("_") else result(op)
        return f"    def {name}(self, {', '.join(parameters(op)[1:])}) -> {given}: ...\n"
    return _function(name, member)


def _function(name: str, function: Any) -> str:
    """A method written in Python: its annotations as far as they name what the stub knows."""
    shown = list(inspect.signature(function).parameters.values())[1:]
    parts = [_parameter(p) for p in shown]
    keyword = next((i for i, p in enumerate(shown) if p.kind is p.KEYWORD_ONLY), None)
    if keyword is not None and not any(p.kind is p.VAR_POSITIONAL for p in shown):
        parts.insert(keyword, "*")
    returned = function.__annotations__.get("return", "Any")
    return f"    def {name}({', '.join(['self', *parts])}) -> {_annotation(returned)}: ...\n"


def _parameter(p: inspect.Parameter) -> str:
    stars = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
    text = f"{stars}{p.name}: {_annotation(p.annotation)}"
    return text if p.default is p.empty else f"{text} = ..."


def _annotation(given: Any) -> str:
    text = given if isinstance(given, str) else "Any"
    if not set(re.findall(r"\w+", text)) <= _WORDS:
        return "Any"
    return re.sub(r"\b(bool|float|int|str)\b", r"_\1", text)
