"""What a group computes, apart from where in the program it stands: repeated blocks have groups of equal structure."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from argosy_cinn.fusion.group import Group
from argosy_cinn.lowering.elements import splat_constant
from argosy_pir.attributes import attributes_key
from argosy_pir.core import Operation
from argosy_pir.values import OpResult, Value


class Structures:
    """The structures of a program's groups; ``in_memory`` holds the values that have a buffer."""

    def __init__(self, in_memory: Container[Value]) -> None:
        self._in_memory = in_memory
        self._keys: dict[Operation, Any] = {}

    def structure_of(self, group: Group) -> tuple[Any, list[Value]]:
        """What two groups agree in if and only if they lower alike up to the names of values, and the values in the
        order in which it numbers them."""
        numbers: dict[Value, int] = {}
        lines: list[Any] = []
        outer: Any = (group.kind, group.rows, group.columns)
        product = group.product
        if product is not None:
            ends = [self._visit(side.buffer, {}, numbers, lines) for side in product.operands]
            variables = product.variables()
            place = product.result_index(variables).key
            outer = (*outer, *ends, tuple(v.extent for v in variables), place)
        roots = [(self._visit(value, group.members, numbers, lines), f) for value, f in group.members.items()]
        return (outer, tuple(lines), tuple(roots)), list(numbers)

    def _visit(self, value: Value, members: Mapping[Value, str], numbers: dict[Value, int], lines: list[Any]) -> int:
        """The number of a value, after those that it is computed from."""
        found = numbers.get(value)
        if found is not None:
            return found
        op = value.op if isinstance(value, OpResult) else None
        constant = splat_constant(value) if op is not None and op.name == "builtin.constant" else None
        line: Any = value.type
        if constant is not None:
            line = (value.type, constant)
        elif op is not None and (value in members or value not in self._in_memory):
            # Operands of a product are read by its own code.
            operands = () if members.get(value) == "product" else op.operands
            place = op.results.index(value) if len(op.results) > 1 else 0
            line = (self._key(op), place, *[self._visit(v, members, numbers, lines) for v in operands])
        lines.append(line)
        numbers[value] = len(numbers)
        return numbers[value]

    def _key(self, op: Operation) -> Any:
        found = self._keys.get(op)
        if found is None:
            attributes = attributes_key(op.attributes)
            found = self._keys[op] = (op.name, attributes, *[r.type for r in op.results])
        return found
