"""The report of a program's collectives says what is communicated when the program runs, and who wanted it."""

import numpy as np
import pytest
from ranks import on_ranks

from argosy_autoparallel import (
    Layout,
    Partial,
    ProcessMesh,
    Replicate,
    Shard,
    communicators,
    count_collectives,
    ensure_groups,
    partition_program,
    report_collectives,
    reshard,
    shard_tensor,
)
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.reference.interpreter import ProgramPlan
from argosy_pir import Builder, Program, TensorType

MESH = ProcessMesh([0, 1, 2, 3], ["x"])


def program():
    """A sum that a product needs, a transposition of layouts and an output whose layout is asked for."""
    made = Program("step")
    x = made.add_input(TensorType((8, 8), "float32"))
    with emit_at(Builder.at_end(made.block)):
        gram = prim.dot_general(x, x, lhs_contract=(0,), rhs_contract=(0,))
        made.set_outputs([prim.tanh(gram), prim.cumulative(x, axis=0, kind="sum")])
    return made


@pytest.mark.parametrize("overlap", [False, True])
def test_the_report_tells_what_is_sent(overlap):
    """Its bytes are those that are counted when the program runs; each collective has its reason."""

    def main(rank):
        ensure_groups(MESH)
        outputs = [Layout(MESH, [Shard(0)]), None]
        local = partition_program(program(), [Layout(MESH, [Shard(0)])], (), rank, outputs, overlap=overlap).program
        report = report_collectives(local)
        with count_collectives() as counts:
            ProgramPlan(local).run([np.ones((2, 8), np.float32)], (), communicators())
        assert report.total_bytes == counts.total_bytes
        return report

    report = on_ranks(main, 4)[0]
    assert {c.kind: c.needed_by for c in report.collectives}["all_reduce"] == ("prim.tanh",)
    assert "all_reduce of ranks 0, 1, 2, 3: tensor<[8, 8], float32>, 384 bytes, for prim.tanh" in str(report)


def test_eager_collectives_have_their_lines_and_reasons():
    """What an operator needs is implicit, what somebody asks for is not; a message tells what is sent."""

    def main(rank):
        mesh = ProcessMesh([[0, 1], [2, 3]])
        x = shard_tensor(np.arange(16.0, dtype=np.float32).reshape(4, 4), mesh, [Shard(0), Shard(1)])
        with count_collectives() as counts:
            y = get_operator("matmul")(x, x, transpose_x=True)
            get_operator("tanh")(y)
            reshard(x, mesh, [Replicate(), Partial()])
            get_operator("nonzero")(x)
            reshard(x, mesh, [Shard(0, sizes=[1, 3]), Shard(1)])
        assert [(c.kind, c.nbytes) for c in report_collectives(counts).collectives] == counts.log
        return counts.report

    report = on_ranks(main, 4)[0]
    found = [(c.kind, c.group, c.type.shape, c.needed_by) for c in report.collectives]
    assert found == [
        ("all_gather", (0, 1), (2, 2), ("prim.dot_general",)), ("all_reduce", (0, 2), (2, 4), ("prim.tanh",)),
        ("all_gather", (0, 2), (2, 2), ()), ("all_gather", (0, 2), (2, 2), ("phi.nonzero",)),
        ("all_gather", (0, 1), (4, 2), ("phi.nonzero",)), ("send", None, (1, 2), ()),
    ]  # fmt: skip
    assert all(__file__ in c.line for c in report.collectives)
    assert len({c.line for c in report.collectives}) == 5
    assert len(report.implicit) == 4
