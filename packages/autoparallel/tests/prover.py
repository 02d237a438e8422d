"""The brute-force prover: operators on all placements of their operands against one process.

One world of ranks goes through many cases, since starting threads costs more than a case.
"""

import itertools
from math import prod
from typing import NamedTuple

import numpy as np
from ranks import on_ranks

from argosy_autoparallel import Layout, Partial, ProcessMesh, ReduceType, Replicate, Shard, shard_tensor
from argosy_autoparallel.dist_tensor import ShardedArray
from argosy_phi_ops.context import context
from argosy_phi_ops.declare import promotion
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.declare.promotion import describe
from argosy_phi_ops.eager.dispatch import bind
from argosy_pir import TensorType
from argosy_tensorcore.tensor import Tensor

MESHES = {"2": [0, 1], "4": [0, 1, 2, 3], "2x2": [[0, 1], [2, 3]]}
STEP_MESHES = {
    **MESHES, "3": [0, 1, 2], "2x3": [[0, 1, 2], [3, 4, 5]], "2x2x2": [[[0, 1], [2, 3]], [[4, 5], [6, 7]]],
}  # fmt: skip
"""Those on which operators are proven by steps."""


def samples(name):
    """The declared samples of an operator."""
    sampler = get_operator(name).sampler
    return [] if sampler is None else list(sampler(np.random.default_rng(0)))


def as_tensors(value):
    """Arrays as tensors, lists included."""
    if isinstance(value, np.ndarray):
        return Tensor(value)
    return [as_tensors(item) for item in value] if isinstance(value, list) else value


def bound(op, sample):
    """Flat operands and attributes of a call, a fixed random state included."""
    args = tuple(as_tensors(a) for a in sample.args)
    operands, attributes = op.signature.bind(args, {k: as_tensors(v) for k, v in sample.kwargs.items()})
    if op.random:
        attributes = {**attributes, "counter": 0}
        if "segments" in attributes:
            attributes["segments"] = (*attributes["segments"][:-1], 1)
        operands = (*[x for x in operands if x is not None], Tensor(np.array([7, 3], np.uint64)))
    return operands, attributes


def placements_of(array, partial=True):
    """Every placement of an array along one mesh dimension."""
    found = [Replicate(), *[Shard(i) for i in range(array.ndim)]]
    if partial and array.dtype.kind in "fc":
        found.append(Partial())
    return found


def sized_placements_of(array, mesh):
    """What :func:`placements_of` gives, and parts of given sizes, for one tensor on ``mesh``: as many as fit."""
    sizes = [{n: Shard(i, sizes=given_sizes(size, n)) for n in mesh.shape} for i, size in enumerate(array.shape)]
    single = [[*placements_of(array), *(found[n] for found in sizes)] for n in mesh.shape]
    return [p for p in itertools.product(*single) if Layout(mesh, p).fits(array.shape)]


def given_sizes(size, parts):
    """The first rank has least, the last one most."""
    return [
        *(min(i, size // parts) for i in range(parts - 1)),
        size - sum(min(i, size // parts) for i in range(parts - 1)),
    ]


def combinations(arrays, mesh_ndim, partial=True):
    """How many layouts the arrays have together."""
    return prod(len(placements_of(a, partial)) ** mesh_ndim for a in arrays)


def layouts_of(arrays, mesh_ndim, limit, rng, partial=True):
    """All combinations of placements, or ``limit`` of them by chance, none twice."""
    single = [list(itertools.product(placements_of(a, partial), repeat=mesh_ndim)) for a in arrays]
    return combine(single, limit, rng)


def combine(single, limit, rng):
    """All combinations of one of each list, or ``limit`` of them by chance, none twice."""
    if prod(map(len, single)) <= limit:
        return list(itertools.product(*single))
    found = {}
    while len(found) < limit:
        found[tuple(int(rng.integers(len(s))) for s in single)] = None
    return [tuple(s[i] for s, i in zip(single, chosen, strict=True)) for chosen in found]


def is_uneven(array, mesh, placements):
    """Whether the ranks hold parts of unequal shapes."""
    layout = Layout(mesh, placements)
    return len({layout.local_slice(array.shape, rank).shape for rank in mesh.process_ids}) > 1


# Primitives that all layouts of a sample have together: of operators with thousands of them, not all layouts are tried.
LARGEST = 12_000
FEWEST = 8  # layouts of the largest

# What they tell apart, a sum of rounded terms loses: bits, equality, the sign of zero. Their terms add nothing.
EXACT = {"view", "equal_all", "allclose", "copysign", "isclose", "signbit"}


class Proven(NamedTuple):
    """How many layouts were tried, of how many; in how many of them a shard is uneven, and an operand partial."""

    cases: int = 0
    possible: int = 0
    uneven: int = 0
    partial: int = 0

    def plus(self, other):
        """The sum, field by field."""
        return Proven(*(a + b for a, b in zip(self, other, strict=True)))


def distributed(tensor, mesh, placements, stop_gradient=True, exact=False):
    """The tensor on the mesh; unless ``exact`` its partial form has unequal terms on the ranks."""
    made = shard_tensor(tensor, mesh, placements, stop_gradient=stop_gradient)
    payload = made.payload
    if payload.layout.is_partial and payload.is_held and not exact:
        _make_terms_unequal(payload, mesh)
    return made


def _make_terms_unequal(payload, mesh):
    """Add to the terms what sums to zero along each partial mesh dimension."""
    where = mesh.coordinate(context().rank)
    array = payload.local.ndarray
    for dim, (placement, size) in enumerate(zip(payload.placements, mesh.shape, strict=True)):
        if placement.is_partial() and placement.reduce_type() is ReduceType.kRedSum and size > 1:
            array += np.asarray({0: 0.5, 1: -0.5}.get(where[dim], 0), array.dtype)


def tolerance(array):
    """Relative and absolute, by width: sums are made in another order."""
    narrow = array.dtype.itemsize <= 2
    wide = array.dtype.name in ("float64", "complex128")
    return (3e-2, 3e-2) if narrow else (1e-9, 1e-9) if wide else (2e-4, 2e-4)


def assert_close(actual, expected, what):
    """Equal shapes and dtypes, and values but for the order of sums."""
    assert actual.dtype == expected.dtype, what
    assert actual.shape == expected.shape, what
    if actual.dtype.kind in "iub":
        np.testing.assert_array_equal(actual, expected, err_msg=what)
        return
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    rtol, atol = tolerance(expected)
    np.testing.assert_allclose(actual.astype(wide), expected.astype(wide), rtol=rtol, atol=atol, err_msg=what)


def listed(results):
    """Results of an operator as a list."""
    return list(results) if isinstance(results, tuple | list) else [results]


def prove(names, mesh_ranks, limit, seed=0, longest=None, timeout=3600, sized=False):
    """Check the samples of operators on all ranks of a mesh; returns for each what was :class:`Proven`.

    Samples whose program has more than ``longest`` primitives are left out, but for the shortest of each operator.
    With ``sized`` placements have parts of given sizes, too.
    """
    size = int(np.asarray(mesh_ranks).size)

    def main(rank):
        mesh = ProcessMesh(mesh_ranks)
        rng = np.random.default_rng(seed)
        return {name: _prove_one(name, mesh, limit, rng, longest, sized) for name in names}

    try:
        return on_ranks(main, size, timeout)[0]
    finally:
        for name in names:
            get_operator(name).applications.clear()  # one for each layout: many gigabytes over all operators


def types_of(op, operands):
    """The types that the program of an application has for its operands; numbers are promoted to tensors."""
    described = [describe(x.payload if type(x) is Tensor else x) for x in operands]
    dtypes = promotion.promote(op.promote, op.name, described)
    return [
        TensorType(tuple(x.shape), x.dtype.name) if type(x) is Tensor else TensorType((), dtype)
        for x, dtype in zip(operands, dtypes, strict=True)
    ]


def length(op, operands, attributes):
    """The number of primitives of an application, at least 1; an opaque operator has none."""
    if op.opaque:
        return 1
    types = [
        TensorType(tuple(x.shape), x.dtype.name) if type(x) is Tensor else TensorType((), "float32") for x in operands
    ]
    return max(1, sum(1 for _ in op.expand(types, attributes).program.walk()))


def calls(name, longest=None):
    """The samples of an operator that have tensors, as (number, operands, attributes, primitives)."""
    op = get_operator(name)
    found = []
    for number, sample in enumerate(samples(name)):
        operands, attributes = bound(op, sample)
        if laid_out(operands):
            found.append((number, operands, attributes, length(op, operands, attributes)))
    if longest is None:
        return found
    shortest = min((primitives for *_, primitives in found), default=0)
    return [call for call in found if call[-1] <= max(longest, shortest)]


def laid_out(operands):
    """The numbers of the operands that are laid out: tensors, but for random states."""
    return [i for i, x in enumerate(operands) if type(x) is Tensor and x.dtype.name != "uint64"]


def affordable(limit, primitives):
    """How many layouts of a sample of so many primitives are tried."""
    return max(min(limit, FEWEST), min(limit, LARGEST // primitives))


def _prove_one(name, mesh, limit, rng, longest, sized):
    op = get_operator(name)
    proven = Proven()
    for number, operands, attributes, primitives in calls(name, longest):
        tensors = laid_out(operands)
        expected = [np.asarray(r.payload.array()) for r in listed(bind(op, operands, attributes))]
        arrays = [operands[i].payload.array() for i in tensors]
        most = affordable(limit, primitives)
        if sized:
            layouts = combine([sized_placements_of(a, mesh) for a in arrays], most, rng)
        else:
            layouts = layouts_of(arrays, mesh.ndim, most, rng)
        for placements in layouts:
            given = list(operands)
            for i, placement in zip(tensors, placements, strict=True):
                given[i] = distributed(operands[i], mesh, placement, exact=name in EXACT)
            what = f"{name}, sample {number}, {list(map(list, placements))} on {mesh.shape}"
            _compare(op, given, attributes, expected, what)
        proven = proven.plus(tally(arrays, mesh, layouts))
    return proven


def _compare(op, operands, attributes, expected, what):
    try:
        results = listed(bind(op, tuple(operands), attributes))
    except Exception as error:
        error.add_note(what)
        raise
    for r, e in zip(results, expected, strict=True):
        assert type(r.payload) is ShardedArray, what
        assert_close(r.payload.to_host(), e, what)


def tally(arrays, mesh, layouts):
    """What was :class:`Proven` by these layouts."""
    uneven = sum(any(is_uneven(a, mesh, p) for a, p in zip(arrays, chosen, strict=True)) for chosen in layouts)
    partial = sum(any(x.is_partial() for placements in chosen for x in placements) for chosen in layouts)
    return Proven(len(layouts), combinations(arrays, mesh.ndim), uneven, partial)
