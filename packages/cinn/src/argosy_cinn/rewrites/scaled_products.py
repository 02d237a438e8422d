"""Products of weights in few bits with a scale for each group of inputs: one product that reads them once.

Written in primitives, such a product is a batch of products, one for each group, whose results are scaled and summed
(`phi.weight_only_linear`); the batch would be in memory. Here it becomes ``cinn.scaled_product(x, weight, scales)``:
``sum over groups g of scales[g, o] * (sum over k in g of x[..., k] * weight[o, k])``. Where offsets [groups, out] times
the sums of each group's inputs are added, ``offsets[g, o] * (sum over k in g of x[..., k])`` is part of it.

``cinn.scaled_grouped_dot(lhs, rhs, starts, scales, offsets)`` is a grouped product with ``rhs`` [e, m, k] in few bits,
scales and offsets [e, groups, m], where else the matrices that they stand for would be in memory. With the attribute
``numbers``, sixteen of them, a byte of ``rhs`` [e, m / 2, k] chooses two, those of output ``i`` and of ``i + m / 2``:
they are what operations make of its halves, whichever these are. ``lhs`` may be bytes, whose sums are exact.
"""

from __future__ import annotations

import numpy as np

from argosy_cinn.dialect import SCALED, SCALED_GROUPED
from argosy_cinn.forms.dtypes import NARROW
from argosy_cinn.rewrites.builders import create, defined_by, emit, result_type
from argosy_cinn.rewrites.byte_functions import values_of_bytes
from argosy_cinn.shapes import sizes
from argosy_pir.core import Operation
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import OpResult, Value

#: Terms of a group that are whole vectors, whatever their width.
_UNIT = 16
#: Products of bytes whose sum floats hold exactly.
_MOST_BYTES = 1 << 10
#: Dtypes of numbers of grouped products.
_NUMBERS = ("int8", "float8_e4m3fn")


def scaled_product(op: Operation) -> Value | None:
    """The product that a ``prim.reduce_sum`` over groups is; None where it is another sum."""
    scaled = defined_by(op.operand(0), "prim.mul") if tuple(op.attributes["axes"]) == (0,) else None
    if scaled is None:
        return None
    for product, factor in (scaled.operands, scaled.operands[::-1]):
        dot, spread = _product_of(product), defined_by(factor, "prim.broadcast")
        if dot is not None and spread is not None and _fits(dot, spread) and len(product.users) == 1:
            return _product(dot, spread.operand(0), op)
    return None


def _product_of(value: Value) -> Operation | None:
    """The product that a value is: in float32, or of bytes in int32, converted to it, which sums in float32 equal."""
    dot = defined_by(value, "prim.dot_general")
    if dot is not None or value.dtype != "float32":
        return dot if value.dtype == "float32" else None
    wide = defined_by(value, "prim.cast")
    dot = None if wide is None else defined_by(wide.operand(0), "prim.dot_general")
    if dot is None or dot.result.dtype != "int32" or dot.operand(0).dtype != "int8" or len(dot.result.users) > 1:
        return None
    return dot if sizes(dot.operand(0))[-1] <= _MOST_BYTES else None


def offset_product(op: Operation) -> Value | None:
    """The product with offsets that a ``prim.add`` is; None where it is another sum."""
    for product, added in (op.operands, op.operands[::-1]):
        scaled, dot = defined_by(product, SCALED), defined_by(added, "prim.dot_general")
        if scaled is not None and dot is not None and len(scaled.operands) == 3 and len(product.users) == 1:
            sums = defined_by(dot.operand(0), "prim.reduce_sum")
            if sums is not None and _are_sums_of_groups(dot, sums, scaled):
                operands = (*scaled.operands, dot.operand(1))
                return create(SCALED, operands, dict(scaled.attributes), result_type(op), scaled.location)
    return None


def _are_sums_of_groups(dot: Operation, sums: Operation, scaled: Operation) -> bool:
    """Whether a product is that of the sums over each group of a scaled product's terms with an offset for each."""
    x, _, scales = scaled.operands
    last, a, offsets = len(sizes(x)) - 1, dot.attributes, dot.operand(1)
    axes = [tuple(a[name]) for name in ("lhs_batch", "lhs_contract", "rhs_batch", "rhs_contract")]
    if axes != [(), (last,), (), (0,)] or sizes(offsets) != sizes(scales) or offsets.dtype != "float32":
        return False
    grouped = (*sizes(x)[:-1], sizes(scales)[0], sizes(x)[-1] // sizes(scales)[0])
    fits = tuple(sums.attributes["axes"]) == (last + 1,) and sizes(sums.operand(0)) == grouped
    return fits and _strip_reshapes(sums.operand(0)) is _strip_reshapes(x)


def scaled_grouped_product(op: Operation) -> Value | None:
    """The product that a ``prim.grouped_dot`` with scaled numbers, and offsets or none, is; None where it has other
    matrices."""
    lhs, rhs, starts = op.operands
    scaled, added = _strip_reshapes(rhs, narrower=True), list[Value]()
    for term, other in _either_way(defined_by(scaled, "prim.add")):
        if defined_by(term, "prim.mul") and (offsets := _of_groups(other, rhs)) is not None:
            scaled, added = term, [offsets]
    for wide, factor in _either_way(defined_by(scaled, "prim.mul")):
        turned, scales = defined_by(_strip_reshapes(wide), "prim.transpose"), _of_groups(factor, rhs)
        if scales is None or turned is None or tuple(turned.attributes["permutation"]) != (0, 2, 1):
            continue
        numbers = turned.operand(0)
        if numbers.dtype in _NUMBERS and lhs.dtype != "float64" and not op.attributes["transposed"]:
            packed, chosen = _packed_outputs(numbers) or (numbers, None)
            operands = (_bytes_of(lhs), packed, starts, scales, *added)
            attributes = {"transposed": True} | ({} if chosen is None else {"numbers": chosen})
            return create(SCALED_GROUPED, operands, attributes, result_type(op), op.location)
    return None


def _bytes_of(lhs: Value) -> Value:
    """The bytes that a value in float32 holds; itself where it holds none."""
    wide = defined_by(lhs, "prim.cast")
    source = lhs if wide is None else wide.operand(0)
    return source if source.dtype == "int8" and lhs.dtype == "float32" else lhs


def _packed_outputs(numbers: Value) -> tuple[Value, tuple[int, ...]] | None:
    """The bytes [e, m / 2, k] whose low halves make the first of ``numbers`` [e, m, k], and the high ones the others,
    and what sixteen halves stand for; None where they are not made so."""
    halves = defined_by(numbers, "prim.concat")
    if halves is None or halves.attributes["axis"] != 1 or len(halves.operands) != 2:
        return None
    (low, of_low), (high, of_high) = map(values_of_bytes, halves.operands)
    if low is None or low is not high or of_low is None or of_high is None:
        return None
    found, byte = of_low[:16], np.arange(256)
    if not np.array_equal(of_low, found[byte & 15]) or not np.array_equal(of_high, found[byte >> 4]):
        return None
    return low, tuple(found.tolist())


def _either_way(op: Operation | None) -> tuple[tuple[Value, ...], ...]:
    """The operands of an operation in both orders."""
    return () if op is None else (op.operands, op.operands[::-1])


def _of_groups(spread: Value, matrices: Value) -> Value | None:
    """What a value repeats for each input of a group of ``matrices`` [e, k, m]: [e, groups, m]; None for others."""
    (count, size, out), repeated = sizes(matrices), defined_by(spread, "prim.broadcast")
    if repeated is None or repeated.operand(0).ndim != 3 or tuple(repeated.attributes["axes"]) != (0, 1, 3):
        return None
    found = repeated.operand(0)
    groups = sizes(found)[1]
    known = all(isinstance(n, int) for n in (count, size, out, groups)) and groups > 0
    fits = known and sizes(found) == (count, groups, out) and size % (groups * _UNIT) == 0
    wide = defined_by(found, "prim.cast")
    if wide is not None and wide.operand(0).dtype in NARROW:  # else those of all matrices would be in memory
        found = wide.operand(0)
    return found if fits and sizes(spread) == (count, groups, size // groups, out) else None


def _strip_reshapes(value: Value, narrower: bool = False) -> Value:
    """What a value is a reshape or a wider copy of, or ``narrower`` one."""
    while isinstance(value, OpResult) and value.op.name in ("prim.reshape", "prim.cast"):
        (source,) = value.op.operands
        if not narrower and ITEM_SIZES[source.dtype] > ITEM_SIZES[value.dtype]:
            break
        value = source
    return value


def _fits(dot: Operation, spread: Operation) -> bool:
    """Whether a batch of products has one for each group, and a scale for each group and output."""
    a, last = dot.attributes, len(dot.operand(0).shape) - 2
    axes = [tuple(a[name]) for name in ("lhs_batch", "lhs_contract", "rhs_batch", "rhs_contract")]
    if axes != [(last,), (last + 1,), (1,), (2,)] or dot.operand(1).ndim != 3:
        return False
    out, groups, each = sizes(dot.operand(1))
    known = all(isinstance(n, int) for n in (out, groups, each)) and 0 not in sizes(dot.operand(0))
    fits = tuple(spread.attributes["axes"]) == (0, last + 1) and sizes(spread.operand(0)) == (groups, out)
    return known and fits and each % _UNIT == 0 and min(out, groups) > 0


def _product(dot: Operation, scales: Value, op: Operation) -> Value:
    x, weight = dot.operands
    out, groups, each = sizes(weight)
    outer = sizes(x)[:-2]
    rows = emit("reshape", x, shape=(*outer, groups * each))
    matrix = emit("reshape", weight, shape=(out, groups * each))
    if matrix.dtype == "int8":  # what few bits stand for is computed where it is read, as of every weight in floats
        matrix = emit("cast", matrix, dtype="float32")
    attributes = {
        "lhs_contract": (len(outer),), "rhs_contract": (1,), "lhs_batch": (), "rhs_batch": (),
        "accumulate": "float32",
    }  # fmt: skip
    return create(SCALED, (rows, matrix, scales), attributes, result_type(op), dot.location)
