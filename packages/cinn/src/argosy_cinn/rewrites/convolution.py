"""Convolutions as matrix products: the windows of the input as columns, and the product of the weights with them.

``cinn.patches`` is the tensor of windows, [N, groups, C / groups, *K, *S'], which is a view of the input with gaps: it
is computed inside the loops that read it, or read by the product as it copies blocks of it (`contraction.windows`), and
in memory only where neither can be. A 1x1 convolution reads its input in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from argosy_cinn.dialect import PATCHES
from argosy_cinn.rewrites.builders import Replacement, emit
from argosy_cinn.rewrites.dilation import interleave_phases
from argosy_cinn.rewrites.phases import by_phases, is_spread
from argosy_cinn.rewrites.widening import as_bytes
from argosy_cinn.shapes import estimate, sizes
from argosy_phi_ops.context import context
from argosy_pir.core import Operation
from argosy_pir.dims import is_static
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.rewrite.driver import apply_patterns
from argosy_pir.types import TensorType
from argosy_pir.values import Value

#: With fewer places than this in a sample (a gradient of weights), the columns of all samples are one matrix.
_FEW_PLACES = 64
#: Terms of a sum beside which moving its result does not show.
_MANY_TERMS = 256
#: Windows of at most this many taps, with at most this many filters for each channel, are summed tap by tap.
_MOST_TAPS, _FEW_FILTERS = 64, 4


@register_pass("lower-convolutions")
@dataclass(frozen=True)
class LowerConvolutions(Pass):
    """Rewrites convolutions as products of weights and patches; dilated ones by phases where minimal filtering, in
    vector registers of ``vector_bits``, then makes them faster."""

    vector_bits: int = 256

    def run(self, program: Program) -> bool:
        """Rewrite the program's own block; True where anything changed."""
        rule = Replacement("rewrite.conv", "prim.conv", lambda op: _as_product(op, self.vector_bits))
        return apply_patterns(program.block, [rule], max_iterations=1, fold=False).has_changed


def _as_product(op: Operation, vector_bits: int) -> Value | None:
    """A ``prim.conv`` as a product of weights and patches; None where there is nothing to sum or to compute."""
    x, w = op.operands
    groups = op.attributes["groups"]
    n, channels, *_ = sizes(x)
    filters, depth, *window = sizes(w)
    spatial = sizes(op.result)[2:]
    if 0 in (*sizes(x), *sizes(w), *sizes(op.result)):
        return None
    if is_spread(op):
        return by_phases(op)
    if (apart := interleave_phases(op, vector_bits)) is not None:
        return apart
    patches = _patches(x, (n, groups, channels // groups, *window, *spatial), op)
    terms, places = depth * prod(window), prod(spatial)
    taps, few_filters = estimate(prod(window)), is_static((filters,)) and filters // groups <= _FEW_FILTERS
    if few_filters and depth == 1 and is_static(window) and taps <= _MOST_TAPS:
        return emit("reshape", _by_tap(w, patches, groups), shape=sizes(op.result))
    if few_filters and is_static(spatial) and places <= _FEW_PLACES < taps:
        return emit("reshape", _by_place(w, patches, groups), shape=sizes(op.result))
    if (narrow := as_bytes(op)) is not None:
        w, patches = narrow[1], _patches(narrow[0], sizes(patches), op)
    rows = emit("reshape", w, shape=(groups, filters // groups, terms))
    columns = emit("reshape", patches, shape=(n, groups, terms, places))
    several = estimate(places) < _FEW_PLACES and estimate(n) > 1
    few = several and (taps > 1 or estimate(terms) >= _MANY_TERMS)
    made = _join(rows, columns, taps > estimate(places)) if few else _by_sample(rows, columns)
    return emit("reshape", made, shape=sizes(op.result))


def _by_tap(w: Value, patches: Value, groups: int) -> Value:
    """[N, groups, filters, *places] of windows over one channel each, as a sum over the taps: a loop, not a product."""
    filters, _, *window = sizes(w)
    n, _, _, *rest = sizes(patches)
    shape = (n, groups, filters // groups, *rest[len(window) :])
    total: Value | None = None
    for tap in product(*map(range, window)):
        seen = _cut(patches, 3, tap, (n, groups, 1, *shape[3:]))
        factor = _cut(w, 2, tap, shape[1:3])
        wide = emit("broadcast", emit("reshape", seen, shape=(n, groups, *shape[3:])), shape=shape,
                    axes=(0, 1, *range(3, len(shape))))  # fmt: skip
        term = emit("mul", wide, emit("broadcast", factor, shape=shape, axes=(1, 2)))
        total = term if total is None else emit("add", total, term)
    assert total is not None
    return total


def _by_place(w: Value, patches: Value, groups: int) -> Value:
    """[N, groups, filters, places] of few places and large windows (a gradient of such weights): a sum for each
    place, which all pass over the input together."""
    filters, depth, *window = sizes(w)
    n, _, _, *rest = sizes(patches)
    shape = (n, groups, filters // groups, depth, *window)
    factor = emit("reshape", w, shape=shape[1:])
    factor = emit("broadcast", factor, shape=shape, axes=tuple(range(1, len(shape))))
    sums = []
    for place in product(*map(range, rest[len(window) :])):
        seen = _cut(patches, 3 + len(window), place, (n, groups, depth, *window))
        wide = emit("broadcast", seen, shape=shape, axes=(0, 1, *range(3, len(shape))))
        total = emit("reduce_sum", emit("mul", wide, factor), axes=tuple(range(3, len(shape))))
        sums.append(emit("reshape", total, shape=(*shape[:3], 1)))
    return emit("concat", *sums, axis=3)


def _cut(x: Value, axis: int, at: tuple[int, ...], shape: tuple[int, ...]) -> Value:
    """What lies at some positions of the axes from ``axis`` on."""
    start, limit = [0] * len(sizes(x)), list(sizes(x))
    for i, position in enumerate(at, axis):
        start[i], limit[i] = position, position + 1
    one = emit("slice", x, start=tuple(start), limit=tuple(limit), stride=(1,) * len(start))
    return emit("reshape", one, shape=shape)


def _by_sample(rows: Value, columns: Value) -> Value:
    """[N, groups, filters, places] as one product for each sample."""
    n = sizes(columns)[0]
    repeated = emit("broadcast", rows, shape=(n, *sizes(rows)), axes=(1, 2, 3))
    return _dot(repeated, columns, lhs_contract=(3,), rhs_contract=(2,), lhs_batch=(0, 1), rhs_batch=(0, 1))


def _dot(rows: Value, columns: Value, **axes: tuple[int, ...]) -> Value:
    """A product, of bytes summed in int32."""
    return emit("dot_general", rows, columns, **axes, accumulate="int32" if rows.dtype == "int8" else "")


def _join(rows: Value, columns: Value, sample_last: bool) -> Value:
    """[N, groups, filters, places] as one product, whose columns are the places of all samples: place by place where
    ``sample_last`` (a gradient of weights, whose samples are channels), else sample by sample."""
    n, groups, terms, places = sizes(columns)
    moved = emit("transpose", columns, permutation=(1, 2, 3, 0) if sample_last else (1, 2, 0, 3))
    wide = emit("reshape", moved, shape=(groups, terms, n * places))
    made = _dot(rows, wide, lhs_contract=(2,), rhs_contract=(1,), lhs_batch=(0,), rhs_batch=(0,))
    apart = (places, n) if sample_last else (n, places)
    result = emit("reshape", made, shape=(groups, sizes(rows)[1], *apart))
    return emit("transpose", result, permutation=(3, 0, 1, 2) if sample_last else (2, 0, 1, 3))


def _patches(x: Value, shape: tuple[int, ...], op: Operation) -> Value:
    builder = context().builder
    assert builder is not None
    kept = ("strides", "padding", "lhs_dilation", "rhs_dilation")
    attributes = {name: op.attributes[name] for name in kept}
    return builder.create(PATCHES, (x,), attributes, (TensorType(shape, x.dtype),)).result
