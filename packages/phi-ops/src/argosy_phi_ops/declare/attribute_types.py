"""Attributes of operators: against the annotations of their parameters, which are read as text, and as keys."""

from __future__ import annotations

from typing import Any

__all__ = ["attribute_key", "fits", "quick_types", "spell"]

_ALIASES = {"Axes": "int | Sequence[int] | None", "Sizes": "int | Sequence[int]"}
_QUICK: dict[str, tuple[type, ...]] = {
    "int": (int, bool), "float": (float, int, bool), "complex": (complex, float, int, bool), "str": (str,),
    "bool": (bool, int, float, type(None)), "None": (type(None),),
}  # fmt: skip


def attribute_key(attributes: dict[str, Any]) -> tuple[Any, ...]:
    """Attributes as part of a key: values with their types, those of a tuple's items, too, since 1 == 1.0 == True;
    floats by their digits, since 0.0 == -0.0 and NaN equals nothing."""
    return tuple(
        [
            (k, type(v), repr(v) if type(v) is float else (v, *map(type, v)) if type(v) is tuple else v)
            for k, v in attributes.items()
        ]
    )


def spell(note: str) -> str:
    """An annotation with the library's aliases written out."""
    return " | ".join(_ALIASES.get(part, part) for part in note.split(" | "))


def quick_types(note: str) -> frozenset[type] | None:
    """Types whose every value fits the annotation; None where it admits what cannot be told."""
    parts = spell(note).split(" | ")
    if not all(part in _QUICK or part in ("Sequence[int]", "Sequence[float]") for part in parts):
        return None
    return frozenset(kind for part in parts for kind in _QUICK.get(part, ()))


def fits(value: Any, note: str) -> bool:
    """Whether plain data is of the annotated kind; what the annotation does not tell fits, and symbolic sizes do."""
    if hasattr(value, "evaluate") or hasattr(value, "replace_all_uses_with") or not note:
        return True
    return any(_is(value, kind) for kind in spell(note).split(" | "))


def _is(value: Any, kind: str) -> bool:
    if kind == "None":
        return value is None
    if kind.startswith(("Sequence", "tuple", "list")):
        inner = kind.partition("[")[2].rstrip("]").partition(",")[0]
        return isinstance(value, (tuple, list)) and (not inner or all(fits(item, inner) for item in value))
    if kind == "int" and isinstance(value, float):
        return value.is_integer()
    known = _QUICK.get(kind)
    return known is None or isinstance(value, known)
