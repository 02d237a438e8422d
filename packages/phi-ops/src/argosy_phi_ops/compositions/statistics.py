"""Quantiles, covariances, histograms in several dimensions, and integrals by trapezoids."""

# mypy: disable-error-code="no-any-return,index,operator"

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from argosy_phi_ops.declare.composition import compose
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.errors import DTypeError, OperatorError, ShapeError
from argosy_phi_ops.ops.common.arguments import Axes, axes_of, axis_of
from argosy_tensorcore.tensor import Tensor

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(name: str, x: Tensor, q: Any, axis: Axes, keepdim: bool, how: str, skip_nan: bool) -> Tensor:
    """The quantiles along a new first axis, which a single ``q`` lacks."""
    if how not in _INTERPOLATIONS:
        raise OperatorError(f"{name}: interpolation {how!r} is unknown; there are {', '.join(_INTERPOLATIONS)}")
    levels = q.tolist() if isinstance(q, Tensor) else q
    single = not isinstance(levels, (list, tuple))
    wanted = [float(v) for v in ([levels] if single else levels)]
    if not wanted or any(not 0 <= v <= 1 for v in wanted):
        raise OperatorError(f"{name}: q should lie in [0, 1], got {q}")
    if x.dtype.kind != "f":
        raise OperatorError(f"{name} takes floating-point numbers, got {x.dtype.name}")
    axes = axes_of(name, axis, x.ndim)
    kept = [i for i in range(x.ndim) if i not in axes]
    flat = op("reshape")(op("transpose")(x, [*kept, *axes]), [*(x.shape[i] for i in kept), -1])
    ordered, last = op("sort")(flat, -1), flat.shape[-1]
    missing = op("isnan")(flat)
    count = None
    if skip_nan or not isinstance(last, int):  # how many there are is a number of the call
        present = op("logical_not")(missing) if skip_nan else op("ones_like")(missing)
        count = op("sum")(present.astype(x.dtype), -1, keepdim=True)
    results = [_level(ordered, v, last, count, how) for v in wanted]
    if not skip_nan:
        bad = op("any")(missing, -1, keepdim=True)
        results = [op("where")(bad, float("nan"), r) for r in results]
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)] if keepdim else [x.shape[i] for i in kept]
    shaped = [op("reshape")(r, shape) for r in results]
    return shaped[0] if single else op("stack")(shaped, 0)


def _level(ordered: Tensor, q: float, size: int, count: Tensor | None, how: str) -> Tensor:
    """One quantile of numbers in order along the last axis: of all of them, or of the first ``count``."""
    if not size:
        return op("full")([*ordered.shape[:-1], 1], float("nan"), ordered.dtype)
    if count is None:
        place = op("full")([*ordered.shape[:-1], 1], q * (size - 1), ordered.dtype)
    else:
        place = op("maximum")((count - 1) * q, 0.0)
    below, above = op("floor")(place), op("ceil")(place)
    take = op("take_along_axis")
    low, high = (take(ordered, at.astype("int64"), -1) for at in (below, above))
    if how == "linear":
        result = low + (high - low) * (place - below)
    elif how == "midpoint":
        result = (low + high) / 2
    elif how == "nearest":
        result = take(ordered, op("round")(place).astype("int64"), -1)
    else:
        result = low if how == "lower" else high
    return result if count is None else op("where")(count > 0, result, float("nan"))


@compose(out=True)
def quantile(x: Tensor, q: Any, axis: Axes = None, keepdim: bool = False, interpolation: str = "linear") -> Tensor:
    """The quantiles ``q`` (a number, or a list: a new first axis) over ``axis``; NaN where there is a NaN.

    Between two elements by ``interpolation``: linear, lower, higher, midpoint or nearest.
    """
    return _quantile("quantile", x, q, axis, keepdim, interpolation, False)


@compose()
def nanquantile(x: Tensor, q: Any, axis: Axes = None, keepdim: bool = False, interpolation: str = "linear") -> Tensor:
    """:func:`quantile` of the elements that are not NaN; NaN where there are none."""
    return _quantile("nanquantile", x, q, axis, keepdim, interpolation, True)


@compose()
def nanmedian(x: Tensor, axis: Axes = None, keepdim: bool = False, mode: str = "avg") -> Any:
    """The middle element of those that are not NaN: of an even number the mean of two ("avg"), or the lower ("min").

    Returns a tensor, with "min" along one axis (values, indices), the indices int64.
    """
    if x.dtype.kind == "c":
        raise DTypeError(f"nanmedian(): argument 'x' should be a tensor of real numbers, got {x.dtype.name}")
    if mode not in ("avg", "min"):
        raise OperatorError(f"nanmedian: mode {mode!r} is neither 'avg' nor 'min'")
    if mode == "min" and x.dtype.kind != "f":  # there is no NaN to leave out, and the lower element is itself
        return op("median")(x, axis, keepdim, mode)
    x = x if x.dtype.kind == "f" else x.astype("float32")
    how = "lower" if mode == "min" else "midpoint"
    if mode == "min" and isinstance(axis, int):
        return _nanmedian_with_index(x, axis, keepdim)
    return _quantile("nanmedian", x, 0.5, axis, keepdim, how, True)


def _nanmedian_with_index(x: Tensor, axis: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    at = axis_of("nanmedian", axis, x.ndim)
    if not x.ndim:
        return x, op("zeros")([], "int64")
    count = op("sum")(op("logical_not")(op("isnan")(x)).astype("int64"), at, keepdim=True)
    place = op("maximum")((count - 1) // 2, 0)
    index = op("take_along_axis")(op("argsort")(x, at), place, at)
    found = op("take_along_axis")(x, index, at)
    return (found, index) if keepdim else (op("squeeze")(found, at), op("squeeze")(index, at))


@compose()
def cov(
    x: Tensor,
    rowvar: bool = True,
    ddof: bool = True,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariances of the rows (columns unless ``rowvar``) of a matrix, divided by n - 1 (n unless ``ddof``).

    ``fweights`` counts how often each observation occurs, ``aweights`` weighs them.
    """
    if x.ndim > 2:
        raise ShapeError(f"cov takes a vector or a matrix, got shape {list(x.shape)}")
    data = op("reshape")(x, [1, -1]) if x.ndim < 2 else x
    if not rowvar and data.shape[0] != 1:
        data = op("t")(data)
    weights = _weights(x, data.shape[1], fweights, aweights)
    if weights is None:
        total: Any = float(data.shape[1])
        mean, norm = op("mean")(data, 1, True), total - float(ddof)
    else:
        total = op("sum")(weights)
        mean = op("sum")(data * weights, 1, keepdim=True) / total
        share = 1.0 if aweights is None else op("sum")(weights * aweights.astype(x.dtype)) / total
        norm = total - share if ddof else total
    centred = data - mean
    scaled = centred if weights is None else centred * weights
    adjoint = op("t")(op("conj")(centred) if x.dtype.kind == "c" else centred)
    result = op("matmul")(scaled, adjoint) / (norm if isinstance(norm, Tensor) else max(norm, 0.0))
    return op("squeeze")(result)


def _weights(x: Tensor, count: int, fweights: Tensor | None, aweights: Tensor | None) -> Tensor | None:
    product = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        if given.ndim != 1 or given.shape[0] != count:
            raise ShapeError(
                f"cov: {name} should hold {count} numbers, one for each observation, got {list(given.shape)}"
            )
        real = given.astype(x.dtype)
        product = real if product is None else product * real
    return product


@compose()
def corrcoef(x: Tensor, rowvar: bool = True) -> Tensor:
    """The correlations of the rows (columns unless ``rowvar``) of a matrix."""
    found = cov(x, rowvar)
    if not found.ndim:
        return found / found
    deviation = op("sqrt")(op("real")(op("diagonal")(found)) if x.dtype.kind == "c" else op("diagonal")(found))
    scaled = found / op("unsqueeze")(deviation, 1) / op("unsqueeze")(deviation, 0)
    return scaled if x.dtype.kind == "c" else op("clip")(scaled, -1.0, 1.0)


def _limits(x: Tensor, low: float, high: float, name: str) -> tuple[float, float]:
    if low == high == 0 and x.size:
        low, high = float(op("min")(x)), float(op("max")(x))
    if low > high:
        raise OperatorError(f"{name}: the range from {low} to {high} should not be empty")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


@compose()
def histogram_bin_edges(input: Tensor, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    """The ``bins + 1`` edges of the bins of ``histogram``: over [min, max], by default over all values. Eager only."""
    low, high = _limits(input, float(min), float(max), "histogram_bin_edges")
    return op("linspace")(low, high, bins + 1, "float32")


@compose()
def histogramdd(
    x: Tensor,
    bins: Any = 10,
    ranges: Sequence[float] | None = None,
    density: bool = False,
    weights: Tensor | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """How many points (the rows of ``x`` [..., D]) lie in each cell of a grid, and the edges of the grid.

    ``bins`` is a number of cells for all axes or for each, or a list of edges. With ``density`` counts are divided by
    their total and the cells' volumes. Eager only.
    """
    if x.ndim < 2:
        raise ShapeError(f"histogramdd takes points as rows, got shape {list(x.shape)}")
    points = op("reshape")(x, [-1, x.shape[-1]])
    edges = _edges(points, bins, ranges)
    sizes = [int(e.shape[0]) - 1 for e in edges]
    place, inside = _cells(points, edges, sizes)
    mass = op("ones")([points.shape[0]], x.dtype) if weights is None else op("reshape")(weights, [-1])
    counted = op("where")(inside, mass, op("zeros_like")(mass))
    flat = op("scatter_nd_add")(op("zeros")([prod(sizes)], x.dtype), op("unsqueeze")(place, -1), counted)
    counts = op("reshape")(flat, sizes)
    if density:
        counts = counts / op("sum")(counts)
        for axis, edge in enumerate(edges):
            counts = counts / op("reshape")(op("diff")(edge), [-1 if i == axis else 1 for i in range(len(sizes))])
    return counts, edges


def _edges(points: Tensor, bins: Any, ranges: Sequence[float] | None) -> list[Tensor]:
    count = points.shape[1]
    each = [bins] * count if isinstance(bins, int) else list(bins)
    if len(each) != count:
        raise ShapeError(f"histogramdd: {len(each)} entries of bins should be one for each of the {count} coordinates")
    if ranges is not None and len(ranges) != 2 * count:
        raise ShapeError(f"histogramdd: ranges should hold {2 * count} numbers, got {len(ranges)}")
    edges = []
    for axis, how in enumerate(each):
        if isinstance(how, Tensor):
            edges.append(how)
            continue
        low, high = (0.0, 0.0) if ranges is None else (float(ranges[2 * axis]), float(ranges[2 * axis + 1]))
        low, high = _limits(points[:, axis], low, high, "histogramdd")
        edges.append(op("linspace")(low, high, int(how) + 1, points.dtype))
    return edges


def _cells(points: Tensor, edges: Sequence[Tensor], sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The number of each point's cell in row-major order, and whether it lies on the grid."""
    place: Any = 0
    inside: Any = None
    for axis, (edge, size) in enumerate(zip(edges, sizes, strict=True)):
        column = op("assign")(points[:, axis])
        cell = op("searchsorted")(edge, column, right=True) - 1
        cell = op("where")(column == edge[size], cell - 1, cell)  # the last cell holds its upper edge
        here = op("logical_and")(cell >= 0, cell < size)
        place = place * size + op("clip")(cell, 0, size - 1)
        inside = here if inside is None else op("logical_and")(inside, here)
    return place, inside
