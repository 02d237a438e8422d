"""The collector pauses for as long as a block is open, and is afterwards what it was before."""

import gc
import os
import threading

import pytest

from argosy_pir.garbage import uncollected


@pytest.fixture(params=[True, False], autouse=True)
def collector(request):
    """With and without a collector."""
    was = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if was else gc.disable)()


def test_it_pauses_and_returns(collector):
    with uncollected(), uncollected():
        assert not gc.isenabled()
    assert gc.isenabled() == collector
    with pytest.raises(ValueError, match="within"), uncollected():
        raise ValueError("within")
    assert gc.isenabled() == collector


def test_blocks_of_threads_overlap(collector):
    inside, leave = threading.Event(), threading.Event()

    def other():
        with uncollected():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    with uncollected():
        pass
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled() == collector


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_a_block_collects_again(collector):
    with uncollected():
        child = os.fork()
        if not child:
            os._exit(gc.isenabled())
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == collector
