"""What all ranks communicate is compared before a program on a mesh runs, unless ``ARGOSY_CHECK_PROGRAMS=0``."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
import argosy_autoparallel.schedule as schedule
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy.distributed.launch.arguments import parse
from argosy_autoparallel.passes.tokens import COMMUNICATION
from argosy_autoparallel.pipeline import local_pieces
from argosy_hwadapt.errors import CommunicatorError


def train():
    """A compiled step of a model that is split over two ranks."""
    paddle.seed(0)
    mesh = dist.ProcessMesh([0, 1], ["x"])
    model = nn.Linear(4, 4, bias_attr=False)
    dist.shard_tensor(model.weight, mesh, [dist.Shard(0)])
    optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
    step = dist.to_static(model, None, nn.MSELoss(), optimizer)
    x = dist.shard_tensor(np.ones((2, 4), np.float32), mesh, [dist.Replicate()])
    return float(step(x, x))


@pytest.mark.parametrize("on", [False, True])
def test_programs_of_all_ranks_are_compared_unless_that_is_turned_off(monkeypatch, on):
    """Each rank looks at both programs; what passes runs, with the loss of the unchecked step."""
    seen = []
    verify_programs = schedule.verify_programs
    monkeypatch.setenv("ARGOSY_CHECK_PROGRAMS", "" if on else "0")
    monkeypatch.setattr(schedule, "verify_programs", lambda p: seen.append(list(p)) or verify_programs(p))
    losses = run_ranks(train, 2)
    assert losses[0] == losses[1]
    assert [len(programs) for programs in seen] == [2, 2] * on
    for programs in seen:
        assert all(any(op.name == "prim.all_reduce" for op in program.walk()) for program in programs)


def refuse(programs):
    raise schedule.ScheduleError("rank 0 and rank 1 differ")


def test_a_program_that_fails_the_check_does_not_run(monkeypatch):
    """Its error is the check's, on the rank and before anything was communicated."""

    monkeypatch.setattr(schedule, "verify_programs", refuse)
    with pytest.raises(schedule.ScheduleError, match="rank 0 and rank 1 differ"):
        run_ranks(train, 2)


def train_stages():
    """A step of two stages, each of two ranks, which add up terms of products."""
    mesh = dist.ProcessMesh([[0, 1], [2, 3]], ["pp", "mp"])
    dist.set_mesh(mesh)
    paddle.seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)) for _ in range(2)])
    adam = paddle.optimizer.Adam(parameters=model.parameters())
    plan = {"[01].0": dist.ColWiseParallel(), "[01].1": dist.RowWiseParallel()}
    config = {"pp_config": {"split_spec": {"0": dist.SplitPoint.END}}, "mp_config": {"parallelize_plan": plan}}
    model, adam = dist.parallelize(model, adam, mesh, config)
    strategy = dist.Strategy({"pipeline": {"enable": True, "schedule_mode": "1F1B", "accumulate_steps": 2}})
    trained = dist.to_static(model, None, nn.MSELoss(), adam, strategy)
    return float(trained(paddle.ones([8, 4]), paddle.ones([8, 4])))


def test_pieces_of_stages_are_compared(monkeypatch):
    """By the ranks of a stage, each with those that have nothing to do with it."""
    seen = []
    verify_programs = local_pieces.verify_programs
    monkeypatch.setattr(local_pieces, "verify_programs", lambda p: seen.append(list(p)) or verify_programs(p))
    losses = run_ranks(train_stages, 4)
    assert len(set(losses)) == 1
    assert seen
    for programs in seen:
        communicate = [any(op.dialect == "prim" and op.name in COMMUNICATION for op in p.walk()) for p in programs]
        assert communicate in ([True, True], [False, False, True, True])
    monkeypatch.setattr(local_pieces, "verify_programs", refuse)
    with pytest.raises(schedule.ScheduleError, match="rank 0 and rank 1 differ"):
        run_ranks(train_stages, 4)


def ask_for_different_results():
    """Both ranks compile a program on one mesh, but not the same."""
    mesh = dist.ProcessMesh([0, 1], ["x"])
    x = dist.shard_tensor(np.ones((2, 4), np.float32), mesh, [dist.Shard(0)])
    of_columns = dist.get_rank() == 0
    step = paddle.jit.to_static(lambda x: dist.reshard(x.sum(0) if of_columns else x.sum(), mesh, [dist.Replicate()]))
    return step(x).numpy()


def test_ranks_that_capture_different_programs_are_named():
    """Each one's own program is the same for both ranks: what differs is found where they meet, and nobody waits."""
    with pytest.raises(CommunicatorError, match=r"rank 0 calls all_reduce\(.*rank 1 calls all_reduce\("):
        run_ranks(ask_for_different_results, 2)


def send_to_the_other():
    """A program that is one rank's own: the other receives."""
    x = paddle.ones([2])

    @paddle.jit.to_static(full_graph=True)
    def exchange(x):
        if dist.get_rank() == 0:
            dist.send(x + 1, 1)
        else:
            dist.recv(x, 0)
        return x * 1

    return exchange(x).numpy().tolist()


def test_what_a_rank_communicates_by_itself_is_its_own():
    """A program with messages says nothing of the other rank's: none is derived from it."""
    assert run_ranks(send_to_the_other, 2) == [[1, 1], [2, 2]]


def test_the_launcher_switches_it_on():
    """``--check`` compares programs of as many ranks as there are; the script's own options are its own."""
    assert parse(["--check", "train.py"], "launch").check
    assert not parse(["train.py", "--check"], "launch").check
