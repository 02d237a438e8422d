"""Operands of products as strided matrices whose outer axes may be split: heads that share keys cost no copy."""

from __future__ import annotations

from collections.abc import Container, Sequence

from argosy_cinn.forms.attention import Operand
from argosy_cinn.forms.dtypes import PARTS
from argosy_cinn.forms.expressions import Graph
from argosy_cinn.forms.indices import ZERO, Index, Position, SplitVariable, Variable, atom_index, linearise
from argosy_cinn.lowering.elements import ElementLowering
from argosy_cinn.shapes import sizes
from argosy_pir.core import Operation
from argosy_pir.values import Value


class OuterAxes:
    """The outer axes of scores, each as parts: ``[(4, 2), (8,)]`` is an axis of 8 split into 4 x 2 and one of 8."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.parts = [[n] for n in shape]

    @property
    def extents(self) -> list[int]:
        """All parts, in order."""
        return [n for axis in self.parts for n in axis]

    def variables(self) -> list[Variable]:
        """A loop variable for each part."""
        return [Variable(i, n) for i, n in enumerate(self.extents)]

    def coordinates(self, variables: Sequence[Variable]) -> list[Index]:
        """The index of each axis."""
        rest = iter(variables)
        return [linearise([atom_index(next(rest)) for _ in axis], axis) for axis in self.parts]

    def split(self, request: SplitVariable) -> bool:
        """Split a part as asked for; False where that is no part."""
        number = request.variable.number
        for axis in self.parts:
            if number < len(axis):
                axis[number : number + 1] = [axis[number] // request.factor, request.factor]
                return True
            number -= len(axis)
        return False


def operand_of(
    op: Operation, side: int, outer_axes: Sequence[int], outer: OuterAxes, memory: Container[Value]
) -> Operand:
    """Operand ``side`` of a product, whose batch axes are the scores' ``outer_axes``, in the product's order.

    Raises `SplitVariable` where a part of an outer axis has to be split, ``ValueError`` where the operand is no
    strided matrix over what is in memory.
    """
    name = "rhs" if side else "lhs"
    batch, contract = op.attributes[f"{name}_batch"], op.attributes[f"{name}_contract"]
    value = op.operand(side)
    shape = sizes(value)
    variables = outer.variables()
    count = len(variables)
    axes = outer.coordinates(variables)
    where = [ZERO] * len(shape)
    for axis, which in zip(batch, outer_axes, strict=True):
        where[axis] = axes[which]
    free_axis = next(i for i in range(len(shape)) if i not in batch and i not in contract)
    free = Variable(count, shape[free_axis], shape[free_axis])
    contracted = Variable(count + 1, shape[contract[0]], shape[contract[0]])
    where[free_axis], where[contract[0]] = atom_index(free), atom_index(contracted)
    lowering = ElementLowering(Graph(), memory, lambda v, p: None, split=True)
    lowering.immediates = False
    node = lowering.value(value, Position(shape, None, tuple(where), True))
    if node.kind != "load" or node.arguments or node.payload[1].low < 0:
        raise ValueError("not a matrix in memory")
    buffer, flat = node.payload
    if buffer.dtype in PARTS or any(not isinstance(atom, Variable) for atom, _ in flat.terms):
        raise ValueError("not a strided matrix")
    return Operand(
        buffer,
        flat.constant,
        tuple(flat.coefficient(v) for v in variables),
        flat.coefficient(free),
        flat.coefficient(contracted),
    )


def is_matrix(op: Operation, side: int, memory: Container[Value]) -> bool:
    """Whether an operand is a strided matrix over memory once outer axes are split."""
    name = "rhs" if side else "lhs"
    value = sizes(op.operand(side))
    outer = OuterAxes([value[axis] for axis in op.attributes[f"{name}_batch"]])
    while True:
        try:
            operand_of(op, side, range(len(outer.parts)), outer, memory)
            return True
        except ValueError:
            return False
        except SplitVariable as request:
            if not outer.split(request):
                return False
