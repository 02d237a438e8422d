"""Paddle's ``.json`` programs: the operations of the main block, with attributes as Python values."""

from __future__ import annotations

import json
from typing import Any

from argosy_infer.errors import ProgramFileError

__all__ = ["Document", "Step"]

_DTYPES = {
    "t_bool": "bool", "t_i8": "int8", "t_ui8": "uint8", "t_i16": "int16", "t_i32": "int32", "t_i64": "int64",
    "t_f16": "float16", "t_bf16": "bfloat16", "t_f32": "float32", "t_f64": "float64", "t_c64": "complex64",
    "t_c128": "complex128",
}  # fmt: skip
_OPERATIONS = 1_000_000


class Step:
    """One operation: its ``name`` without dialect, numbers of ``operands`` and ``results``, ``attributes``, ``types``
    of the results (dtype and sizes, None for others).
    """

    __slots__ = ("attributes", "name", "operands", "results", "types")

    def __init__(self, entry: dict[str, Any]) -> None:
        self.name = str(entry["#"]).partition(".")[2] or str(entry["#"])
        results = entry["O"] if isinstance(entry["O"], list) else [entry["O"]]
        self.operands = [int(x["%"]) for x in entry.get("I", [])]
        self.results = [int(x["%"]) for x in results]
        self.types = [_type(x.get("TT")) for x in results]
        if entry["#"] == "p":
            self.name = "parameter"
            stored = bool(entry["OA"][0])  # persistable; scratch of a kernel is not, and not in the file
            self.attributes: dict[str, Any] = {"name": str(entry["A"][3]), "stored": stored}
        else:
            self.attributes = {str(x["N"]): _attribute(x["AT"]) for x in entry.get("A", [])}
        if entry.get("regions"):
            raise NotImplementedError(f"Paddle's operator {self.name} with regions is not read yet")


class Document:
    """A program: its ``steps`` in order."""

    def __init__(self, text: bytes, name: str) -> None:
        try:
            tree = json.loads(text)
            if tree["base_code"]["magic"] != "pir":
                raise ValueError("it is no program of Paddle 3")
            blocks = tree["program"]["regions"][0]["blocks"]
            entries = blocks[0]["ops"]
            if len(blocks) != 1 or len(entries) > _OPERATIONS:
                raise ValueError(f"it has {len(blocks)} blocks and {len(entries)} operations")
            self.steps = [Step(entry) for entry in entries]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
            raise ProgramFileError(f"{name} is not a program that can be read: {error!r:.200}") from error

    @property
    def parameters(self) -> list[Step]:
        """The parameters that the weight file holds, in order of appearance."""
        return [step for step in self.steps if step.name == "parameter" and step.attributes["stored"]]


def _type(tree: Any) -> tuple[str, tuple[int, ...]] | None:
    if not tree or not str(tree["#"]).endswith("dtensor"):
        return None
    element, sizes = tree["D"][:2]
    return _DTYPES[element["#"].partition(".")[2]], tuple(int(n) for n in sizes)


def _attribute(tree: Any) -> Any:
    kind, data = str(tree["#"]).partition(".")[2], tree.get("D")
    return [_attribute(x) for x in data] if kind == "a_array" else data
