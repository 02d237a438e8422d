"""``ARGOSY_CHECK_PROGRAMS``: what all ranks communicate is compared before a program on a mesh runs."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
import argosy_autoparallel.schedule as schedule
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy.distributed.launch.arguments import parse


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
def test_programs_of_all_ranks_are_compared_where_it_is_asked_for(monkeypatch, on):
    """Each rank looks at both programs; what passes runs, with the loss of the unchecked step."""
    seen = []
    verify_programs = schedule.verify_programs
    monkeypatch.setenv("ARGOSY_CHECK_PROGRAMS", str(int(on)))
    monkeypatch.setattr(schedule, "verify_programs", lambda p: seen.append(list(p)) or verify_programs(p))
    losses = run_ranks(train, 2)
    assert losses[0] == losses[1]
    assert [len(programs) for programs in seen] == [2, 2] * on
    for programs in seen:
        assert all(any(op.name == "prim.all_reduce" for op in program.walk()) for program in programs)


def test_a_program_that_fails_the_check_does_not_run(monkeypatch):
    """Its error is the check's, on the rank and before anything was communicated."""

    def refuse(programs):
        raise schedule.ScheduleError("rank 0 and rank 1 differ")

    monkeypatch.setenv("ARGOSY_CHECK_PROGRAMS", "1")
    monkeypatch.setattr(schedule, "verify_programs", refuse)
    with pytest.raises(schedule.ScheduleError, match="rank 0 and rank 1 differ"):
        run_ranks(train, 2)


def test_the_launcher_switches_it_on():
    """``--check`` stands before the script; the script's own options are its own."""
    assert parse(["--check", "train.py"], "launch").check
    assert not parse(["train.py", "--check"], "launch").check
