"""What a forked child has of the threads of its parent: neither locks nor half-imported modules."""

import importlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from argosy_pir.fork import hold_at_fork

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX processes"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


def test_a_child_does_not_wait_for_a_module_that_a_thread_was_importing(tmp_path, monkeypatch):
    """Whoever compiles first imports parts of the compiler: a process that forks then has a child that can, too."""
    (tmp_path / "slowly_imported.py").write_text("import time\ntime.sleep(0.3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importing = threading.Thread(target=importlib.import_module, args=("slowly_imported",))
    importing.start()
    while "slowly_imported" not in sys.modules:
        pass
    child = os.fork()
    if child == 0:
        signal.alarm(600)  # a child that waits for ever is killed by it
        importlib.import_module("slowly_imported")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    importing.join()


def test_a_child_imports_again_what_began_to_be_imported_just_before_the_fork(tmp_path):
    """After the process has waited for imports another may begin: its lock is nobody's in the child."""
    (tmp_path / "slowly_imported.py").write_text("import time\ntime.sleep(0.3)\ndone = True\n")
    code = """
        import importlib, os, signal, sys, threading
        thread = threading.Thread(target=importlib.import_module, args=("slowly_imported",))
        def begin():
            thread.start()
            while "slowly_imported" not in sys.modules:
                pass
        os.register_at_fork(before=begin)  # hooks run in reverse order: this one is the last
        import argosy_pir
        child = os.fork()
        if child == 0:
            signal.alarm(600)  # a child that waits for ever is killed by it
            import slowly_imported
            os._exit(7 if slowly_imported.done else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        thread.join()
    """
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True,
        timeout=3600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_lock_that_comes_while_a_process_forks_was_not_taken(capfd):
    """A module that the fork waits for may bring one: nobody releases what nobody holds."""
    locks = []

    def bring():
        if not locks:
            locks.append(hold_at_fork(threading.Lock()))

    os.register_at_fork(before=bring)
    for _ in range(2):  # the second time it is taken
        child = os.fork()
        if child == 0:
            os._exit(0 if locks[0].acquire(blocking=False) else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert locks[0].acquire(blocking=False)
        locks[0].release()
    assert "release unlocked lock" not in capfd.readouterr().err


def test_locks_are_taken_in_whatever_order_threads_take_them():
    """A thread that holds the one and waits for the other goes on, and both are free in the child."""
    first, second = hold_at_fork(threading.Lock()), hold_at_fork(threading.Lock())
    taken = threading.Event()

    def work(outer, inner):
        with outer:
            taken.set()
            time.sleep(0.05)  # the fork begins meanwhile
            with inner:
                pass

    for outer, inner in ((first, second), (second, first)):
        taken.clear()
        thread = threading.Thread(target=work, args=(outer, inner))
        thread.start()
        taken.wait()
        child = os.fork()
        if child == 0:
            os._exit(0 if first.acquire(blocking=False) and second.acquire(blocking=False) else 1)
        assert os.waitpid(child, 0)[1] == 0
        thread.join()
