"""Gradients of distributed tensors equal those of one process and lie where their tensors lie."""

import numpy as np
import pytest
from prover import MESHES, assert_close, bound, distributed, layouts_of, listed, samples
from ranks import on_ranks

from argosy_autoparallel import (
    ProcessMesh,
    Replicate,
    Shard,
    count_collectives,
    layout_of,
    reshard,
    shard_tensor,
    unshard_dtensor,
)
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import bind
from argosy_tensorcore.tensor import Tensor

pytest.importorskip("argosy_autograd")

NAMES = [
    "add", "multiply", "divide", "matmul", "linear", "tanh", "softmax", "log_softmax", "layer_norm", "rms_norm", "mean",
    "sum", "max", "logsumexp", "gelu", "silu", "embedding", "cross_entropy", "transpose", "reshape", "concat", "split",
    "getitem", "gather", "where", "conv2d", "cumsum", "scaled_dot_product_attention", "expand", "pad", "stack",
]  # fmt: skip
LOOPS = ["simple_rnn", "gru", "lstm", "ctc_paths", "rnnt_paths", "grid_sample"]


def gradients(op, operands, attributes, wanted):
    """The gradients of the sum of sines of all results."""
    results = [r for r in listed(bind(op, tuple(operands), attributes)) if not r.stop_gradient]
    total = None
    for r in results:
        term = get_operator("sum")(get_operator("sin")(r))
        total = term if total is None else get_operator("add")(total, term)
    if total is None:
        return None
    total.backward()
    return [operands[i].grad for i in wanted]


def differentiable(operands):
    return [i for i, x in enumerate(operands) if type(x) is Tensor and x.payload.dtype.kind == "f"]


@pytest.mark.parametrize("mesh_name", [pytest.param("2", marks=pytest.mark.exhaustive), "2x2"])
def test_gradients_do_not_depend_on_placements(mesh_name):
    """Values as on one process; a leaf's gradient is laid out like the leaf."""
    assert compared(NAMES, mesh_name, most_samples=4, layouts=2) > 80


def test_gradients_of_loops_and_alignments_do_not_depend_on_placements():
    """Recurrent networks, whose scans run on whole tensors, alignments, and sampling on a grid."""
    assert compared(LOOPS, "2", most_samples=1, layouts=4) == 4 * len(LOOPS)


def compared(names, mesh_name, most_samples, layouts):
    """Compare gradients on some layouts by chance of some samples of operators; how many there were."""

    def main(rank):
        mesh, rng = ProcessMesh(MESHES[mesh_name]), np.random.default_rng(1)
        return sum(
            compare(get_operator(name), sample, mesh, rng, layouts, f"{name}, sample {number}")
            for name in names
            for number, sample in enumerate(samples(name)[:most_samples])
        )

    return on_ranks(main, 4 if mesh_name == "2x2" else 2, timeout=3600)[0]


def compare(op, sample, mesh, rng, count, what):
    operands, attributes = bound(op, sample)
    wanted = differentiable(operands)
    plain = [Tensor(x.numpy(), stop_gradient=i not in wanted) if type(x) is Tensor else x
             for i, x in enumerate(operands)]  # fmt: skip
    expected = gradients(op, plain, attributes, wanted)
    if expected is None:
        return 0
    tensors = [i for i, x in enumerate(operands) if type(x) is Tensor]
    arrays = [operands[i].payload.array() for i in tensors]
    chosen = layouts_of(arrays, mesh.ndim, count, rng, partial=False)
    for layouts in chosen:
        given = list(operands)
        for i, placements in zip(tensors, layouts, strict=True):
            given[i] = distributed(operands[i], mesh, placements, stop_gradient=i not in wanted)
        found = gradients(op, given, attributes, wanted)
        for i, g, e in zip(wanted, found, expected, strict=True):
            if e is not None:
                assert layout_of(g) == layout_of(given[i]), (what, layouts)
                assert_close(g.payload.to_host(), e.payload.array(), f"{what}, {list(map(list, layouts))}")
    return len(chosen)


def test_gradients_flow_through_reshard_and_unshard():
    """A change of layout is the identity for values and gradients, between meshes, too."""

    def main(rank):
        first, second = ProcessMesh([0, 1]), ProcessMesh([2, 3])
        x = shard_tensor(np.arange(10, dtype=np.float32).reshape(5, 2), first, [Shard(0)], stop_gradient=False)
        y = reshard(get_operator("tanh")(x), second, [Shard(1)])
        z = reshard(get_operator("multiply")(y, y), first, [Replicate()])
        get_operator("sum")(z).backward()
        w = shard_tensor(np.ones((3, 2), np.float32), ProcessMesh([0, 1, 2, 3]), [Shard(0)], stop_gradient=False)
        get_operator("sum")(get_operator("multiply")(unshard_dtensor(w), 3.0)).backward()
        return (x.grad.numpy() if rank < 2 else None), layout_of(x.grad) == layout_of(x), w.grad.numpy()

    t = np.tanh(np.arange(10).reshape(5, 2))
    for rank, (grad, same, plain) in enumerate(on_ranks(main, 4)):
        assert same
        np.testing.assert_array_equal(plain, np.full((3, 2), 3.0))
        if rank < 2:
            np.testing.assert_allclose(grad, 2 * t * (1 - t * t), atol=1e-6)


def test_a_data_parallel_gradient_is_reduced_once():
    """With the batch split and the weight replicated, a step reduces one gradient and nothing else."""

    def main(rank):
        mesh = ProcessMesh([0, 1, 2, 3])
        x = shard_tensor(np.ones((8, 6), np.float32), mesh, [Shard(0)])
        w = shard_tensor(np.full((6, 5), 0.1, np.float32), mesh, [Replicate()], stop_gradient=False)
        with count_collectives() as counts:
            get_operator("sum")(get_operator("tanh")(get_operator("matmul")(x, w))).backward()
        return counts

    for counts in on_ranks(main, 4):
        assert counts.calls == {"all_reduce": 1}
        assert counts.total_bytes == 2 * 6 * 5 * 4 * 3 / 4
