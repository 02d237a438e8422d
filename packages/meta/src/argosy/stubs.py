"""Type stubs of the faces, for editors and type checkers: ``python -m argosy.stubs`` writes them anew.

A face finds its names when they are used, which no tool can follow; the ``.pyi`` beside it lists them, each from the
module that defines it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

from argosy.faces import fetch
from argosy.nn import functional
from argosy_phi_ops.declare.composition import Composed, find_function
from argosy_phi_ops.declare.signature import ATTRIBUTE, LIST, OPTIONAL, REQUIRED
from argosy_phi_ops.listing import functions

__all__ = ["FACES", "stub", "write"]

FACES = (
    "argosy", "argosy.amp", "argosy.audio", "argosy.autograd", "argosy.callbacks", "argosy.device",
    "argosy.distributed", "argosy.distributed.fleet", "argosy.distribution", "argosy.framework", "argosy.functional",
    "argosy.geometric", "argosy.incubate", "argosy.incubate.nn", "argosy.incubate.nn.functional",
    "argosy.incubate.optimizer", "argosy.inference", "argosy.io", "argosy.jit", "argosy.library", "argosy.linalg",
    "argosy.metric", "argosy.models", "argosy.nn", "argosy.nn.functional", "argosy.nn.quant", "argosy.nn.utils",
    "argosy.optimizer", "argosy.profiler", "argosy.quantization", "argosy.science", "argosy.sparse", "argosy.sparse.nn",
    "argosy.sparse.nn.functional", "argosy.special", "argosy.static", "argosy.static.amp", "argosy.static.nn",
    "argosy.text", "argosy.utils", "argosy.vision", "argosy.vision.datasets", "argosy.vision.models",
    "argosy.vision.ops", "argosy.vision.transforms",
)  # fmt: skip

_KINDS = {OPTIONAL: "Tensor | None", LIST: "Sequence[Tensor]"}
_ATTRIBUTES = {"bool": "_bool", "int": "_int", "float": "_float | Tensor", "str": "_str"}
"""What attributes of these types may be given; of others anything: a size may be a tensor, too, and a dtype a name."""
_HEAD = '"""Written by ``python -m argosy.stubs``."""\n\n'
_IMPORTS = """from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from typing import Any
"""
_TENSOR = "\nfrom argosy_tensorcore.tensor import Tensor\n"


def stub(module: str) -> str:
    """The stub of one face."""
    face: Any = import_module(module)
    table: dict[str, str] = getattr(face, "_TABLE", {})
    homes = {name: _home(target) for name, target in sorted(table.items()) if name[0] != "_"}
    lines = [_forward(name, *home) for name, home in homes.items()]
    # An import under another name stays within a stub; what is assigned is seen by users.
    lines += [f"{name} = {_renamed(name)}" for name, (_, own) in homes.items() if name != own]
    lines += [_constant(name, value) for name, value in vars(face).items() if _is_constant(name, value)]
    operators = [name for name in _listed(face) if name not in table and _operator(name) is not None]
    head = _HEAD
    if operators:
        head += _IMPORTS + ("" if "Tensor" in table else _TENSOR) + "\n"
    return head + "\n".join(lines + [_signature(name) for name in operators]) + "\n"


def write() -> None:
    """Write all stubs beside their modules."""
    for module in FACES:
        source = import_module(module).__file__
        assert source is not None
        Path(source).with_suffix(".pyi").write_text(stub(module), encoding="utf-8")


def _home(target: str) -> tuple[str, str]:
    """The module that defines what ``target`` names, and its name there: other faces lead to it only when run."""
    module, _, attribute = target.partition(":")
    if not attribute:
        package, _, child = module.rpartition(".")
        return package, child
    value = fetch(target, target)
    if isinstance(value, (type, FunctionType)):
        own = value.__module__, value.__name__
        if own[0] not in FACES and vars(sys.modules[own[0]]).get(own[1]) is value:
            return own
    return module, attribute


def _forward(name: str, module: str, attribute: str) -> str:
    return f"from {module} import {attribute} as {name if name == attribute else _renamed(name)}"


def _renamed(name: str) -> str:
    return f"_own_{name}"


def _is_constant(name: str, value: object) -> bool:
    return type(value) in (float, str, type(None)) and (name == "__version__" or not name.startswith("_"))


def _constant(name: str, value: object) -> str:
    return f"{name}: None" if value is None else f"{name}: _{type(value).__name__}"


def _listed(face: Any) -> Iterable[str]:
    found = set(face.__all__)
    return sorted(found | set(functions()) if face is functional else found)  # it finds all operators


def _operator(name: str) -> Any:
    """The operator of a function's name, be it that of its in-place form."""
    return find_function(name) or find_function(name.removesuffix("_"))


def _signature(name: str) -> str:
    op = _operator(name)
    if isinstance(op, Composed) and op.variadic:
        return f"def {name}(*args: Any, **kwargs: Any) -> Any: ..."
    shown = [p for p in op.signature.parameters if p.name not in op.signature.hidden]
    optional = False
    parameters = []
    for p in shown:
        optional = optional or p.default is not REQUIRED
        kind = _attribute(p.name, op.body) if p.kind == ATTRIBUTE else _KINDS.get(p.kind, "Tensor | _float")
        parameters.append(f"{p.name}: {kind}" + (f" = {_default(p.default)}" if optional else ""))
    if not any(p.name == "name" for p in shown):
        parameters.append("name: _str | None = None")
    given = op.body.__annotations__.get("return", "Any")
    result = given if given in ("Tensor", "tuple[Tensor, Tensor]", "tuple[Tensor, ...]") else "Any"
    return f"def {name}({', '.join(parameters)}) -> {result}: ..."


def _attribute(name: str, body: Any) -> str:
    declared, none, _ = body.__annotations__.get(name, "Any").partition(" | None")
    kind = _ATTRIBUTES.get(declared) if name != "dtype" else None
    return "Any" if kind is None else kind + none


def _default(value: object) -> str:
    return repr(value) if type(value) in (bool, int, float, str, type(None)) else "..."


if __name__ == "__main__":
    write()
    sys.stdout.write(f"wrote {len(FACES)} stubs\n")
