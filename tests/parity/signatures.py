"""How functions and classes are called: their positional parameters with defaults, on record for the wheel."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from parity.runner import attribute

__all__ = ["AREAS", "REQUIRED", "Parameters", "load_signatures", "names_of", "parameters_of", "save_signatures"]

PATH = Path(__file__).parent / "records" / "signatures.json"

Parameters = list[list[str]]
"""For each positional parameter its name and its default as text."""

REQUIRED = "required"

AREAS = ("distribution", "geometric", "signal", "sparse")
"""Areas of ``records/names.json`` of which all names are compared, not only those that cases call."""


def names_of(areas: Iterable[str]) -> list[str]:
    """The wheel's public names in these areas."""
    listed: dict[str, list[str]] = json.loads((PATH.parent / "names.json").read_text(encoding="utf-8"))
    return [name for area in areas for name in listed[area]]


def parameters_of(framework: Any, target: str) -> Parameters | None:
    """The positional parameters of ``target``, without ``name`` and ``out``; None where there is no signature."""
    try:
        found = inspect.signature(attribute(framework, target))
    except (AttributeError, TypeError, ValueError):
        return None
    return [
        [p.name, REQUIRED if p.default is p.empty else _shown(p.default)]
        for p in found.parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name not in ("name", "out")
    ]


def _shown(default: Any) -> str:
    """A default as text that is the same for lists and tuples, and for 1 and 1.0."""
    if isinstance(default, (list, tuple)):
        return "[" + ", ".join(_shown(v) for v in default) + "]"
    if isinstance(default, (int, float)) and not isinstance(default, bool):
        return str(float(default))
    return repr(default)


def save_signatures(signatures: dict[str, Parameters | None]) -> None:
    """Write the wheel's signatures."""
    lines = [f"{json.dumps(target)}: {json.dumps(found)}" for target, found in sorted(signatures.items()) if found]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def load_signatures() -> dict[str, Parameters]:
    """The wheel's signatures by target."""
    found: dict[str, Parameters] = json.loads(PATH.read_text(encoding="utf-8"))
    return found
