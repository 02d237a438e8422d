"""The conformance kit on every communicator, how communicators are found, and the times of modelled links."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from argosy_hwadapt import plugins, run_ranks
from argosy_hwadapt.communicators import communicator_names, open_world
from argosy_hwadapt.errors import CommunicatorError
from argosy_hwadapt.inproc import communicators as ranks_of_one_thread
from argosy_hwadapt.links import Level, LinkModel, ModelledCommunicator
from argosy_hwadapt.solo import SoloCommunicator
from argosy_hwadapt.testing import check_communicator
from argosy_hwadapt.testing.collectives import CHECKS
from argosy_hwadapt.testing.device_buffers import AddressedCommunicator, virtual_device

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:/usr/bin:/usr/local/bin")
OVERSUBSCRIBED = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def _passed(outcomes):
    assert [o for o in outcomes if o.status == "failed"] == []
    return sum(o.status == "passed" for o in outcomes)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("link", [None, LinkModel(Level(2, 1e-5, 1e9), Level(8, 1e-4, 1e8))], ids=["bare", "link"])
def test_the_kit_passes_on_threads(size, link):
    """Every check on ranks that are threads, with and without a modelled link around them."""

    def program(comm):
        return check_communicator(comm if link is None else ModelledCommunicator(comm, link))

    for outcomes in run_ranks(program, size, timeout=600):
        assert _passed(outcomes) == len(CHECKS) + 1 - (3 if size == 1 else 0)


@pytest.mark.parametrize("size", [1, 3])
def test_the_kit_passes_where_buffers_of_devices_are_taken(size):
    """By a communicator that says so, also behind a modelled link."""

    def program(comm):
        direct = AddressedCommunicator(comm)
        modelled = ModelledCommunicator(direct, LinkModel(Level(2, 1e-5, 1e9)))
        assert direct.takes_device_buffers(virtual_device())
        assert modelled.takes_device_buffers(virtual_device())
        assert not comm.takes_device_buffers(virtual_device())
        return check_communicator(modelled if comm.size > 2 else direct)

    for outcomes in run_ranks(program, size, timeout=600):
        assert _passed(outcomes) == len(CHECKS) + 1 - (3 if size == 1 else 0)


def test_the_kit_passes_on_one_rank_alone():
    """The communicator of a program that was not launched, found by its name."""
    assert _passed(check_communicator(open_world("solo"))) == len(CHECKS) + 1 - 3


@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")
@pytest.mark.parametrize(("size", "more"), [(2, []), (3, []), (4, []), (2, ["--link", "1e-4,1e9"])])
def test_the_kit_passes_over_mpi(size, more):
    """Every check on ranks that are processes, by the command."""
    pytest.importorskip("mpi4py")
    command = [sys.executable, "-m", "argosy_hwadapt.testing", "--communicator", "mpi", *more]
    ran = subprocess.run(
        [MPIEXEC, "-n", str(size), *command], capture_output=True, text=True, env={**os.environ, **OVERSUBSCRIBED}
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{len(CHECKS) + 1} passed, 0 failed, 0 skipped" in ran.stdout


def test_the_kit_finds_a_broken_communicator():
    """A wrong sum, a gather in another order and a rank that never progresses: found, and by name."""

    class Wrong(SoloCommunicator):
        def start(self, call):
            handle = super().start(call)
            if call.kind == "all_gather" and call.recv.size > 1:
                call.recv[:] = call.recv[::-1].copy()
            return handle

        def split(self, color, key):
            return Wrong()

    failed = [o for o in check_communicator(Wrong()) if o.status == "failed"]
    assert [o.name for o in failed] == ["gathers_and_exchanges"]
    assert "all_gather" in failed[0].detail


class _Point:
    def __init__(self, load, owner="somebody-else"):
        self.load, self.dist = load, type("Distribution", (), {"name": owner})()


def test_communicators_are_found_by_entry_point(monkeypatch):
    """Another distribution's communicator opens by its name; mistakes are named."""

    def points(group):
        return {
            "theirs": [_Point(lambda: lambda check: SoloCommunicator())],
            "twice": [_Point(None, "one"), _Point(None, "two")],
            "broken": [_Point(lambda: 1 / 0)],
        }

    monkeypatch.setattr(plugins, "_entry_points", points)
    assert communicator_names() == ["broken", "mpi", "solo", "theirs", "twice"]
    assert open_world("theirs").size == 1
    with pytest.raises(CommunicatorError, match="claimed by one and two"):
        open_world("twice")
    with pytest.raises(CommunicatorError, match=r"somebody-else.*ZeroDivisionError"):
        open_world("broken")
    with pytest.raises(CommunicatorError, match="no communicator is named 'none'; installed: broken, mpi"):
        open_world("none")


def test_one_thread_may_be_all_ranks():
    """Starting never waits, so a thread can start for one rank after the other."""
    members = ranks_of_one_thread(3)
    totals = [np.zeros(2) for _ in members]
    handles = [m.start_all_reduce(np.full(2, float(m.rank)), t) for m, t in zip(members, totals, strict=True)]
    assert all(handle.done() for handle in handles)
    assert [t.tolist() for t in totals] == [[3, 3]] * 3


def test_links_price_collectives_by_the_ring():
    """The golden times of rings: 8 ranks, 5 us, 200 GB/s; and which level a group uses."""
    model = LinkModel.single_level(5e-6, 200e9)
    members = range(8)
    assert model.seconds("all_reduce", 2**30, members) == pytest.approx(9.465e-3, rel=1e-4)
    assert model.seconds("all_reduce", 2**20, members) == pytest.approx(79.18e-6, rel=1e-4)
    assert model.seconds("all_gather", 2**30 / 8, members) == pytest.approx(9.465e-3 / 2, rel=1e-4)
    assert model.seconds("all_reduce", 2**28, range(64)) == pytest.approx(3.272e-3, rel=1e-3)
    levels = LinkModel(Level(4, 1e-6, 1e10), Level(16, 1e-5, 1e9))
    assert levels.level([4, 5, 7]).ranks == 4
    assert levels.level([3, 4]).ranks == 16
    with pytest.raises(ValueError, match="bandwidth above 0"):
        LinkModel(Level(2, 0.0, 0.0))


def test_modelled_links_take_their_time_and_can_be_hidden():
    """An operation ends no earlier than the model says, one after another; computing meanwhile takes no longer."""
    model = LinkModel.single_level(0.0, 1e6)  # 50 ms for 50 kB

    def program(comm):
        linked = ModelledCommunicator(comm, model)
        data = np.zeros(50_000, np.uint8)
        begin = time.monotonic()
        linked.all_reduce(data, data)
        alone = time.monotonic() - begin
        begin = time.monotonic()
        started = [linked.start_all_reduce(data, data.copy()) for _ in range(2)]
        computed = linked.start_barrier()  # on the link after the others
        for handle in (*started, computed):
            handle.wait()
        return alone, time.monotonic() - begin

    for alone, two in run_ranks(program, 2):
        assert alone >= 0.05
        assert two >= 0.1

    def overlapped(comm):
        linked = ModelledCommunicator(comm, model)
        data = np.zeros(50_000, np.uint8)
        handle = linked.start_all_reduce(data, data.copy())
        while not handle.done():  # nobody waits for it
            time.sleep(0.01)

    run_ranks(overlapped, 2, timeout=600)


def test_messages_on_a_modelled_link_arrive_in_their_time():
    """A message arrives after its bytes and the latency; the receiver's wait sleeps for the rest."""

    def program(comm):
        linked = ModelledCommunicator(comm, LinkModel.single_level(0.02, 1e6))
        if comm.rank == 0:
            sent = time.monotonic()
            linked.send(np.zeros(30_000, np.uint8), 1)
            return sent
        buffer = np.ones(30_000, np.uint8)
        handle = linked.start_recv(buffer, 0)
        handle.wait()
        return time.monotonic(), int(buffer.sum())

    sent, (arrived, total) = run_ranks(program, 2)
    assert total == 0
    assert arrived - sent >= 0.05
