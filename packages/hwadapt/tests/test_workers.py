"""Worker threads run native code beside Python, and processor features are what the system says."""

import os
import subprocess
import sys
import threading

import pytest

from argosy_hwadapt import DeviceError, WorkerThreads, cpu_features, physical_cores
from argosy_hwadapt.cpu.c_bindings import ffi, load_library

libc = load_library(None)
start_barrier = libc.load_function(ffi.typeof("int(*)(void *, void *, unsigned int)"), "pthread_barrier_init")
usleep = int(ffi.cast("uintptr_t", libc.load_function(ffi.typeof("int(*)(unsigned int)"), "usleep")))
wait_at_barrier = libc.load_function(ffi.typeof("int(*)(void *)"), "pthread_barrier_wait")


def test_threads_run_native_code_beside_python():
    """Two threads and Python meet at a barrier: none waits for another to end, nor for the GIL."""
    barrier = ffi.new("long long[16]")
    assert start_barrier(barrier, ffi.NULL, 3) == 0
    workers = WorkerThreads(2)
    workers.start(int(ffi.cast("uintptr_t", wait_at_barrier)), [int(ffi.cast("uintptr_t", barrier))] * 2)
    assert workers.is_running
    wait_at_barrier(barrier)
    assert workers.stop()


def test_each_thread_gets_its_argument():
    """Thread i is called with the i-th address."""
    seen = []
    callback = ffi.callback("void(void *)", lambda p: seen.append(int(ffi.cast("intptr_t", p))))
    workers = WorkerThreads(3)
    workers.start(int(ffi.cast("uintptr_t", callback)), [11, 22, 33])
    assert workers.stop()
    assert sorted(seen) == [11, 22, 33]


def test_stop_asks_the_loop_to_end():
    """A loop that waits for work ends because request_stop told it, and the threads may start again."""
    leave = threading.Event()
    callback = ffi.callback("void(void *)", lambda _: leave.wait() and None)
    address = int(ffi.cast("uintptr_t", callback))
    workers = WorkerThreads(2)
    for _ in range(2):
        leave.clear()
        workers.start(address, [0, 0], request_stop=leave.set)
        with pytest.raises(DeviceError, match="running already"):
            workers.start(address, [0, 0])
        assert workers.stop()
        assert not workers.is_running


@pytest.mark.parametrize(
    ("count", "entry", "arguments"),
    [(2, usleep, [1]), (1, 0, [1]), (-1, usleep, [])],
    ids=["too few arguments", "no address", "negative count"],
)
def test_wrong_requests_are_refused(count, entry, arguments):
    """A null entry, a wrong number of arguments or threads is a ValueError."""
    with pytest.raises(ValueError, match="WorkerThreads"):
        WorkerThreads(count).start(entry, arguments)


FORK = """
import os, sys, time
from argosy_hwadapt import WorkerThreads
from argosy_hwadapt.cpu.c_bindings import ffi, load_library
sleep = load_library(None).load_function(ffi.typeof("int(*)(unsigned int)"), "usleep")
workers = WorkerThreads(2)
workers.start(int(ffi.cast("uintptr_t", sleep)), [700_000, 700_000])
child = os.fork()
alive = workers.is_running
if child == 0:
    os._exit(0 if alive and workers.stop() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

PIN = """
import os
from argosy_hwadapt import physical_cores
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
print(physical_cores())
"""

EXIT = """
import threading
from argosy_hwadapt import WorkerThreads
from argosy_hwadapt.cpu.c_bindings import ffi
leave = threading.Event()
loop = ffi.callback("void(void *)", lambda _: leave.wait() and None)
workers = WorkerThreads(2)
workers.start(int(ffi.cast("uintptr_t", loop)), [0, 0], request_stop=lambda: (print("asked"), leave.set()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_threads_are_rebuilt_in_a_forked_child():
    """A child process has its own running workers."""
    assert subprocess.run([sys.executable, "-c", FORK], timeout=3600).returncode == 0


def test_threads_are_stopped_at_exit():
    """The interpreter ends at once although workers wait for work."""
    done = subprocess.run([sys.executable, "-c", EXIT], timeout=3600, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "asked\n", "")


def test_processor_facts_are_plausible():
    """Cores respect the affinity mask; features are names."""
    assert 1 <= physical_cores() <= (os.cpu_count() or 1)
    assert all(name == name.strip() and name for name in cpu_features())
    if sys.platform == "linux" and os.uname().machine == "x86_64":
        assert "sse2" in cpu_features()


def test_affinity_limits_cores():
    """A process pinned to one processor has one core."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("needs processor affinity")
    assert subprocess.run([sys.executable, "-c", PIN], capture_output=True, text=True).stdout == "1\n"
