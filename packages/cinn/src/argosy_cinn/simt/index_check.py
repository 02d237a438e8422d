"""Checks of indices: one work-item looks, and writes the record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy_cinn.forms.index_check import RECORD, IndexCheckForm
from argosy_cinn.printers.types import I64, constant
from argosy_cinn.printers.work_groups import WorkGroupInstructions
from argosy_cinn.simt.emitter import SimtEmitter


def emit_check(b: WorkGroupInstructions, kernel: IndexCheckForm, slots: Mapping[Any, int]) -> None:
    """Record the index where one is out of range and nothing is recorded yet."""
    record, first = b.buffers[slots[RECORD]], b.buffers[slots[kernel.first]]
    found = b.icmp("slt", b.load(I64, first), kernel.count)
    with b.if_then(b.binary("and", found, b.icmp("eq", b.load(I64, record), 0))):
        b.store(constant(I64, kernel.site + 1), record)
        b.store(b.load(I64, b.buffers[slots[kernel.value]]), b.gep(record, 1, I64))


EMITTER = SimtEmitter(emit_check, lambda form, target: (1, 1))
"""For `argosy_cinn.kinds`."""
