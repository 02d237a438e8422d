"""The report of a program's collectives says what is communicated when the program runs, and who wanted it."""

import numpy as np
import pytest
from ranks import on_ranks

from argosy_autoparallel import (
    Layout,
    ProcessMesh,
    Shard,
    communicators,
    count_collectives,
    ensure_groups,
    partition_program,
    report_collectives,
)
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
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
