"""What a rank does in a step, as plain data: instructions that print, parse back and are JSON.

A value is a name and an index: ``x[0, 2]`` is ``x`` of chunk 0 and microbatch 2, ``weight[0]`` one of a chunk. Nothing
but :class:`Wait` waits: sends, receives and collectives are started, and their results exist once they were waited for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple

from argosy_pir.types import TensorType

__all__ = [
    "COLLECTIVES", "PLACES", "Free", "Instruction", "Move", "Receive", "Ref", "Run", "Send", "Start", "Update", "Wait",
    "parse_instruction", "parse_type",
]  # fmt: skip

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "permute")
PLACES = ("device", "host", "disk")


class Ref(NamedTuple):
    """The name of a value on one rank."""

    name: str
    at: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.at))}]" if self.at else self.name

    @classmethod
    def parse(cls, text: str) -> Ref:
        """The name that prints as ``text``. Raises ValueError."""
        found = re.fullmatch(r"([A-Za-z_][\w.]*)(?:\[(\d+(?:, ?\d+)*)\])?", text)
        if found is None:
            raise ValueError(f"{text!r} is no name of a value, such as x[0, 2]")
        return cls(found[1], tuple(int(number) for number in found[2].split(",")) if found[2] else ())


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; ``line`` is the user's line it comes from and does not count in comparisons."""

    line: str = field(default="", compare=False, kw_only=True)
    template: ClassVar[str] = ""
    """The text form, with fields in braces."""

    def __str__(self) -> str:
        parts = {f.name: _TO_TEXT[f.type](getattr(self, f.name)) for f in fields(self)}
        return self.template.format(**parts)

    def text(self) -> str:
        """The text form with the user's line, which :func:`parse_instruction` reads."""
        return f"{self} at {json.dumps(self.line)}" if self.line else str(self)

    def with_line(self, line: str) -> Instruction:
        """The same instruction of another line."""
        return replace(self, line=line)

    def to_json(self) -> dict[str, Any]:
        """A dictionary of strings, numbers and lists; :meth:`from_json` reads it."""
        found = {f.name: _TO_JSON[f.type](getattr(self, f.name)) for f in fields(self)}
        line = found.pop("line")
        return {"do": type(self).__name__.lower(), **found, **({"line": line} if line else {})}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Instruction:
        """The instruction that :meth:`to_json` wrote. Raises ValueError for anything else."""
        kind = _KINDS.get(data.get("do", ""))
        if kind is None:
            raise ValueError(f"unknown instruction {data.get('do')!r}; there are {', '.join(_KINDS)}")
        known = {f.name: f.type for f in fields(kind)}
        if unknown := data.keys() - known.keys() - {"do"}:
            raise ValueError(f"{data['do']} has no fields {sorted(unknown)}")
        try:
            return kind(**{k: _FROM_JSON[known[k]](v) for k, v in data.items() if k != "do"})
        except (TypeError, AttributeError) as cause:
            raise ValueError(f"{data!r} is no instruction: {cause}") from cause


@dataclass(frozen=True, slots=True)
class Run(Instruction):
    """Run a piece for a chunk and a microbatch."""

    piece: str
    chunk: int = 0
    microbatch: int = 0
    template: ClassVar[str] = "run {piece}[{chunk}, {microbatch}]"


@dataclass(frozen=True, slots=True)
class Update(Instruction):
    """Run the piece that updates the state of a chunk, once for all microbatches."""

    piece: str
    chunk: int = 0
    template: ClassVar[str] = "update {piece}[{chunk}]"


@dataclass(frozen=True, slots=True)
class Start(Instruction):
    """Start a collective of ``group`` (global ranks, none for all) on a value. Arrays are joined and split along their
    first axis; ``options`` are ``op``, ``root`` (a member's number), ``pairs``, ``send_counts`` and ``recv_counts``.
    """

    collective: str
    value: Ref
    result: Ref
    group: tuple[int, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    template: ClassVar[str] = "start {collective} {value} -> {result} group {group} {options}"

    def __post_init__(self) -> None:
        if self.collective not in COLLECTIVES:
            raise ValueError(f"there is no collective {self.collective!r}; there are {', '.join(COLLECTIVES)}")


@dataclass(frozen=True, slots=True)
class Wait(Instruction):
    """Wait until the value that was started or asked for is there."""

    value: Ref
    template: ClassVar[str] = "wait {value}"


@dataclass(frozen=True, slots=True)
class Send(Instruction):
    """Send a value to a rank. Messages of one tag arrive in order; sending never waits."""

    value: Ref
    to: int
    tag: int = 0
    template: ClassVar[str] = "send {value} to {to} tag {tag}"


@dataclass(frozen=True, slots=True)
class Receive(Instruction):
    """Ask for a value of this type from a rank; it is there after :class:`Wait`."""

    value: Ref
    type: TensorType
    source: int
    tag: int = 0
    template: ClassVar[str] = "receive {value} {type} from {source} tag {tag}"


@dataclass(frozen=True, slots=True)
class Move(Instruction):
    """Move a value to the device, to host memory or to disk; only values on the device are read."""

    value: Ref
    to: str
    template: ClassVar[str] = "move {value} to {to}"

    def __post_init__(self) -> None:
        if self.to not in PLACES:
            raise ValueError(f"there is no place {self.to!r}; there are {', '.join(PLACES)}")


@dataclass(frozen=True, slots=True)
class Free(Instruction):
    """Forget a value."""

    value: Ref
    template: ClassVar[str] = "free {value}"


_KINDS: dict[str, type[Instruction]] = {
    kind.__name__.lower(): kind for kind in (Run, Update, Start, Wait, Send, Receive, Move, Free)
}


def parse_type(text: str) -> TensorType:
    """The type that prints as ``text``. Raises ValueError."""
    found = re.fullmatch(r"tensor<\[((?:\d+(?:, ?\d+)*)?)\], (\w+)>", text)
    if found is None:
        raise ValueError(f"{text!r} is no type, such as tensor<[4, 8], float32>")
    return TensorType([int(size) for size in found[1].split(",") if size], found[2])


def parse_instruction(text: str) -> Instruction:
    """The instruction that prints as ``text``. Raises ValueError naming what is wrong."""
    word = text.split(" ", 1)[0]
    if word not in _KINDS:
        raise ValueError(f"{text!r} begins with no instruction; there are {', '.join(_KINDS)}")
    kind = _KINDS[word]
    found = _PATTERNS[word].fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} does not read as {kind.template!r}")
    types = {f.name: f.type for f in fields(kind)}
    line = json.loads(found["line"]) if found["line"] else ""
    return kind(**{k: _FROM_TEXT[types[k]](v) for k, v in found.groupdict().items() if k != "line"}, line=line)


def _freeze(value: Any) -> Any:
    return tuple(_freeze(each) for each in value) if isinstance(value, (list, tuple)) else value


def _options(data: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((key, _freeze(value)) for key, value in data.items()))


def _ranks(data: Any) -> tuple[int, ...]:
    return tuple(int(rank) for rank in data)


# From the type of a field, as written, to its form in text and JSON.
_TO_TEXT: dict[Any, Callable[[Any], str]] = {
    "str": str, "int": str, "Ref": str, "TensorType": str,
    "tuple[int, ...]": lambda group: f"({', '.join(map(str, group))})",
    "tuple[tuple[str, Any], ...]": lambda options: json.dumps(dict(options)),
}  # fmt: skip
_FROM_TEXT: dict[Any, Callable[[str], Any]] = {
    "str": str, "int": int, "Ref": Ref.parse, "TensorType": parse_type,
    "tuple[int, ...]": lambda text: _ranks(number for number in text.strip("()").split(",") if number),
    "tuple[tuple[str, Any], ...]": lambda text: _options(json.loads(text)),
}  # fmt: skip
_TO_JSON: dict[Any, Callable[[Any], Any]] = {
    "str": str, "int": int, "Ref": str, "TensorType": str, "tuple[int, ...]": list,
    "tuple[tuple[str, Any], ...]": dict,
}  # fmt: skip
_FROM_JSON: dict[Any, Callable[[Any], Any]] = {
    "str": str, "int": int, "Ref": Ref.parse, "TensorType": parse_type, "tuple[int, ...]": _ranks,
    "tuple[tuple[str, Any], ...]": _options,
}  # fmt: skip
_FORMS = {
    "str": r"[\w.]+", "int": r"\d+", "Ref": r"[\w.]+(?:\[[\d, ]+\])?", "TensorType": r"tensor<.*?>",
    "tuple[int, ...]": r"\([\d, ]*\)", "tuple[tuple[str, Any], ...]": r"\{.*?\}",
}  # fmt: skip


def _pattern(kind: type[Instruction]) -> re.Pattern[str]:
    types = {f.name: f.type for f in fields(kind)}
    parts = re.split(r"\{(\w+)\}", kind.template)
    body = "".join(
        re.escape(part) if i % 2 == 0 else f"(?P<{part}>{_FORMS[types[part]]})"  # type: ignore[index]
        for i, part in enumerate(parts)
    )
    return re.compile(body + r'(?: at (?P<line>"(?:[^"\\]|\\.)*"))?')


_PATTERNS = {word: _pattern(kind) for word, kind in _KINDS.items()}
