"""Transforms over axes become steps along lines: ``cinn.fourier``, one for each axis, or two where lines are long or
few.

A step reads and writes buffers by its own strides (see `FourierForm`), so that no tensor is moved between steps. Real
factors of what comes in and goes out ride along.
"""

from __future__ import annotations

from math import prod

import numpy as np

from argosy_cinn.dialect import FOURIER
from argosy_cinn.fourier.factors import around, filling, fits_square, has_radices, split
from argosy_cinn.fourier.lengths import Lines, has_transform
from argosy_cinn.fuel import allowed
from argosy_cinn.printers.types import LLVM_TYPES
from argosy_cinn.rewrites.building import defined_by, splat_of
from argosy_cinn.rewrites.simplify import remove_dead
from argosy_cinn.shapes import sizes
from argosy_cinn.target import Target
from argosy_phi_ops.context import building
from argosy_phi_ops.primitives.checks import REAL_OF
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import OpResult, Value

#: Numbers of the longest line that is transformed at once: as many as scratch memory in a cache holds with their
#: neighbours.
_LONGEST = 4096
#: From these lengths on, lines are so many times faster when taken apart into two steps that fill vectors.
_GAINS = ((2048, 1.6), (512, 1.3))
#: The same from this number of vectors on, where the shorter length is whole vectors: groups of lines do not overlap
#: then.
_WHOLE, _WHOLE_GAIN = 16, 1.7
#: Fewer lines than half a vector leave lanes empty: they are taken apart from this length on.
_SHORT = 64
#: Numbers of a line both of whose steps one thread makes: of few lines, and of several ones, which threads share.
_NEAR, _SEVERAL = (1 << 14, 1 << 16), 8
_COMPLEX_OF = {"float32": "complex64", "float64": "complex128"}


def transforms_as_steps(program: Program) -> None:
    """Rewrite every ``prim.fft`` of ``program`` that there is code for, in place."""
    for op in list(program.block):
        if op.name == "prim.fft" and _is_known(op) and not _has_steps(op) and _has_lengths(op):
            _replace_lengths(op)
    for op in list(program.block):
        if op.name == "prim.fft" and _is_known(op) and _has_steps(op) and allowed("rewrite.fft", op):
            value, before = _multiple(op.operand(0)) or (op.operand(0), 1.0)
            last, after = _scaled_result(op)
            last.replace_with([_stepped(op, value, before * after)])
    remove_dead(program.block)


def _is_known(op: Operation) -> bool:
    """Whether sizes are numbers, and nothing is empty."""
    numbers = [*op.operand(0).shape, *op.result.shape]
    return bool(op.attributes["axes"]) and all(isinstance(n, int) and n > 0 for n in numbers)


def _has_steps(op: Operation) -> bool:
    a, x, y = op.attributes, sizes(op.operand(0)), sizes(op.result)
    last = a["axes"][-1]
    if a["kind"] == "c2r" and x[last] < y[last] // 2 + 1:
        return False
    real = REAL_OF.get(op.operand(0).dtype, op.operand(0).dtype)
    whole = y if a["kind"] == "c2r" else x
    return all(
        (has_radices(whole[i]) and whole[i] <= _LONGEST) or _pieces(a["kind"], whole, i, real) is not None
        for i in a["axes"]
    )


def _has_lengths(op: Operation) -> bool:
    """Whether the transform can be made of others that have steps."""
    whole = sizes(op.result) if op.attributes["kind"] == "c2r" else sizes(op.operand(0))
    return all(has_transform(whole[i], _LONGEST) for i in op.attributes["axes"])


def _replace_lengths(op: Operation) -> None:
    """One transform for each axis, of lengths that there are steps for."""
    if not allowed("rewrite.fft", op):
        return
    a, x = op.attributes, op.operand(0)
    *others, last = a["axes"]
    builder = Builder.before(op)
    with building(builder):
        lines = Lines(builder, a["inverse"], _LONGEST)
        if a["kind"] == "r2c":
            x = lines.from_real(x, last)
        for axis in others if a["kind"] != "c2c" else a["axes"]:
            x = lines.complex(x, axis)
        if a["kind"] == "c2r":
            x = lines.to_real(x, last, sizes(op.result)[last])
    op.replace_with([x])


def _pieces(kind: str, shape: tuple[int, ...], axis: int, real: str) -> tuple[int, int] | None:
    """The two lengths that the lines along an axis are taken apart into, where that is possible and better."""
    n, others, inner = shape[axis], prod(shape[:axis]), prod(shape[axis + 1 :])
    lanes = Target.host().lanes(LLVM_TYPES[real])
    if not has_radices(n):
        return around(n, lanes, _LONGEST) if kind == "c2c" and inner == 1 else None
    if inner == 1 and kind == "c2c" and fits_square(n, others, lanes):
        return None
    parts = split(n, lanes, _LONGEST) if kind == "c2c" and inner == 1 and n >= _SHORT else None
    if parts is None or n > _LONGEST or others < lanes // 2:
        return parts
    gain = next((gain for length, gain in _GAINS if n >= length), 0.0)
    if parts[0] % lanes == 0 and n >= _WHOLE * lanes:
        gain = max(gain, _WHOLE_GAIN)
    return parts if filling(parts, lanes) < gain else None


# -- steps


def _stepped(op: Operation, value: Value, scale: float) -> Value:
    """The steps of a transform, of ``value`` times ``scale``."""
    a = op.attributes
    *others, last = a["axes"]
    builder = Builder.before(op)
    order = [*others, last] if a["kind"] == "c2r" else [last, *others]
    for axis in order:
        kind = a["kind"] if axis == last else "c2c"
        factor = scale if axis == order[-1] else 1.0
        length = sizes(op.result)[axis]
        value = _along(builder, value, axis, kind, length, a["inverse"], factor)
    return value


def _along(builder: Builder, x: Value, axis: int, kind: str, length: int, inverse: bool, scale: float) -> Value:
    """The steps along one axis; ``length`` is the size of the result."""
    shape = sizes(x)
    real = REAL_OF.get(x.dtype, x.dtype)
    outer, n, inner = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    made = TensorType((*shape[:axis], length, *shape[axis + 1 :]), real if kind == "c2r" else _COMPLEX_OF[real])
    pieces = _pieces(kind, shape, axis, real)
    if pieces is not None:
        if n <= _NEAR[outer >= _SEVERAL] or not has_radices(n):
            lines, steps = (1, outer, n), (0, n, 1)
            return _step(builder, x, made, lines, steps, steps, "c2c", inverse, scale, pieces=pieces)
        first, second = pieces
        steps = (n, 1, second)
        x = _step(builder, x, made, (outer, second, first), steps, steps, "c2c", inverse, 1.0, n)
        steps, back = (n, second, 1), (n, 1, first)
        return _step(builder, x, made, (outer, first, second), steps, back, "c2c", inverse, scale)
    whole = length if kind == "c2r" else n
    if inner == 1:
        lines = (1, outer, whole)
        return _step(builder, x, made, lines, (0, n, 1), (0, length, 1), kind, inverse, scale)
    lines = (outer, inner, whole)
    steps, back = (n * inner, 1, inner), (length * inner, 1, inner)
    return _step(builder, x, made, lines, steps, back, kind, inverse, scale)


def _step(
    builder: Builder, x: Value, made: TensorType, lines: tuple[int, int, int], source: tuple[int, int, int],
    target: tuple[int, int, int], kind: str, inverse: bool, scale: float, turn: int = 0,
    pieces: tuple[int, ...] = (),
) -> Value:  # fmt: skip
    outers, lanes, length = lines
    attributes = {
        "outers": outers, "lanes": lanes, "length": length, "source": source, "target": target, "kind": kind,
        "inverse": inverse, "scale": scale, "turn": turn, "pieces": pieces,
    }  # fmt: skip
    return builder.create(FOURIER, (x,), attributes, (made,)).result


# -- factors


def absorb_factors(program: Program) -> None:
    """Let transforms of a simplified ``program`` multiply with the real numbers that their operands are multiplied
    with."""
    for op in list(program.block):
        source = _source(op.operand(0)) if op.name == FOURIER else None
        if source is not None and allowed("rewrite.fft", op):
            value, factor = source
            attributes = {**op.attributes, "scale": op.attributes["scale"] * factor}
            made = Builder.before(op).create(FOURIER, (value,), attributes, (op.result.type,)).result
            op.replace_with([made])
    remove_dead(program.block)


def _source(value: Value) -> tuple[Value, float] | None:
    """What a value is a real multiple of."""
    op = defined_by(value, "prim.complex")
    if op is None:
        return _multiple(value)
    parts = [_multiple(part) for part in op.operands]
    if parts[0] is None or parts[1] is None or parts[0][1] != parts[1][1]:
        return None
    re, im = defined_by(parts[0][0], "prim.real"), defined_by(parts[1][0], "prim.imag")
    if re is None or im is None or re.operand(0) is not im.operand(0):
        return None
    return re.operand(0), parts[0][1]


def _multiple(value: Value) -> tuple[Value, float] | None:
    """The operand and the real number of a product or quotient."""
    op = value.op if isinstance(value, OpResult) else None
    if op is None or op.name not in ("prim.mul", "prim.div"):
        return None
    for x, number in ((0, 1), (1, 0)) if op.name == "prim.mul" else ((0, 1),):
        found = splat_of(op.operand(number))
        if found is not None and np.isreal(found) and np.isfinite(found) and found.real != 0:
            factor = float(found.real)
            return op.operand(x), factor if op.name == "prim.mul" else 1 / factor
    return None


def _scaled_result(op: Operation) -> tuple[Operation, float]:
    """The last of the products with real numbers that a result alone goes into, and what they multiply with."""
    last, scale = op, 1.0
    while len(last.result.uses) == 1:
        (user,) = last.result.users
        found = _multiple(user.result) if user.name in ("prim.mul", "prim.div") else None
        if found is None or found[0] is not last.result or user.parent is not op.parent:
            break
        last, scale = user, scale * found[1]
    return last, scale
