"""Applications of every primitive, as programs of one operation: from the operators' samples, and the rest by hand."""

import numpy as np
from prover import calls

from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.index import MODULES
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Builder, Program, TensorType
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor

UNUSED = {  # by samples of operators
    "rem": lambda x, y: prim.rem(x, y),
    "erfc": lambda x, y: prim.erfc(x),
    "place": lambda x, y: prim.place(x, source="cpu", target="virtual:1"),
    "grouped_outer": lambda x, y: prim.grouped_outer(
        prim.reshape(x, shape=(5, 1)), prim.reshape(y, shape=(5, 1)), prim.constant(2, "int64", (3,))
    ),
    "dynamic_slice": lambda x, y: prim.dynamic_slice(x, prim.constant(1, "int64"), sizes=(2,)),
    "dynamic_update_slice": lambda x, y: prim.dynamic_update_slice(
        x, prim.slice(y, start=(0,), limit=(2,), stride=(1,)), prim.constant(1, "int64")
    ),
}
NOT_COMPUTED = ("communication", "host")
LARGEST = 4096  # elements of an operand


def occurrences(most):
    """From each primitive to programs of one operation of it, which differ in attributes or types.

    There are at most ``most`` for the same dtypes and the same kind (of a scatter, of a cumulative operation).
    """
    found = {name: {} for name, primitive in PRIMITIVES.items() if primitive.category not in NOT_COMPUTED}
    for mark in ("relayout", "to_local", "from_local", "check_index"):  # the last one has no result
        del found[mark]
    for op in _operations():
        programs = found.get(op.kind) if op.dialect == "prim" else None
        if programs is not None and _is_small(op):
            group = programs.setdefault((op.attributes.get("kind"), *(x.dtype for x in op.operands[:2])), {})
            key = str(dict(op.attributes)), *(x.type for x in op.operands)
            if len(group) < most and key not in group:
                group[key] = alone(op)
    return {name: [p for group in programs.values() for p in group.values()] for name, programs in found.items()}


def alone(op):
    """A program of this operation only, on inputs of its operands' types."""
    program = Program("alone")
    operands = [program.add_input(x.type) for x in op.operands]
    types = [x.type for x in op.results]
    made = Builder.at_end(program.block).create(op.name, operands, dict(op.attributes), result_types=types)
    program.set_outputs(list(made.results))
    return program


def operation(program):
    """The one operation."""
    return next(iter(program.block))


def _operations():
    for name in MODULES:
        op = get_operator(name)
        for _, operands, attributes, _ in [] if op.opaque else calls(name, longest=1000):
            types = [
                TensorType(tuple(x.shape), x.dtype.name) if type(x) is Tensor else TensorType((), "float32")
                for x in operands
            ]
            yield from op.expand(types, attributes).program.walk()
    for body in UNUSED.values():
        program = Program("unused")
        x, y = (program.add_input(TensorType((5,), "float32")) for _ in range(2))
        with emit_at(Builder.at_end(program.block)):
            program.set_outputs([body(x, y)])
        yield from program.walk()


def _is_small(op):
    return all(isinstance(x.type, TensorType) and x.type.is_static for x in op.operands) and all(
        np.prod(x.shape, dtype=int) <= LARGEST for x in op.operands
    )


def values(program, rng):
    """Operands that are well inside of every domain; multiples of 1/64, so that sums of few are exact."""
    square = PRIMITIVES[operation(program).kind].category == "decomposition"
    return [value_of(tuple(x.shape), as_dtype(x.dtype).numpy, square, rng) for x in program.inputs]


def value_of(shape, dtype, square, rng):
    """See :func:`values`; ``square`` matrices are symmetric and regular."""
    if dtype.kind in "biu":
        return rng.integers(0, 2, shape).astype(dtype)
    made = rng.integers(8, 56, shape) / 64
    if dtype.kind == "c":
        made = made + 1j * rng.integers(8, 56, shape) / 64
    if square and len(shape) >= 2 and shape[-1] == shape[-2]:
        made = (made + np.swapaxes(made, -1, -2)) / 2 + np.diag(np.arange(1, shape[-1] + 1) * 8.0)
    return np.asarray(made, dtype)
