"""Partitioned programs of all ranks, made without any rank, pass the check; changed ones do not."""

import pytest
from test_static_spmd import V, W, captured

from argosy_autoparallel import Layout, ProcessMesh, Replicate, Shard, partition_program
from argosy_autoparallel.schedule import ScheduleError, list_of, verify_programs
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Program, TensorType
from argosy_tensorcore.tensor import Tensor

pytest.importorskip("argosy_autograd")


def _programs():
    """A training step of two layers on a mesh of four ranks, one program for each."""
    mesh = ProcessMesh([[0, 1], [2, 3]], dim_names=["dp", "mp"])
    found = captured(Tensor(W, stop_gradient=False), Tensor(V, stop_gradient=False))
    columns, rows = Layout(mesh, [Replicate(), Shard(1)]), Layout(mesh, [Replicate(), Shard(0)])
    states = [{W.shape: columns, V.shape: rows}.get(state.argument.type.shape) for state in found.program.states]
    inputs = [Layout(mesh, [Shard(0), Replicate()])]
    return [partition_program(found.program, inputs, states, rank).program for rank in range(4)]


def _collectives(program):
    return [op for op in program.walk() if op.name in ("prim.all_reduce", "prim.all_gather", "prim.reduce_scatter")]


def test_a_partitioned_step_passes():
    """What the partitioner makes for the ranks of a mesh belongs together; its list has its collectives."""
    programs = _programs()
    verify_programs(programs)
    assert len([i for i in list_of(programs[0]) if "start" in str(i)]) == len(_collectives(programs[0])) > 0


def test_a_rank_without_one_of_its_collectives_is_named():
    """A collective that one rank leaves out, or makes in another group, is found with ranks and lines."""
    for rank in range(4):
        programs = _programs()
        op = _collectives(programs[rank])[0]
        op.attributes["kind" if "kind" in op.attributes else "axis"] = "max" if "kind" in op.attributes else 1
        with pytest.raises(
            ScheduleError, match=rf"ranks disagree: .*rank {rank}, instruction|ranks disagree: rank {rank}"
        ):
            verify_programs(programs)
    for rank in range(4):
        programs = _programs()
        last = _collectives(programs[rank])[-1]
        last.attributes["group"] = tuple(sorted({0, 1, 2, 3} - {0 if rank else 1}))
        with pytest.raises(ScheduleError, match=r"rank \d, instruction \d+"):
            verify_programs(programs)


def _started(order):
    """A program that starts two collectives and waits for them in an order."""
    program = Program()
    x = program.add_input(TensorType((4,), "float32"))
    with emit_at(Builder.at_end(program.block)):
        token = prim.create_token()
        y, one, token = prim.start(x, token, collective="all_reduce", size=2)
        z, two, token = prim.start(x, token, collective="all_gather", size=2)
        waits = [(y, one), (z, two)]
        program.set_outputs([prim.wait(*waits[at], token)[0] for at in order])
    return program


def test_started_collectives_of_programs_are_started_and_waited_for():
    """A start and its wait are two instructions; the order of waits may differ, that of starts may not."""
    programs = [_started((0, 1)), _started((1, 0))]
    assert [type(i).__name__ for i in list_of(programs[1])] == ["Start", "Start", "Wait", "Wait"]
    verify_programs(programs)
    swapped = _started((0, 1))
    first, second = [op for op in swapped.walk() if op.name == "prim.start"]
    first.attributes["collective"], second.attributes["collective"] = "all_gather", "all_reduce"
    with pytest.raises(ScheduleError, match="ranks disagree: rank 0, instruction 0"):
        verify_programs([programs[0], swapped])
