"""The public names of argosy: a table says in which module each is defined, and finds it there when it is first used.

``names`` lists what packages offer, ``addresses`` the modules that have no file of their own: places where Paddle
defines what argosy defines elsewhere (``argosy.optimizer.adamw``), and pages of names (``argosy.linalg``). ``absent``
makes the functions that say why they are not implemented, ``stubs`` the type stubs. Nothing behind a name is imported
before the name is used, not even the table.

Modules without a file are found by an entry of ``sys.meta_path``. They are not generated files, since a hundred of
those hid what argosy does from whoever looked into its folders, and cost a search of folders each when imported;
editors and type checkers know them by their ``.pyi`` files, which are generated.
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

__all__ = ["SHOWN", "Addresses", "docstring", "fetch", "lazy_names", "operator_function", "rows", "targets"]


class _FrameworkName:
    """The name of the framework that types show as their module: ``argosy``, or ``paddle`` in its place."""

    framework = "argosy"


SHOWN = _FrameworkName()

_INSTALL = {
    "argosy_hwadapt": "argosy-hwadapt",
    "argosy_tensorcore": "argosy-tensorcore",
    "argosy_pir": "argosy-pir",
    "argosy_phi_ops": "argosy-phi-ops",
    "argosy_autograd": "argosy-autograd",
    "argosy_cinn": "argosy-cinn",
    "argosy_autoparallel": "argosy-autoparallel",
    "argosy_infer": "argosy-infer",
}


def rows(module: str) -> str:
    """The rows of the table for a module: of a package, or of an address that has no file."""
    from argosy.api.addresses import ADDRESSES  # with the first name, not with argosy
    from argosy.api.names import NAMES

    return NAMES.get(module) or ADDRESSES[module]


def docstring(module: str) -> str:
    """The text at the head of the rows of an address."""
    lines = (line.strip() for line in rows(module).splitlines())
    return " ".join(line[2:] for line in lines if line[:1] == "#")


def targets(module: str) -> dict[str, str]:
    """By name, where it is defined: ``module:attribute``, ``module`` for a module, ``operators:name`` for an operator,
    ``absent reason:name`` for a name that only says why it is not implemented."""
    found = {}
    home = ""
    for line in rows(module).splitlines():
        first, colon, rest = line.strip().partition(": ")
        if first[:1] == "#":
            continue
        if colon:
            home = module + first if first[0] == "." else first
        separator = "" if home[-1:] == "." else ":"
        for entry in (rest if colon else first).split():
            name, _, own = entry.partition("=")
            found[name] = f"{home}{separator}{own or name}"
    return found


def fetch(target: str, wanted_by: str) -> Any:
    """What a target of the table names.

    Raises ImportError naming the ``pip install`` when it lies in a sibling package that is not installed.
    """
    module, _, attribute = target.partition(":")
    if module == "operators":
        return operator_function(attribute)
    if module[:7] == "absent ":
        return import_module("argosy.api.absent").absent(wanted_by, module[7:])
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        distribution = _INSTALL.get(error.name or "")
        if distribution is None:
            raise
        raise ImportError(
            f"{wanted_by} needs {distribution}, which is not installed: python -m pip install {distribution}",
            name=error.name,
        ) from error
    return getattr(found, attribute) if attribute else found


def operator_function(name: str) -> object | None:
    """The operator ``name``, or for ``name_`` the in-place form of an operator that has one; None where there is
    none.
    """
    found: object | None = fetch("argosy.runtime:find", f"argosy.{name}")(name)
    return found


def lazy_names(
    module: str,
    namespace: dict[str, Any],
    find: Callable[[str], object | None] | None = None,
    found: Callable[[], Iterable[str]] = tuple,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for ``module``: names of its rows in the table, then what ``find`` gives;
    ``found()`` lists what that can be, for ``dir`` and ``import *``.

    What is found is kept in ``namespace``, so that each name is looked up once.
    """
    table: dict[str, str] = {}

    def get(name: str) -> Any:
        value: Any
        if name == "__all__":
            value = _star_names(listed(), namespace, found())
        else:
            shown = f"{module}.{name}"
            target = listed().get(name)
            value = fetch(target, shown) if target is not None else find(name) if find and name[:2] != "__" else None
            if value is None and (target is None or target[:10] == "operators:"):
                raise _missing_attribute(module, name, lambda: [*namespace, *listed(), *found()])
        namespace[name] = value
        return value

    def listed() -> dict[str, str]:
        if not table:
            table.update(targets(module))
        return table

    return get, lambda: sorted({*namespace, *listed(), *found()})


def _missing_attribute(module: str, name: str, names: Callable[[], Iterable[str]]) -> AttributeError:
    from argosy_tensorcore.suggestions import MissingAttribute

    message = f"module {module!r} has no attribute {name!r}: no package of argosy provides {module}.{name}"
    return MissingAttribute(message, name, names)


def _star_names(table: Mapping[str, str], namespace: Mapping[str, object], found: Iterable[str]) -> list[str]:
    """What a star imports: functions, classes and constants, not modules, as Paddle's ``__all__`` has them."""
    constants = {name for name, value in namespace.items() if name[0] != "_" and type(value) in (float, type(None))}
    return sorted({*(name for name, target in table.items() if name[0] != "_" and ":" in target), *constants, *found})


class Addresses:
    """Finds and loads the modules that have rows in the table and no file. They are modules like others, without
    ``__file__``."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The specification of such a module; None for all others."""
        if name[:7] != "argosy." or name[:11] == "argosy.api.":
            return None
        from argosy.api.addresses import ADDRESSES

        if name not in ADDRESSES:
            return None
        from importlib.machinery import ModuleSpec

        loader: Any = Addresses
        is_package = any(each.startswith(name + ".") for each in ADDRESSES)
        return ModuleSpec(name, loader, origin="argosy.api.addresses", is_package=is_package)

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """None: Python makes the module."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Give the module its names."""
        name = module.__name__
        module.__doc__ = docstring(name)
        module.__getattr__, module.__dir__ = lazy_names(name, vars(module))  # type: ignore[method-assign]
        if name[:16] == "argosy.nn.layer.":  # libraries look layers up in the module's ``__dict__``
            for each in targets(name):
                getattr(module, each)


sys.meta_path.insert(0, Addresses)  # a folder without Python's files would be found as a namespace
