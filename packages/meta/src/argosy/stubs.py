"""Type stubs of the faces, for editors and type checkers: ``python -m argosy.stubs`` writes them anew.

A face finds its names when they are used, which no tool can follow; the ``.pyi`` beside it lists them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from argosy_phi_ops.composition import Composed, find_function
from argosy_phi_ops.index import COMPOSED, MODULES
from argosy_phi_ops.listing import LAYERS
from argosy_phi_ops.signature import ATTRIBUTE, LIST, OPTIONAL, REQUIRED

__all__ = ["FACES", "stub", "write"]

FACES = (
    "argosy", "argosy.amp", "argosy.audio", "argosy.autograd", "argosy.callbacks", "argosy.distributed",
    "argosy.distribution", "argosy.geometric", "argosy.io", "argosy.jit",
    "argosy.library", "argosy.metric", "argosy.models", "argosy.nn", "argosy.nn.functional", "argosy.optimizer",
    "argosy.sparse", "argosy.sparse.nn", "argosy.sparse.nn.functional", "argosy.static", "argosy.text",
    "argosy.vision", "argosy.vision.datasets", "argosy.vision.models", "argosy.vision.ops", "argosy.vision.transforms",
)  # fmt: skip
_KINDS = {OPTIONAL: "Tensor | None", LIST: "Sequence[Tensor]", ATTRIBUTE: "Any"}
_HEAD = '"""Written by ``python -m argosy.stubs``."""\n\n'
_IMPORTS = """from builtins import float as _float
from builtins import str as _str
from collections.abc import Sequence
from typing import Any

from argosy_tensorcore.tensor import Tensor
"""


def stub(module: str) -> str:
    """The stub of one face."""
    face = import_module(module)
    lines = [_forward(name, target) for name, target in sorted(face._TABLE.items())]
    lines += [_constant(name, value) for name, value in vars(face).items() if _is_constant(name, value)]
    operators = [name for name in _operators_of(module) if name not in face._TABLE]
    head = _HEAD + (_IMPORTS + "\n" if operators else "")
    return head + "\n".join(lines + [_signature(name) for name in operators]) + "\n"


def write() -> None:
    """Write all stubs beside their modules."""
    for module in FACES:
        source = import_module(module).__file__
        assert source is not None
        Path(source).with_suffix(".pyi").write_text(stub(module), encoding="utf-8")


def _forward(name: str, target: str) -> str:
    module, _, attribute = target.partition(":")
    if attribute:
        return f"from {module} import {attribute} as {name}"
    package, _, child = module.rpartition(".")
    return f"from {package} import {child} as {name}"


def _is_constant(name: str, value: object) -> bool:
    return type(value) in (float, str) and (name == "__version__" or not name.startswith("_"))


def _constant(name: str, value: object) -> str:
    return f"{name}: _{type(value).__name__}"


def _operators_of(module: str) -> list[str]:
    if module == "argosy":
        return _declared([*(name for name, home in MODULES.items() if home not in LAYERS), *COMPOSED])
    if module == "argosy.nn.functional":
        return _declared([*MODULES, *COMPOSED])
    return []


def _declared(names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.isidentifier()})


def _signature(name: str) -> str:
    op: Any = find_function(name)
    if isinstance(op, Composed) and op.variadic:
        return f"def {name}(*args: Any, **kwargs: Any) -> Any: ..."
    text = _definition(name, op, "")
    return text + ("\n" + _definition(name, op, "_") if op.inplace else "")


def _definition(name: str, op: Any, suffix: str) -> str:
    shown = [p for p in op.signature.parameters if p.name not in op.signature.hidden]
    optional = False
    parameters = []
    for p in shown:
        optional = optional or p.default is not REQUIRED
        kind = _KINDS.get(p.kind, "Tensor | _float")
        parameters.append(f"{p.name}: {kind}" + (" = ..." if optional else ""))
    if not any(p.name == "name" for p in shown):
        parameters.append("name: _str | None = ...")
    given = op.body.__annotations__.get("return", "Any")
    result = given if given in ("Tensor", "tuple[Tensor, Tensor]", "tuple[Tensor, ...]") else "Any"
    return f"def {name}{suffix}({', '.join(parameters)}) -> {result}: ..."


if __name__ == "__main__":
    write()
    sys.stdout.write(f"wrote {len(FACES)} stubs\n")
