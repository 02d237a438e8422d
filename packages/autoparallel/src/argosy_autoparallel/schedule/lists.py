"""A rank's list: its instructions, the signatures of the pieces they run, and the types of the values it begins with.

All of it is data; functions are given to the runner, durations to the simulator.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from argosy_autoparallel.schedule.instructions import (
    Instruction,
    Ref,
    Run,
    Start,
    Update,
    parse_instruction,
    parse_type,
)
from argosy_pir.types import TensorType

__all__ = ["InstructionList", "Port", "ScheduleError", "Signature", "groups_of", "static_bytes"]


class ScheduleError(ValueError):
    """Lists that cannot run: the ranks, the instructions and their lines are named."""


class Port(NamedTuple):
    """An input or output of a piece; ``scope`` is how it is indexed: by chunk, microbatch, both or none."""

    name: str
    type: TensorType
    scope: str = "both"

    def ref(self, chunk: int, microbatch: int) -> Ref:
        """The value that the port means in a run."""
        return Ref(*self.key(chunk, microbatch))

    def key(self, chunk: int, microbatch: int) -> tuple[str, tuple[int, ...]]:
        """What equals :meth:`ref` in tables, and is quicker to make."""
        indices: tuple[int, ...] = (chunk, microbatch)
        return self.name, indices[_SCOPES[self.scope]]


_SCOPES: dict[str, slice] = {"both": slice(0, 2), "chunk": slice(0, 1), "microbatch": slice(1, 2), "none": slice(0, 0)}


class Signature(NamedTuple):
    """What a piece reads and writes, and how much memory it needs besides. A value that is an input and an output is
    updated; every other output is new.
    """

    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    temporary_bytes: int = 0


@dataclass(frozen=True)
class InstructionList:
    """What one rank does. ``pieces`` are signatures by (name, chunk), chunk None standing for all that have none of
    their own; ``given`` are the types of the values that are there in the beginning; ``resident_bytes`` are those of
    parameters and the like, which are no values of the list and on the device throughout.
    """

    instructions: tuple[Instruction, ...]
    pieces: Mapping[tuple[str, int | None], Signature] = field(default_factory=dict)
    given: Mapping[Ref, TensorType] = field(default_factory=dict)
    resident_bytes: int = 0

    def __len__(self) -> int:
        return len(self.instructions)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def __str__(self) -> str:
        return "\n".join(instruction.text() for instruction in self.instructions)

    def with_text(self, text: str) -> InstructionList:
        """The list with the instructions that print as ``text``, one a line. Raises ValueError naming the line."""
        made = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                try:
                    made.append(parse_instruction(line.strip()))
                except ValueError as error:
                    raise ValueError(f"line {number}: {error}") from error
        return InstructionList(tuple(made), self.pieces, self.given, self.resident_bytes)

    def signature(self, instruction: Run | Update) -> Signature | None:
        """The signature of the piece that an instruction runs, None for an unknown one."""
        found = self.pieces.get((instruction.piece, instruction.chunk))
        return self.pieces.get((instruction.piece, None)) if found is None else found

    def to_json(self) -> str:
        """The list as JSON text, which :meth:`from_json` reads."""
        pieces = [
            {"piece": name, "chunk": chunk, "inputs": _ports(s.inputs), "outputs": _ports(s.outputs),
             "temporary_bytes": s.temporary_bytes}
            for (name, chunk), s in self.pieces.items()
        ]  # fmt: skip
        given = {str(ref): str(type) for ref, type in self.given.items()}
        instructions = [instruction.to_json() for instruction in self.instructions]
        made = {"instructions": instructions, "pieces": pieces, "given": given, "resident_bytes": self.resident_bytes}
        return json.dumps(made)

    @classmethod
    def from_json(cls, text: str) -> InstructionList:
        """The list that :meth:`to_json` wrote. Raises ValueError for anything else."""
        try:
            data = json.loads(text)
            pieces = {
                (str(p["piece"]), None if p["chunk"] is None else int(p["chunk"])): Signature(
                    _read_ports(p["inputs"]), _read_ports(p["outputs"]), int(p["temporary_bytes"])
                )
                for p in data["pieces"]
            }
            given = {Ref.parse(ref): parse_type(type) for ref, type in data["given"].items()}
            instructions = tuple(Instruction.from_json(each) for each in data["instructions"])
            return cls(instructions, pieces, given, int(data.get("resident_bytes", 0)))
        except (KeyError, TypeError, AttributeError) as cause:
            raise ValueError(f"this is no instruction list: {type(cause).__name__}: {cause}") from cause


@lru_cache(maxsize=4096)
def static_bytes(type: TensorType) -> int:
    """The bytes of a value. Raises :class:`ScheduleError` for symbolic sizes, which lists do not have."""
    if not isinstance(type.nbytes, int):
        raise ScheduleError(f"{type} has symbolic sizes; lists have numbers")
    return type.nbytes


def groups_of(lists: Iterable[InstructionList]) -> list[tuple[int, ...]]:
    """The groups that the lists of all ranks communicate in, in an order that is the same everywhere."""
    return sorted({i.group for one in lists for i in one if isinstance(i, Start) and i.group})


def _ports(ports: tuple[Port, ...]) -> list[list[Any]]:
    return [[port.name, str(port.type), port.scope] for port in ports]


def _read_ports(data: Any) -> tuple[Port, ...]:
    ports = tuple(Port(str(name), parse_type(type), scope) for name, type, scope in data)
    if unknown := {port.scope for port in ports} - _SCOPES.keys():
        raise ValueError(f"ports are indexed by {', '.join(_SCOPES)}, not {unknown}")
    return ports
