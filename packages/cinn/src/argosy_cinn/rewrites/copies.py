"""Copies that give a value memory of its own."""

from __future__ import annotations

from dataclasses import dataclass

from argosy_cinn.lowering.classify import OWN, PRODUCT, classify
from argosy_pir.core import Operation
from argosy_pir.dims import is_static
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.values import BlockArgument, OpResult, Value

_CONSTANT = "builtin.constant"


@register_pass("copy-results")
@dataclass(frozen=True)
class CopyResults(Pass):
    """Gives every output and new state a value of its own: what is returned twice, or as it came, is copied."""

    def run(self, program: Program) -> bool:
        """Copy where that is needed; True where it was."""
        last = program.block.last
        assert last is not None
        arguments = {id(state.argument): i for i, state in enumerate(program.states)}
        outputs = len(last.operands) - len(program.states)
        seen: set[Value] = set()
        changed = False
        for i in range(len(last.operands) - 1, -1, -1):  # states first: an output that is a state's value is the copy
            value = last.operand(i)
            if i >= outputs and arguments.get(id(value)) == i - outputs:  # unchanged
                continue
            if value in seen or isinstance(value, BlockArgument) or _is_constant(value):
                _copy_operand(last, i)
                changed = True
            seen.add(value)
        return changed


@register_pass("copy-constants")
@dataclass(frozen=True)
class CopyConstants(Pass):
    """Copies a number repeated to a size known at run time where a branch, a loop, a product or a sort takes it, which
    read memory; others read it as a number, or from the program's constants."""

    def run(self, program: Program) -> bool:
        """Copy where that is needed; True where it was."""
        if all(op.name != _CONSTANT or is_static(op.result.shape) for op in program.block):
            return False
        changed = False
        for op in [op for op in program.block if op.regions or classify(op) in (PRODUCT, OWN)]:
            for i, value in enumerate(op.operands):
                if _is_constant(value) and not is_static(value.shape):
                    _copy_operand(op, i)
                    changed = True
        return changed


def _copy_operand(op: Operation, index: int) -> None:
    assert op.parent is not None
    value = op.operand(index)
    copy = Operation("prim.copy", (value,), (value.type,), location=op.location)
    op.parent.insert_before(op, copy)
    op.set_operand(index, copy.result)


def _is_constant(value: Value) -> bool:
    return isinstance(value, OpResult) and value.op.name == _CONSTANT


__all__ = ["CopyConstants", "CopyResults"]
