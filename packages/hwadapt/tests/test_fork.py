"""Memory in a forked child, whichever thread of its parent was about to allocate."""

import os
import signal
import threading

import pytest

from argosy_hwadapt import device

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX processes"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


@pytest.mark.parametrize("name", ["allocator", "arena", "registry"])
def test_a_child_allocates_while_a_thread_of_its_parent_holds_the_lock(name, monkeypatch):
    """Even where an earlier test opened the virtual device, which a fork makes useless: the child opens its own."""
    from argosy_hwadapt import registry

    monkeypatch.delitem(registry._devices, ("virtual", 0), raising=False)
    monkeypatch.delitem(registry._runtimes, "virtual", raising=False)
    cpu = device("cpu")
    lock = {"allocator": cpu.allocator, "arena": cpu.context, "registry": registry}[name]._lock
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(600)  # a child that waits for ever is killed by it
        size = 0
        try:
            size = device("virtual").allocate(4000).nbytes + cpu.allocate(3 << 20).nbytes
        finally:
            os._exit(0 if size == 4000 + (3 << 20) else 1)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
