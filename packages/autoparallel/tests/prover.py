"""The brute-force prover: operators on all placements of their operands against one process.

One world of ranks goes through many cases, since starting threads costs more than a case.
"""

import itertools

import numpy as np
from ranks import on_ranks

from argosy_autoparallel import Partial, ProcessMesh, ReduceType, Replicate, Shard, shard_tensor
from argosy_autoparallel.dist_tensor import Sharded
from argosy_phi_ops.context import context
from argosy_phi_ops.dispatch import bind
from argosy_phi_ops.operator import get_operator
from argosy_pir import TensorType
from argosy_tensorcore.tensor import Tensor

MESHES = {"2": [0, 1], "4": [0, 1, 2, 3], "2x2": [[0, 1], [2, 3]]}


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


def tensor_operands(name, sample):
    """The operands of a sample that may be laid out: tensors, but for random states."""
    operands, _ = bound(get_operator(name), sample)
    return [x for x in operands if type(x) is Tensor and x.dtype.name != "uint64"]


def placements_of(array, partial=True):
    """Every placement of an array along one mesh dimension."""
    found = [Replicate(), *[Shard(i) for i in range(array.ndim)]]
    if partial and array.dtype.kind in "fc":
        found.append(Partial())
    return found


def layouts_of(arrays, mesh_ndim, limit, rng, partial=True):
    """All combinations of placements, or ``limit`` of them by chance."""
    single = [list(itertools.product(placements_of(a, partial), repeat=mesh_ndim)) for a in arrays]
    count = int(np.prod([len(s) for s in single]))
    if count <= limit:
        return list(itertools.product(*single))
    return [tuple(s[rng.integers(len(s))] for s in single) for _ in range(limit)]


# Primitives that all layouts of a sample have together: of operators with thousands of them, not all layouts are tried.
LARGEST = 12_000

# What they tell apart, a sum of rounded terms loses: bits, equality, the sign of zero.
EXACT = {"view", "equal_all", "allclose"}
WHOLE = {"copysign", "isclose", "signbit"}  # the sign of zero, and infinities that cancel: no sum keeps them


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


def prove(names, mesh_ranks, limit, seed=0, longest=None):
    """Check the samples of operators on all ranks of a mesh; returns how many cases were run.

    Samples whose program has more than ``longest`` primitives are left out.
    """
    size = int(np.asarray(mesh_ranks).size)

    def main(rank):
        mesh = ProcessMesh(mesh_ranks)
        rng = np.random.default_rng(seed)
        return sum(_prove_one(name, mesh, limit, rng, longest) for name in names)

    try:
        return on_ranks(main, size, timeout=600)[0]
    finally:
        for name in names:
            get_operator(name).plans.clear()  # one for each layout: many gigabytes over all operators


def length(op, operands, attributes):
    """The number of primitives of an application, at least 1; an opaque operator has none."""
    if op.opaque:
        return 1
    types = [
        TensorType(tuple(x.shape), x.dtype.name) if type(x) is Tensor else TensorType((), "float32") for x in operands
    ]
    return max(1, sum(1 for _ in op.expand(types, attributes).program.walk()))


def _prove_one(name, mesh, limit, rng, longest):
    op = get_operator(name)
    count = 0
    for number, sample in enumerate(samples(name)):
        operands, attributes = bound(op, sample)
        tensors = [i for i, x in enumerate(operands) if type(x) is Tensor and x.dtype.name != "uint64"]
        primitives = length(op, operands, attributes) if tensors else 0
        if not tensors or (longest is not None and primitives > longest):
            continue
        expected = [np.asarray(r.payload.array()) for r in listed(bind(op, operands, attributes))]
        arrays = [operands[i].payload.array() for i in tensors]
        affordable = max(limit if limit < 8 else 8, min(limit, LARGEST // primitives))
        for layouts in layouts_of(arrays, mesh.ndim, affordable, rng, partial=name not in WHOLE):
            given = list(operands)
            for i, placements in zip(tensors, layouts, strict=True):
                given[i] = distributed(operands[i], mesh, placements, exact=name in EXACT)
            what = f"{name}, sample {number}, {list(map(list, layouts))} on {mesh.shape}"
            try:
                results = listed(bind(op, tuple(given), attributes))
            except Exception as error:
                error.add_note(what)
                raise
            for r, e in zip(results, expected, strict=True):
                assert type(r.payload) is Sharded, what
                assert_close(r.payload.to_host(), e, what)
            count += 1
    return count
