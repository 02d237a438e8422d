"""Symbolic sizes of programs on a mesh: each symbol that a mesh dimension splits becomes a multiple of one, so that the
sizes of parts are polynomials again. It then stands for the size of a part, which divides evenly at every call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import lcm

from argosy_autoparallel.tensor_layout import Layout
from argosy_pir import Program, TensorType, Value
from argosy_pir.dims import Dim, SymExpr
from argosy_pir.substitution import substitute_sizes

__all__ = ["multiples_of", "parts_of_sizes", "split_sizes"]


def parts_of_sizes(values: Iterable[Value], layouts: Iterable[Layout | None]) -> dict[str, int]:
    """Into how many equal parts the layouts of inputs cut each symbol of their types.

    Raises ``NotImplementedError`` for a split axis whose size is an expression of symbols.
    """
    found: dict[str, int] = {}
    for value, layout in zip(values, layouts, strict=True):
        if layout is None or not isinstance(value.type, TensorType):
            continue
        for axis, size in enumerate(value.type.shape):
            if not isinstance(size, SymExpr):
                continue
            count = 1
            for dim in layout.sharding_dims(axis):
                count *= layout.mesh.shape[dim]
            if count > 1 and size.symbols != {str(size)}:
                raise NotImplementedError(f"partition: a split axis of size {size}, no symbol, is not implemented")
            for name in size.symbols:
                found[name] = lcm(found.get(name, 1), count)
    return found


def multiples_of(parts: Mapping[str, int]) -> dict[str, Dim]:
    """What comes in place of each symbol."""
    return {name: SymExpr.symbol(name) * count for name, count in parts.items() if count > 1}


def split_sizes(program: Program, layouts: Sequence[Layout | None], world: int) -> Program:
    """``program``, or a copy of it, whose sizes are cut evenly by the ``layouts`` of its inputs.

    Raises ``NotImplementedError`` where ranks of the ``world`` are outside of a mesh: they know no sizes.
    """
    if all(not isinstance(x.type, TensorType) or x.type.is_static for x in program.inputs):
        return program
    if any(layout is not None and len(layout.mesh.process_ids) < world for layout in layouts):
        raise NotImplementedError("partition: symbolic sizes on a mesh without all ranks are not implemented")
    multiples = multiples_of(parts_of_sizes(program.inputs, layouts))
    if multiples:
        program = program.clone()
        substitute_sizes(program, multiples)
    return program
