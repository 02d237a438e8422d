"""Type stubs of the modules whose names come from the table, for editors and type checkers:
``python -m argosy.api.stubs`` writes them anew.

Names are found when they are used, which no tool can follow; the ``.pyi`` beside a module lists them, each from the
module that defines it. The ``.pyi`` of a module without a file lies where that file would be: a package of stubs
(PEP 561) in its place would hide all that has no stub from tools that do not merge the two.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

from argosy.api import fetch, targets
from argosy.api.addresses import ADDRESSES
from argosy.api.names import NAMES
from argosy.api.signatures import IMPORTS, parameters, result
from argosy.api.tensor_stub import PLACE, tensor_stub
from argosy.nn import functional
from argosy_phi_ops.declare.composition import Composition, find_function
from argosy_phi_ops.listing import functions

__all__ = ["MODULES", "path", "stub", "write"]

_DEFINING = frozenset({
    "argosy.device.custom_device", "argosy.distributed.collective", "argosy.framework.core",
    "argosy.nn.functional.flash_attention", "argosy.nn.layer", "argosy.nn.quant.quantized_linear",
    "argosy.static.quantization", "argosy.vision.transforms.transforms",
})  # fmt: skip
"""Modules with definitions of their own beside names of the table: tools read their source."""
MODULES = (*sorted(NAMES.keys() - _DEFINING), *ADDRESSES)

_HEAD = '"""Written by ``python -m argosy.api.stubs``."""\n\n'
_ABSENT = "from typing import Any as _Any\nfrom typing import NoReturn as _NoReturn\n\n"
_TENSOR = "\nfrom argosy_tensorcore.tensor import Tensor\n"


def stub(module: str) -> str:
    """The stub of one module."""
    page: Any = import_module(module)
    table = targets(module)
    named = {name: target for name, target in sorted(table.items()) if _is_shown(module, name)}
    homes = {name: _home(target) for name, target in named.items() if target[:6] != "absent" and target[:4] != "oper"}
    lines = [_forward(name, *home) for name, home in homes.items()]
    # An import under another name stays within a stub; what is assigned is seen by users.
    lines += [f"{name} = {_alias(name)}" for name, (_, own) in homes.items() if name != own]
    lines += [_constant(name, value) for name, value in vars(page).items() if _is_constant(name, value)]
    operators = [name for name in _sorted_names(page, named) if name not in homes and _operator(name) is not None]
    absent = [name for name, target in named.items() if target[:6] == "absent"]
    head = _HEAD
    if operators:
        head += IMPORTS + ("" if "Tensor" in table else _TENSOR) + "\n"
    if absent:
        head += _ABSENT
    refusals = [f"def {name}(*args: _Any, **kwargs: _Any) -> _NoReturn: ..." for name in absent]
    return head + "\n".join([*lines, *(_signature(name) for name in operators), *refusals]) + "\n"


def path(module: str) -> Path:
    """Where the stub of a module lies."""
    if module not in ADDRESSES:
        source = import_module(module).__file__
        assert source is not None
        return Path(source).with_suffix(".pyi")
    folder = Path(__file__).parents[1].joinpath(*module.split(".")[1:])
    is_package = any(each.startswith(module + ".") for each in ADDRESSES)
    return folder / "__init__.pyi" if is_package else folder.with_suffix(".pyi")


def write() -> None:
    """Write all stubs."""
    for module in MODULES:
        place = path(module)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(stub(module), encoding="utf-8")
    PLACE.write_text(tensor_stub(), encoding="utf-8")


def _is_shown(module: str, name: str) -> bool:
    return name[0] != "_" or module in ADDRESSES


def _home(target: str) -> tuple[str, str]:
    """The module that defines what ``target`` names, and its name there: other tables lead to it only when run."""
    module, _, attribute = target.partition(":")
    if not attribute:
        package, _, child = module.rpartition(".")
        return package, child
    value = fetch(target, target)
    if isinstance(value, (type, FunctionType)):
        own = value.__module__, value.__name__
        if own[0] not in MODULES and vars(sys.modules[own[0]]).get(own[1]) is value:
            return own
    return module, attribute


def _forward(name: str, module: str, attribute: str) -> str:
    return f"from {module} import {attribute} as {name if name == attribute else _alias(name)}"


def _alias(name: str) -> str:
    return f"_own_{name}"


def _is_constant(name: str, value: object) -> bool:
    return type(value) in (float, str, type(None)) and (name == "__version__" or not name.startswith("_"))


def _constant(name: str, value: object) -> str:
    return f"{name}: None" if value is None else f"{name}: _{type(value).__name__}"


def _sorted_names(page: Any, table: Iterable[str]) -> Iterable[str]:
    found = {*page.__all__, *table}
    return sorted(found | set(functions()) if page is functional else found)  # it finds all operators


def _operator(name: str) -> Any:
    """The operator of a function's name, be it that of its in-place form."""
    return find_function(name) or find_function(name.removesuffix("_"))


def _signature(name: str) -> str:
    op = _operator(name)
    if isinstance(op, Composition) and op.variadic:
        return f"def {name}(*args: Any, **kwargs: Any) -> Any: ..."
    return f"def {name}({', '.join(parameters(op))}) -> {result(op)}: ..."


if __name__ == "__main__":
    write()
    sys.stdout.write(f"wrote {len(MODULES) + 1} stubs\n")
