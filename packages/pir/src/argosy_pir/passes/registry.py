"""What a pass is, and how one is found by name.

A pass is a frozen dataclass whose fields are its options: constructor, pipeline text and command line all
come from that one declaration. Shipped passes load on first use; others come from the entry-point group
``argosy.passes``.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from importlib import import_module

from argosy_pir.errors import PassError
from argosy_pir.passes.printing import print_pipeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ClassVar, TypeVar

    from argosy_pir.program import Program

    P = TypeVar("P", bound="Pass")

ENTRY_POINTS = "argosy.passes"
_SHIPPED = {
    "bind-sizes": "argosy_pir.passes.bind_sizes",
    "canonicalize": "argosy_pir.passes.canonicalize",
    "cse": "argosy_pir.passes.cse",
    "dce": "argosy_pir.passes.dce",
    "inline": "argosy_pir.passes.inline",
    "outline": "argosy_pir.passes.outline",
    "strip-locations": "argosy_pir.passes.strip_locations",
    "symbol-dce": "argosy_pir.passes.symbol_dce",
}
_passes: dict[str, type[Pass]] = {}


class Pass:
    """Base of passes; :func:`register_pass` gives the ``name``. Instances are immutable values."""

    name: ClassVar[str] = ""

    def run(self, program: Program) -> bool:
        """Transform ``program`` in place; True where anything changed."""
        raise NotImplementedError(f"pass {type(self).__name__} does not implement run")

    def __str__(self) -> str:
        return print_pipeline([self])


def register_pass(name: str) -> Callable[[type[P]], type[P]]:
    """Make a frozen dataclass known as pass ``name``; raises ``PassError`` for a name that is taken."""

    def register(cls: type[P]) -> type[P]:
        if not is_dataclass(cls) or not cls.__dataclass_params__.frozen:
            raise PassError(f"pass '{name}' should be a frozen dataclass, so that its fields are its options")
        old = _passes.setdefault(name, cls)
        if old is not cls and (old.__module__, old.__qualname__) != (cls.__module__, cls.__qualname__):
            raise PassError(f"pass '{name}' is registered twice: by {old.__module__} and by {cls.__module__}")
        _passes[name] = cls
        cls.name = name
        for field in fields(cls):
            if "_" in field.name and field.name.endswith("_"):
                raise PassError(f"option {field.name!r} of pass '{name}' cannot be written in a pipeline")
        return cls

    return register


def get_pass(name: str) -> type[Pass]:
    """The class of pass ``name``, loaded on first use; raises ``PassError`` that lists the names there
    are."""
    if name in _SHIPPED:  # imported whoever has begun to: a class is registered before its module is complete
        import_module(_SHIPPED[name])
    elif name not in _passes:
        _load_plugin(name)
    found = _passes.get(name)
    if found is None:
        raise PassError(f"there is no pass '{name}'; known are {', '.join(available_passes())}")
    return found


def available_passes() -> tuple[str, ...]:
    """Names of all passes that can be found here, installed plugins included."""
    from importlib.metadata import entry_points

    return tuple(sorted({*_SHIPPED, *_passes, *(point.name for point in entry_points(group=ENTRY_POINTS))}))


def _load_plugin(name: str) -> None:
    """Import what provides pass ``name``; importing registers it. The entry point is the class or its
    module."""
    from importlib.metadata import entry_points

    found = {point.value: point for point in entry_points(group=ENTRY_POINTS, name=name)}
    if len(found) > 1:
        raise PassError(f"pass '{name}' is provided twice: by {' and by '.join(sorted(found))}")
    for value, point in found.items():
        try:
            point.load()
        except Exception as error:
            raise PassError(f"pass '{name}' cannot be loaded from {value}: {error}") from error
