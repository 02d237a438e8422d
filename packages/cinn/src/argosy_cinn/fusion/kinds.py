"""The kinds of kernels as fusion sees them: groups of operations, and their forms."""

from __future__ import annotations

from collections.abc import Container, Iterable
from math import prod

from argosy_cinn.attention.lowering import lower_attention
from argosy_cinn.attention.regions import Region
from argosy_cinn.contraction.winograd.blocking import sees_three_by_three
from argosy_cinn.forms.expressions import Graph, loaded_buffers
from argosy_cinn.forms.form import Form
from argosy_cinn.forms.indices import Index, Variable, atom_index
from argosy_cinn.forms.nest import REDUCTIONS, LoopNest, phases
from argosy_cinn.fusion.forms import lower_copy, lower_nest, lower_product
from argosy_cinn.fusion.group import Group, KernelKind
from argosy_cinn.fusion.group_lowering import KnownReads
from argosy_cinn.fusion.joins import offsets_in
from argosy_cinn.fusion.memory import Memory
from argosy_cinn.fusion.products import lay_out
from argosy_cinn.fusion.reads import host_reads
from argosy_cinn.kinds import lower_alone
from argosy_cinn.lowering.classify import CONTROL, HOST, JOIN, OWN, PRODUCT, UPDATE, reduction_axes
from argosy_cinn.lowering.elements import ElementLowering
from argosy_cinn.shapes import at_least_one, count, sizes
from argosy_phi_ops.reference.interpreter import plan_into
from argosy_pir.core import Operation
from argosy_pir.effects import is_pure
from argosy_pir.rewrite.fuel import spend
from argosy_pir.values import Value


def _loads(graph: Graph, buffer: Value) -> list[Index]:
    """Where expressions read a buffer."""
    return [node.payload[1] for node in graph.order if node.kind == "load" and node.payload[0] is buffer]


class Nest(KernelKind):
    """Loop nests: elements, reductions and cumulatives."""

    takes_producers = takes_readers = True

    def group(self, op: Operation, number: int, order: int, memory: Memory, reads: KnownReads) -> Group:
        """On a flat grid, or on that of a reduction."""
        group = Group(number, self, order, {op.result: "full"}, at_least_one(count(op.result)), 0)
        layout = reduction_axes(op) if op.name == "prim.cumulative" or op.name in REDUCTIONS else None
        if layout is not None:
            flavour, group.rows, group.columns = "strided", layout.kept_outer, layout.kept_inner
            if op.name == "prim.cumulative":
                flavour = "scan"
            elif layout.kept_inner == 1:
                flavour, group.columns = "sum", layout.reduced
            elif layout.kept_outer == 1:
                flavour, group.rows = "column", layout.reduced
            group.members = {op.result: flavour}
        group.reads = reads.find_reads(group)
        return group

    def lower(self, group: Group, memory: Memory, stored: Container[Value]) -> list[Form]:
        """One nest."""
        return [lower_nest(group, memory.values, stored)]

    def may_write_over(self, group: Group, forms: list[Form], argument: Value, value: Value) -> bool:
        """Where one loop over a row does all."""
        (nest,) = forms
        assert isinstance(nest, LoopNest)
        loads = _loads(nest.graph, argument)
        if loads and (phases(nest) > 1 or nest.sequential):
            return False
        return set(loads) <= {s.index for s in nest.stores if s.buffer is value}


class Update(KernelKind):
    """Copies some elements of which are written over; without the copy, where that is done in place."""

    def group(self, op: Operation, number: int, order: int, memory: Memory, reads: KnownReads) -> Group:
        """On the grid of what is written."""
        if op.name == "prim.dynamic_update_slice":
            written, rest = op.operand(1), sizes(op.operand(1))[-1:]
        else:
            axes, batch = op.attributes["axes"], op.attributes["batch"]
            written = op.operand(2)
            rest = tuple(n for i, n in enumerate(sizes(op.operand(0))) if i >= batch and i not in axes)
        columns = prod(rest)
        group = Group(number, self, order, {op.result: "update"}, count(written) // at_least_one(columns), columns, op)
        lowering = ElementLowering(Graph(), memory.values, lambda value, position: None, False)
        x = op.operand(0)
        lowering.value(x, lowering.position(x, atom_index(Variable(0, prod(sizes(x))))))
        group.reads = reads.find_reads(group) if group.rows * columns else set()
        group.reads |= loaded_buffers(lowering.graph)
        return group

    def lower(self, group: Group, memory: Memory, stored: Container[Value]) -> list[Form]:
        """The copy, and what is written over it."""
        op = group.operation
        copy = lower_copy(op.operand(0), op.result, memory.values)
        return [copy, lower_nest(group, memory.values, stored)] if group.rows * group.columns else [copy]

    def may_write_over(self, group: Group, forms: list[Form], argument: Value, value: Value) -> bool:
        """Where the copy is all that reads it."""
        nest = forms[-1]
        read = isinstance(nest, LoopNest) and _loads(nest.graph, argument)
        return group.operation.operand(0) is argument and not read and len(forms) == 2

    def in_place(self, forms: list[Form]) -> list[Form]:
        """No copy is needed."""
        return forms[1:]


class MatrixProduct(KernelKind):
    """Matrix products with what is computed of each of their elements."""

    takes_readers = True

    def group(self, op: Operation, number: int, order: int, memory: Memory, reads: KnownReads) -> Group:
        """On the grid of its result, whose rows are those of all batch elements."""
        product = lay_out(op, memory.values)
        product.minimal = sees_three_by_three(product.right.window) and spend("winograd", op)
        rows = prod(product.batch) * product.rows
        return Group(
            number, self, order, {op.result: "product"}, rows, product.columns, op,
            product.buffers, product=product,
        )  # fmt: skip

    def lower(self, group: Group, memory: Memory, stored: Container[Value]) -> list[Form]:
        """The product with its epilogue."""
        return [lower_product(group, memory.values, stored)]

    def may_write_over(self, group: Group, forms: list[Form], argument: Value, value: Value) -> bool:
        """Where the epilogue is all that reads it."""
        assert group.product is not None
        (form,) = forms
        epilogue = form.epilogue  # type: ignore[attr-defined]
        if argument in group.product.buffers:
            return False
        return set(_loads(epilogue.graph, argument)) <= {s.index for s in epilogue.stores if s.buffer is value}


class Attention(KernelKind):
    """Fused attention."""

    def group_of_region(self, region: Region, number: int, order: int, memory: Memory) -> Group:
        """The group of all that a region makes."""
        members = region.members()
        group = Group(number, self, order, dict.fromkeys(members, "attention"), region=region)
        group.reads = lower_attention(region, memory.values, members).reads()
        return group

    def lower(self, group: Group, memory: Memory, stored: Container[Value]) -> list[Form]:
        """One form."""
        assert group.region is not None
        return [lower_attention(group.region, memory.values, stored)]


class StandaloneKernel(KernelKind):
    """Operations of the compiler's own that are kernels alone, see `argosy_cinn.kinds`; ``always_runs``: for what it
    does rather than for what it makes."""

    def __init__(self, always_runs: bool) -> None:
        self._always_runs = always_runs

    @property
    def always_runs(self) -> bool:
        """As it was made."""
        return self._always_runs

    def group(self, op: Operation, number: int, order: int, memory: Memory, reads: KnownReads) -> Group:
        """Without a grid."""
        return Group(number, self, order, {op.result: "alone"}, op=op, reads=set(op.operands))

    def lower(self, group: Group, memory: Memory, stored: Container[Value]) -> list[Form]:
        """The form that is registered for the operation."""
        return [lower_alone(group.operation)]


class HostCall(KernelKind):
    """What has no code: the reference kernel runs."""

    opaque = on_host = True

    def group(self, op: Operation, number: int, order: int, memory: Memory, reads: KnownReads) -> Group:
        """All results, and what regions read, too."""
        return Group(number, self, order, dict.fromkeys(op.results, "host"), op=op, reads=host_reads(op))

    def lower(self, group: Group, memory: Memory, stored: Container[Value]) -> list[Form]:
        """Nothing."""
        return []

    def may_write_over(self, group: Group, forms: list[Form], argument: Value, value: Value) -> bool:
        """Where its kernel writes to the place of the result, and reads nothing there."""
        return argument not in group.reads and plan_into(group.operation) is not None

    def overwrite_candidates(self, group: Group, forms: list[Form]) -> Iterable[tuple[Value, list[Value]]]:
        """Sums over ranks are made where their terms are."""
        op = group.operation
        if op.name not in ("prim.all_reduce", "prim.reduce_scatter_coalesced"):
            return ()
        return [(result, [x]) for result, x in zip(op.results[:-1], op.operands[:-1], strict=True)]


class Control(HostCall):
    """Branches and loops whose regions have code."""

    on_host = False

    def may_write_over(self, group: Group, forms: list[Form], argument: Value, value: Value) -> bool:
        """Never: regions may read it."""
        return False

    def lower(self, group: Group, memory: Memory, stored: Container[Value]) -> list[Form]:
        """The form that was planned before."""
        return [memory.native[group.operation]]


class Join(KernelKind):
    """Parts that are made where they are to lie: nothing is left to do."""

    opaque = True

    def group(self, op: Operation, number: int, order: int, memory: Memory, reads: KnownReads) -> Group:
        """The whole."""
        return Group(number, self, order, {op.result: "join"}, op=op, reads=set(op.operands))

    def lower(self, group: Group, memory: Memory, stored: Container[Value]) -> list[Form]:
        """Nothing."""
        return []

    def places(self, group: Group) -> dict[Value, tuple[Value, int]]:
        """Each part in the whole, from a byte on."""
        op = group.operation
        return {x: (op.result, start) for x, start in zip(op.operands, offsets_in(op), strict=True)}


ATTENTION, NEST = Attention(), Nest()
_ALONE = {effect: StandaloneKernel(always_runs=effect) for effect in (False, True)}
_KINDS: dict[str, KernelKind] = {
    HOST: HostCall(),
    CONTROL: Control(),
    PRODUCT: MatrixProduct(),
    UPDATE: Update(),
    JOIN: Join(),
}


def kind_of(op: Operation, classified: str) -> KernelKind:
    """The kind of kernel that an operation becomes which was classified so."""
    if classified == OWN:
        return _ALONE[not is_pure(op)]
    return _KINDS.get(classified, NEST)
