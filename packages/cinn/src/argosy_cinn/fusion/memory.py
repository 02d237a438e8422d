"""Which values get memory of their own.

Walking the program forwards, a value is kept out of memory (pulled into its users' loops) as long as computing it again
there costs little. Inputs, states and constants are in memory from the start; reductions, matrix products and what runs
on the host are always written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from argosy_cinn.attention.operands import is_matrix
from argosy_cinn.attention.regions import Region, Regions, find_regions
from argosy_cinn.control import captured_values
from argosy_cinn.dialect import KEPT, PATCHES
from argosy_cinn.forms.cost import COSTS
from argosy_cinn.forms.elementwise import OPERATIONS
from argosy_cinn.forms.form import Form
from argosy_cinn.fusion.joins import find_joins
from argosy_cinn.fusion.products import operand_matrix
from argosy_cinn.lowering.classify import (
    CONSTANT,
    CONTROL,
    HOST,
    INLINE,
    JOIN,
    PRODUCT,
    REDUCE,
    SCAN,
    UPDATE,
    classify,
)
from argosy_cinn.lowering.elements import VIEWS, splat_constant
from argosy_cinn.shapes import count, estimate
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.rewrite.fuel import spend
from argosy_pir.values import OpResult, Value

#: A value with several users is pulled into each of them when that costs at most this much...
_CHEAP = 3
#: ...and reads at most this many large tensors.
_FEW_LEAVES = 1
#: Pulled values that grow beyond these are written.
_MOST_LEAVES = 12
_MOST_COST = 400


class Memory:
    """The decision. ``values`` has every value with a buffer, in program order; ``kinds`` the class of each
    operation; ``regions`` what fused attention computes (nothing where ``attention`` is not set). ``native`` are the
    branches and loops that have native code."""

    def __init__(
        self, program: Program, attention: bool = True, native: Mapping[Operation, Form] | None = None
    ) -> None:
        self.program, self.native = program, native or {}
        block = program.block
        self.kinds: dict[Operation, str] = {
            op: CONTROL if op in self.native else classify(op) for op in block if op is not block.last
        }
        self.kinds.update(dict.fromkeys(find_joins(program, self.kinds), JOIN))
        attention = attention and spend("attention", program.name)
        found = find_regions(program, self.kinds) if attention else Regions([], set(), list(block))
        self.regions = found
        self.values: dict[Value, None] = dict.fromkeys(program.block.arguments)
        self.returned = set(program.block.last.operands) if program.block.last is not None else set()
        self._cost: dict[Value, int] = {}
        self._leaves: dict[Value, frozenset[Value]] = {}
        for op in found.sequence:
            if op in found.of:
                self._decide_region(found.of[op])
            elif op is not block.last:
                self._decide(op)
        self._settle_operands()

    def _decide(self, op: Operation) -> None:
        kind = self.kinds[op]
        if kind == CONSTANT:
            if splat_constant(op.result) is None or op.result in self.returned:
                self.values[op.result] = None
            return
        if kind != INLINE:
            for index, operand in enumerate(op.operands):
                self._require(op, index, operand)
            for value in captured_values(op):
                if value not in self.values and splat_constant(value) is None:
                    self.values[value] = None
            self.values.update(dict.fromkeys(op.results))
            return
        self._combine(op)
        value = op.result
        if value in self.returned or op.name == KEPT or self._is_worth_memory(value):
            self.values[value] = None

    def _decide_region(self, region: Region) -> None:
        """What a region makes is in memory, and what it contracts is a matrix there; its operations come together, and
        the first one decides."""
        members = region.members()
        if members[0] in self.values:
            return
        self._settle_region(region)
        self.values.update(dict.fromkeys(members))

    def _settle_region(self, region: Region) -> None:
        operands = [(op, side) for op in region.scores for side in (0, 1)]
        operands += [(sink.op, 1 - sink.side) for sink in region.sinks]
        for op, side in operands:
            operand = op.operand(side)
            if operand not in self.values and not is_matrix(op, side, self.values):
                self._keep(operand, partial(is_matrix, op, side, self.values))

    def _keep(self, operand: Value, fits: Callable[[], bool]) -> None:
        """Give memory to an operand of a product, or to what it is a view of where that ``fits`` and is better: to a
        value whose views are all read anyhow (it may be the epilogue of what made it), or to the smallest one."""
        chain = self._views(operand)
        base = chain[-1]
        whole = [base] if base is not operand and self._is_read_whole(base) else []
        for value in (*whole, *sorted(chain, key=lambda v: estimate(count(v)))):
            self.values[value] = None
            if value is operand or fits():
                return
            del self.values[value]

    def _views(self, operand: Value) -> list[Value]:
        """An operand, what it is a view of, what that is a view of, ... as far as none has memory. Patches count: a
        product reads them in their image."""
        chain = [operand]
        while (op := _made_by(chain[-1])) is not None and (op.kind in VIEWS or op.name == PATCHES):
            source = op.operand(0)
            if source in self.values or self._kind(source) != INLINE or source.dtype != operand.dtype:
                break
            chain.append(source)
        return chain

    def _is_read_whole(self, value: Value) -> bool:
        op = _made_by(value)
        computed = op is not None and op.kind in OPERATIONS
        return computed and _elements_read(value) >= estimate(count(value))

    def _require(self, op: Operation, index: int, operand: Value) -> None:
        """Operands of what is not fused are in memory; a matrix product reads views in place."""
        if operand in self.values or (kind := self._kind(operand)) is None:
            return
        if self.kinds[op] in (REDUCE, SCAN, UPDATE):
            return  # computed in the operation's own loops
        if self.kinds[op] != PRODUCT or kind != INLINE:
            self.values[operand] = None
        elif operand_matrix(op, index, self.values) is None:
            self._keep(operand, lambda: operand_matrix(op, index, self.values) is not None)

    def _settle_operands(self) -> None:
        """A view that an operand was to be read through may have got memory since, and no longer be one matrix."""
        fused = {op for region in self.regions.regions for op in region.scores} | self.regions.of.keys()
        products = [op for op, kind in self.kinds.items() if kind == PRODUCT and op not in fused]
        changed = True
        while changed:
            before = len(self.values)
            for region in self.regions.regions:
                self._settle_region(region)
            for op in products:
                for index, operand in enumerate(op.operands):
                    if operand not in self.values and operand_matrix(op, index, self.values) is None:
                        self.values[operand] = None
            changed = len(self.values) != before

    def _kind(self, value: Value) -> str | None:
        return self.kinds[value.op] if isinstance(value, OpResult) else None

    def _combine(self, op: Operation) -> None:
        """Cost and leaves of a pulled value."""
        cost = 0 if op.kind in VIEWS else COSTS.get(op.kind, 1)
        leaves: set[Value] = set()
        for operand in set(op.operands):
            if operand in self.values:
                leaves.add(operand)
            elif splat_constant(operand) is None:
                cost += self._cost.get(operand, 0)
                leaves |= self._leaves.get(operand, frozenset())
        self._cost[op.result], self._leaves[op.result] = cost, frozenset(leaves)

    def _is_worth_memory(self, value: Value) -> bool:
        cost, leaves = self._cost[value], self._leaves[value]
        if cost == 0:
            return False
        if len(leaves) > _MOST_LEAVES or cost > _MOST_COST:
            return True
        size = estimate(count(value))
        if any(self._grows(user, value, size) for user in value.users) and cost > 2:
            return True
        if len(value.uses) < 2 or not leaves:
            return False
        large = [leaf for leaf in leaves if estimate(count(leaf)) * 4 >= size]
        return cost > _CHEAP or len(large) > _FEW_LEAVES

    def _grows(self, user: Operation, value: Value, size: int) -> bool:
        """Whether the user repeats the value, so that pulling it computes it again for every copy."""
        if user.name in ("prim.broadcast", "prim.gather") and user.results:
            return estimate(count(user.result)) >= 2 * size
        if user.name == "prim.reshape":
            return any(self._grows(further, user.result, size) for further in user.result.users)
        return False


def _made_by(value: Value) -> Operation | None:
    return value.op if isinstance(value, OpResult) else None


def _elements_read(value: Value) -> int:
    """How many elements the users of a value read, through views that move all of them or cut some out."""
    total = 0
    for user in value.users:
        if user.name in ("prim.reshape", "prim.transpose") and user.results:
            total += _elements_read(user.result)
        else:
            total += estimate(count(user.result if user.name == "prim.slice" else value))
    return total


__all__ = ["HOST", "Memory"]
