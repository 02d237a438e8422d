"""Transforms over axes become steps along lines: ``cinn.fourier``, one for each axis, or two where lines are long or
few.

A step reads and writes buffers by its own strides (see `FourierForm`), so that no tensor is moved between steps. Real
factors of what comes in and goes out ride along.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from argosy_cinn.dialect import FOURIER
from argosy_cinn.fourier.factors import fits_square, has_radices, lane_usage, split, two_factors
from argosy_cinn.fourier.lengths import Lines, has_transform
from argosy_cinn.rewrites.builders import defined_by, replacements, splat_of
from argosy_cinn.shapes import sizes
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.primitives.checks import REAL_OF
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.rewrite.driver import apply_patterns
from argosy_pir.rewrite.fuel import spend
from argosy_pir.types import ITEM_SIZES, TensorType
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


@register_pass("expand-transforms")
@dataclass(frozen=True)
class ExpandTransforms(Pass):
    """Rewrites every ``prim.fft`` that there is code for as steps, for vector registers of ``vector_bits``."""

    vector_bits: int = 256

    def run(self, program: Program) -> bool:
        """Rewrite the program's own block; True where anything changed."""
        bits = self.vector_bits
        known = [op for op in program.block if op.name == "prim.fft" and is_known(op)]
        others = [op for op in known if not _has_steps(op, bits) and _has_lengths(op) and spend("rewrite.fft", op)]
        for op in others:
            replace_axes(op, Lines, _LONGEST)
        steps = [op for op in program.block if op.name == "prim.fft" and is_known(op) and _has_steps(op, bits)]
        steps = [op for op in steps if spend("rewrite.fft", op)]
        for op in steps:
            value, before = _multiple(op.operand(0)) or (op.operand(0), 1.0)
            last, after = _scaled_result(op)
            last.replace_with([_transform_steps(op, value, before * after, bits)])
        return bool(others or steps)


def is_known(op: Operation) -> bool:
    """Whether sizes are numbers, and nothing is empty."""
    numbers = [*op.operand(0).shape, *op.result.shape]
    return bool(op.attributes["axes"]) and all(isinstance(n, int) and n > 0 for n in numbers)


def _has_steps(op: Operation, vector_bits: int) -> bool:
    a, x, y = op.attributes, sizes(op.operand(0)), sizes(op.result)
    last = a["axes"][-1]
    if a["kind"] == "c2r" and x[last] < y[last] // 2 + 1:
        return False
    real = REAL_OF.get(op.operand(0).dtype, op.operand(0).dtype)
    whole = y if a["kind"] == "c2r" else x
    return all(
        (has_radices(whole[i]) and whole[i] <= _LONGEST) or _pieces(a["kind"], whole, i, real, vector_bits) is not None
        for i in a["axes"]
    )


def _has_lengths(op: Operation) -> bool:
    """Whether the transform can be made of others that have steps."""
    whole = sizes(op.result) if op.attributes["kind"] == "c2r" else sizes(op.operand(0))
    return all(has_transform(whole[i], _LONGEST) for i in op.attributes["axes"])


def replace_axes(op: Operation, kind: type[Lines], longest: int) -> None:
    """One transform for each axis, as a ``kind`` of lines of at most ``longest`` numbers makes them."""
    a, x = op.attributes, op.operand(0)
    *others, last = a["axes"]
    builder = Builder.before(op)
    with emit_at(builder):
        lines = kind(builder, a["inverse"], longest)
        if a["kind"] == "r2c":
            x = lines.from_real(x, last)
        for axis in others if a["kind"] != "c2c" else a["axes"]:
            x = lines.complex_transform(x, axis)
        if a["kind"] == "c2r":
            x = lines.to_real(x, last, sizes(op.result)[last])
    op.replace_with([x])


def _pieces(kind: str, shape: tuple[int, ...], axis: int, real: str, vector_bits: int) -> tuple[int, int] | None:
    """The two lengths that the lines along an axis are taken apart into, where that is possible and better."""
    n, others, inner = shape[axis], prod(shape[:axis]), prod(shape[axis + 1 :])
    lanes = vector_bits // (8 * ITEM_SIZES[real])
    if not has_radices(n):
        return two_factors(n, lanes, _LONGEST) if kind == "c2c" and inner == 1 else None
    if inner == 1 and kind == "c2c" and fits_square(n, others, lanes):
        return None
    parts = split(n, lanes, _LONGEST) if kind == "c2c" and inner == 1 and n >= _SHORT else None
    if parts is None or n > _LONGEST or others < lanes // 2:
        return parts
    gain = next((gain for length, gain in _GAINS if n >= length), 0.0)
    if parts[0] % lanes == 0 and n >= _WHOLE * lanes:
        gain = max(gain, _WHOLE_GAIN)
    return parts if lane_usage(parts, lanes) < gain else None


# -- steps


def _transform_steps(op: Operation, value: Value, scale: float, vector_bits: int) -> Value:
    """The steps of a transform, of ``value`` times ``scale``."""
    a = op.attributes
    *others, last = a["axes"]
    builder = Builder.before(op)
    order = [*others, last] if a["kind"] == "c2r" else [last, *others]
    for axis in order:
        kind = a["kind"] if axis == last else "c2c"
        factor = scale if axis == order[-1] else 1.0
        length = sizes(op.result)[axis]
        pieces = _pieces(kind, sizes(value), axis, REAL_OF.get(value.dtype, value.dtype), vector_bits)
        value = _steps_of_axis(builder, value, axis, kind, length, a["inverse"], factor, pieces)
    return value


def _steps_of_axis(
    builder: Builder, x: Value, axis: int, kind: str, length: int, inverse: bool, scale: float,
    pieces: tuple[int, int] | None,
) -> Value:  # fmt: skip
    """The steps along one axis; ``length`` is the size of the result, ``pieces`` what lines are taken apart into."""
    shape = sizes(x)
    real = REAL_OF.get(x.dtype, x.dtype)
    outer, n, inner = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    made = TensorType((*shape[:axis], length, *shape[axis + 1 :]), real if kind == "c2r" else _COMPLEX_OF[real])
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


def _absorb(op: Operation) -> Value | None:
    source = _source(op.operand(0))
    if source is None:
        return None
    value, factor = source
    attributes = {**op.attributes, "scale": op.attributes["scale"] * factor}
    return Builder.before(op).create(FOURIER, (value,), attributes, (op.result.type,)).result


_PATTERNS = replacements("rewrite.fft", {FOURIER: _absorb})


@register_pass("absorb-factors")
@dataclass(frozen=True)
class AbsorbFactors(Pass):
    """Lets transforms multiply with the real numbers that their operands are multiplied with."""

    def run(self, program: Program) -> bool:
        """Rewrite the program's own block; True where anything changed."""
        return apply_patterns(program.block, _PATTERNS, max_iterations=1, fold=False).has_changed


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
