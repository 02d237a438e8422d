"""The brute force over all layouts of an operator, as the partitioner runs its program, on ranks in step.

The tests of operators run a few layouts of each as a user does, on threads, eagerly; this is for all layouts. Operators
that have no program run on whole tensors, on threads.
"""

import numpy as np
from lockstep import parts_of, run_together, whole_of
from prover import EXACT, Proven, assert_close, calls, laid_out, layouts_of, listed, prove, tally, types_of

from argosy_autoparallel import ProcessMesh
from argosy_autoparallel.partition import partition
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import bind
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor


def prove_whole(name, mesh_ranks, limit=None, seed=0):
    """Check the samples of an operator in all layouts, or in ``limit`` of each by chance; what was :class:`Proven`."""
    op, mesh, rng = get_operator(name), ProcessMesh(mesh_ranks), np.random.default_rng(seed)
    if op.opaque:
        return prove([name], mesh_ranks, limit or 1 << 60, seed)[name]
    proven = Proven()
    for number, operands, attributes, _ in calls(name):
        arrays = [operands[i].payload.array() for i in laid_out(operands)]
        layouts = layouts_of(arrays, mesh.ndim, limit or 1 << 60, rng)
        _prove_layouts(op, operands, attributes, mesh, layouts, f"{name}, sample {number}")
        proven = proven.plus(tally(arrays, mesh, layouts))
    return proven


def _prove_layouts(op, operands, attributes, mesh, layouts, what):
    expected = [np.asarray(r.payload.array()) for r in listed(bind(op, operands, attributes))]
    types = types_of(op, operands)
    program = op.expand(types, attributes).program
    arrays = [
        x.payload.array() if type(x) is Tensor else np.asarray(x, as_dtype(t.dtype).numpy)
        for x, t in zip(operands, types, strict=True)
    ]
    places, known = laid_out(operands), {}
    for placements in layouts:
        given = [None] * len(operands)
        for i, chosen in zip(places, placements, strict=True):
            given[i] = Layout(mesh, chosen)
        for i, layout in enumerate(given):
            if (i, layout) not in known:
                exact = op.name in EXACT
                whole = [arrays[i]] * len(mesh.process_ids)
                known[i, layout] = whole if layout is None else parts_of(arrays[i], layout, exact)
        try:
            _prove_layout(program, mesh, given, [known[item] for item in enumerate(given)], expected)
        except Exception as error:
            error.add_note(f"{what}, {list(map(list, placements))} on {mesh.shape}")
            raise


def _prove_layout(program, mesh, given, parts, expected):
    ranks = mesh.process_ids
    made = [partition(program, given, (), rank) for rank in ranks]
    assert len({m.output_layouts for m in made}) == 1, "ranks have chosen different layouts"
    outputs = run_together([m.program for m in made], list(zip(*parts, strict=True)), ranks)
    for number, (layout, array) in enumerate(zip(made[0].output_layouts, expected, strict=True)):
        held = Layout.replicate(mesh) if layout is None else layout
        assert_close(whole_of([o[number] for o in outputs], held), array, f"result {number} in {held}")
