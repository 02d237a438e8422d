"""Lazily forwarding faces: a module whose names live elsewhere and are fetched when first used.

A face has a table ``name -> "module"`` or ``"module:attribute"``; what it does not list may be an operator of the
operator library. Nothing behind a face is imported before one of its names is.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Finder = Callable[[str], "object | None"]

__all__ = ["SHOWN", "face", "fetch", "operator_function", "operators_named"]


class _Shown:
    """The name of the framework that types show as their module: ``argosy``, or ``paddle`` in its place."""

    framework = "argosy"


SHOWN = _Shown()

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


def fetch(target: str, wanted_by: str) -> Any:
    """The module or ``module:attribute`` that ``target`` names.

    Raises ImportError naming the ``pip install`` when it lies in a sibling package that is not installed.
    """
    module, _, attribute = target.partition(":")
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


def face(
    module: str,
    table: Mapping[str, str],
    namespace: dict[str, Any],
    find: Finder | None = None,
    found: Callable[[], Iterable[str]] = tuple,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for ``module``: names of ``table``, then what ``find`` gives; ``found()`` lists
    what that can be, for ``dir`` and ``import *``.

    What is found is kept in ``namespace``, so that each name is looked up once.
    """

    def get(name: str) -> Any:
        target = table.get(name)
        shown = f"{module}.{name}"
        if target is not None:
            value = fetch(target, shown)
        elif name == "__all__":
            value = public()
        else:
            value = find(name) if find is not None and name[:2] != "__" else None
            if value is None:
                raise AttributeError(
                    f"module {module!r} has no attribute {name!r}: no package of argosy provides {shown}"
                )
        namespace[name] = value
        return value

    def names() -> list[str]:
        return sorted({*namespace, *table, *found()})

    def public() -> list[str]:
        """What a star imports: functions, classes and constants, not modules, as Paddle's ``__all__`` has them."""
        constants = {name for name, value in namespace.items() if name[0] != "_" and type(value) in (float, type(None))}
        here = {name for name, target in table.items() if name[0] != "_" and ":" in target}
        return sorted({*here, *constants, *found()})

    return get, names


def operator_function(name: str) -> object | None:
    """The operator ``name``, or for ``name_`` the in-place form of an operator that has one; None where there is
    none.
    """
    found: object | None = fetch("argosy.runtime:find", f"argosy.{name}")(name)
    return found


def operators_named(names: Iterable[str]) -> tuple[Finder, Callable[[], Iterable[str]]]:
    """What a face of these operators finds and lists."""
    chosen = frozenset(names)
    return (lambda name: operator_function(name) if name in chosen else None), (lambda: chosen)
