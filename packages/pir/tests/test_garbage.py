"""The collector pauses for as long as a block is open, and is afterwards what it was before; it comes when asked."""

import gc
import os
import threading
import weakref

import pytest

from argosy_pir.garbage import collect_now, pause_collection


@pytest.fixture(params=[True, False], autouse=True)
def collector(request):
    """With and without a collector."""
    was = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if was else gc.disable)()


def test_it_pauses_and_returns(collector):
    with pause_collection(), pause_collection():
        assert not gc.isenabled()
    assert gc.isenabled() == collector
    with pytest.raises(ValueError, match="within"), pause_collection():
        raise ValueError("within")
    assert gc.isenabled() == collector


def test_blocks_of_threads_overlap(collector):
    inside, leave = threading.Event(), threading.Event()

    def other():
        with pause_collection():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    with pause_collection():
        pass
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled() == collector


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_a_block_collects_again(collector):
    with pause_collection():
        child = os.fork()
        if not child:
            os._exit(gc.isenabled())
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == collector


class Slow:
    """A part of a cycle whose finaliser lets other threads run in the middle of a collection."""

    def __init__(self, inside, leave):
        self.itself, self.inside, self.leave = self, inside, leave

    def __del__(self):
        self.inside.set()
        self.leave.wait()


class Cycle:
    """Freed by a collection alone."""

    def __init__(self):
        self.itself = self


@pytest.fixture
def elsewhere():
    """Another thread in the middle of a collection; called, it goes on to its end."""
    inside, leave = threading.Event(), threading.Event()

    def collects():
        Slow(inside, leave)
        gc.collect()

    thread = threading.Thread(target=collects)
    thread.start()
    assert inside.wait(3600)
    yield leave.set
    leave.set()
    thread.join()


def test_a_collection_waits_for_that_of_another_thread(elsewhere, monkeypatch):
    """For which gc.collect() does not wait: it does nothing, and says nothing."""
    monkeypatch.setattr("argosy_pir.garbage._PATIENCE", 3600)
    left = weakref.ref(Cycle())
    gc.collect()
    assert left() is not None
    threading.Timer(0.05, elsewhere).start()
    assert collect_now()
    assert left() is None


def test_a_collection_does_not_wait_for_ever(elsewhere, monkeypatch):
    monkeypatch.setattr("argosy_pir.garbage._PATIENCE", 0.01)
    callbacks = list(gc.callbacks)
    assert not collect_now()
    assert gc.callbacks == callbacks
