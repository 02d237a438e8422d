"""A note in a plan, and its code.

The record of a call is two words at the start of its arena: the number of the check that refused an index, counted
from 1 (0: none has), and the index. The first one stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argosy_cinn.checks.rewrite import SITE
from argosy_cinn.loops.nest import PARAMETERS, Pointers
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import I64, PTR, constant
from argosy_cinn.printers.types import Value as MachineValue
from argosy_pir.core import Operation
from argosy_pir.dims import Dim
from argosy_pir.values import Value

RECORD_BYTES = 16


@dataclass(frozen=True, slots=True)
class Record:
    """The key of a call's record among the buffers of a plan."""


RECORD = Record()


@dataclass(slots=True)
class NoteKernel:
    """Note ``value`` as refused by check number ``site`` where ``first``, its place, is less than ``count``."""

    first: Value
    value: Value
    count: Dim
    site: int

    #: One call does it all.
    chunks = 1

    def slots(self) -> dict[Any, int]:
        """The place of each buffer in the kernel's table."""
        return {self.first: 0, self.value: 1, RECORD: 2}

    def text(self) -> str:
        """What the code depends on."""
        return f"note {self.site} {self.count}"

    def summary(self) -> str:
        """A line for `explain`."""
        return f"check of {self.count} indices"

    def work(self) -> tuple[int, int, int]:
        """Bytes read and written, and operations."""
        return 16, 0, 1


def lower_note(op: Operation) -> NoteKernel:
    """The kernel of a ``cinn.note_index``."""
    return NoteKernel(op.operand(0), op.operand(1), op.attributes["count"], op.attributes[SITE])


def emit_note(module: Module, name: str, kernel: NoteKernel) -> None:
    """Define the kernel function ``name``."""
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
        slots = kernel.slots()
        b.sizes_from(b.arguments[0], len(slots))
        pointers = Pointers(b, b.arguments[0], slots)
        record = pointers(RECORD)
        found = b.icmp("slt", b.load(I64, pointers(kernel.first)), b.number(kernel.count))
        with b.when(b.binary("and", found, is_clear(b, record))):
            b.store(constant(I64, kernel.site + 1), record)
            b.store(b.load(I64, pointers(kernel.value)), b.at(record, 1, I64))


def clear(b: Function, record: MachineValue) -> None:
    """Begin a call: no check has refused an index."""
    b.store(constant(I64, 0), record)


def is_clear(b: Function, record: MachineValue) -> MachineValue:
    """Whether no check has refused an index so far."""
    return b.icmp("eq", b.load(I64, record), 0)


def null() -> MachineValue:
    """What a segment returns where nothing was refused; otherwise it returns the address of the record."""
    return MachineValue(PTR, "null")


__all__ = ["RECORD", "RECORD_BYTES", "NoteKernel", "Record", "clear", "emit_note", "is_clear", "lower_note", "null"]
