"""Paddle's ``.json`` programs: the operations of the main block, with attributes as Python values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from argosy_infer.errors import ProgramFileError

__all__ = ["DTYPES", "Block", "Document", "Step"]

DTYPES = {
    "t_bool": "bool", "t_i8": "int8", "t_ui8": "uint8", "t_i16": "int16", "t_i32": "int32", "t_i64": "int64",
    "t_f16": "float16", "t_bf16": "bfloat16", "t_f32": "float32", "t_f64": "float64", "t_c64": "complex64",
    "t_c128": "complex128",
}  # fmt: skip
_OPERATIONS = 1_000_000
_DEPTH = 24  # of branches and loops within each other: each takes some frames of Python to run


class Step:
    """One operation: its ``name`` without dialect, numbers of ``operands`` and ``results``, ``attributes``, ``types``
    of the results (dtype and sizes, None for others), and the ``blocks`` of its regions.
    """

    __slots__ = ("attributes", "blocks", "name", "operands", "results", "types")

    def __init__(self, entry: dict[str, Any], depth: int = 0) -> None:
        self.name = str(entry["#"]).partition(".")[2] or str(entry["#"])
        results = entry["O"] if isinstance(entry["O"], list) else [entry["O"]]
        self.operands = [int(x["%"]) for x in entry.get("I", [])]
        self.results = [int(x["%"]) for x in results]
        self.types = [_type(x.get("TT")) for x in results]
        if entry["#"] == "p":
            self.name = "parameter"
            stored = bool(entry["OA"][0])  # persistable; scratch of a kernel is not, and not in the file
            self.attributes: dict[str, Any] = {
                "name": str(entry["A"][3]),
                "stored": stored,
                "trained": not entry["OA"][1],
            }
        else:
            self.attributes = {str(x["N"]): _attribute(x["AT"]) for x in entry.get("A", [])}
        self.blocks = [Block(region["blocks"], depth + 1) for region in entry.get("regions", ())]


class Block:
    """What a region holds: numbers of its ``arguments``, and its ``steps`` in order."""

    __slots__ = ("arguments", "steps")

    def __init__(self, blocks: list[dict[str, Any]], depth: int = 0) -> None:
        if depth > _DEPTH:
            raise ValueError(f"branches and loops stand over {_DEPTH} deep within each other")
        if len(blocks) != 1:
            raise ValueError(f"a region has {len(blocks)} blocks")
        self.arguments = [int(x["#"]) for x in blocks[0]["args"]]
        self.steps = [Step(entry, depth) for entry in blocks[0]["ops"]]

    def walk(self) -> Iterator[Step]:
        """All steps, those of inner blocks after the step that holds them."""
        for step in self.steps:
            yield step
            for block in step.blocks:
                yield from block.walk()


class Document(Block):
    """A program: its ``steps`` in order."""

    __slots__ = ()

    def __init__(self, text: bytes, name: str) -> None:
        try:
            tree = json.loads(text)
            if tree["base_code"]["magic"] != "pir":
                raise ValueError("it is no program of Paddle 3")
            blocks = tree["program"]["regions"][0]["blocks"]
            if len(blocks[0]["ops"]) > _OPERATIONS:
                raise ValueError(f"it has {len(blocks[0]['ops'])} operations")
            super().__init__(blocks)
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
    return DTYPES[element["#"].partition(".")[2]], tuple(int(n) for n in sizes)


def _attribute(tree: Any) -> Any:
    kind, data = str(tree["#"]).partition(".")[2], tree.get("D")
    if data is None and "VD" in tree:  # what JSON has no number for
        return {"NAN": math.nan, "INF": math.inf, "-INF": -math.inf}[str(tree["VD"]).upper()]
    return [_attribute(x) for x in data] if kind == "a_array" else data
