"""The code of checks of indices, and of the record of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy_cinn.emitter import Emitter
from argosy_cinn.forms.index_check import RECORD, IndexCheckForm
from argosy_cinn.loops.nest import PARAMETERS, Pointers
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import I64, PTR, constant
from argosy_cinn.printers.types import Value as MachineValue


def emit_check(module: Module, name: str, kernel: IndexCheckForm, slots: Mapping[Any, int]) -> None:
    """Define the kernel function ``name``."""
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
        b.sizes_from(b.arguments[0], len(slots))
        pointers = Pointers(b, b.arguments[0], slots)
        record = pointers(RECORD)
        found = b.icmp("slt", b.load(I64, pointers(kernel.first)), b.number(kernel.count))
        with b.if_then(b.binary("and", found, is_clear(b, record))):
            b.store(constant(I64, kernel.site + 1), record)
            b.store(b.load(I64, pointers(kernel.value)), b.gep(record, 1, I64))


EMITTER = Emitter(emit_check, lambda kernel, target: 1)
"""For `argosy_cinn.kinds`."""


def clear_record(b: Function, record: MachineValue) -> None:
    """Begin a call: no check has refused an index."""
    b.store(constant(I64, 0), record)


def is_clear(b: Function, record: MachineValue) -> MachineValue:
    """Whether no check has refused an index so far."""
    return b.icmp("eq", b.load(I64, record), 0)


def null() -> MachineValue:
    """What a segment returns where nothing was refused; otherwise it returns the address of the record."""
    return MachineValue(PTR, "null")
