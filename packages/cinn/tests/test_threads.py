"""Several threads start the compiler, compile and run at the same time."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from programs import assert_equal, build

from argosy_cinn import CinnCompiler
from argosy_cinn.call_once import call_once
from argosy_cinn.runtime import set_threads
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.reference.interpreter import interpret
from argosy_tensorcore.storage import StridedArray

THREADS = 8


def together(work, count=THREADS, timeout=3600):
    """Run ``work(i)`` on ``count`` threads that begin at once; raises what one of them raised, and when one hangs."""
    barrier, failures = threading.Barrier(count), []

    def run(i):
        barrier.wait()
        try:
            work(i)
        except BaseException as error:  # noqa: BLE001  (the test raises it on its own thread)
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if failures:
        raise failures[0]


def chain(depth, shape):
    """A program with a product, loops and reductions; every depth and shape is another program."""

    def program(x, w):
        for i in range(depth):
            y = prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))
            total = prim.reduce_sum(prim.exp(prim.tanh(y)), axes=(1,))
            x = prim.div(prim.tanh(y), prim.broadcast(prim.add(total, float(i)), shape=y.shape, axes=(0,)))
        return [x, prim.reduce_sum(x, axes=(0,))]

    rng = np.random.default_rng(depth)
    arguments = [rng.standard_normal(s).astype(np.float32) for s in (shape, (shape[1], shape[1]))]
    return build(program, arguments), arguments


def test_what_is_made_once_is_made_by_one_thread():
    made = []

    @call_once
    def thing():
        made.append(threading.get_ident())
        threading.Event().wait(0.02)  # others arrive meanwhile
        return object()

    found = []
    together(lambda i: found.append(thing()))
    assert len(made) == 1
    assert len({id(f) for f in found}) == 1
    thing.cache_clear()
    thing()
    assert len(made) == 2


def test_nobody_waits_for_what_another_thread_makes():
    """Two things, of which the second is made while the first one is, on another thread."""
    met = threading.Event()

    @call_once
    def slow():
        return met.wait(3600)

    @call_once
    def quick():
        return True

    def work(i):
        if i == 0:
            assert slow(), "the other thread waits for what this one makes"
        else:
            CinnCompiler().compile(chain(1, (3, 5))[0], device("cpu"), options={"cache": None})
            assert quick()
            met.set()

    together(work, count=2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_makes_what_another_thread_was_making():
    begun, go_on = threading.Event(), threading.Event()

    @call_once
    def thing():
        begun.set()
        go_on.wait(3600)
        return os.getpid()

    maker = threading.Thread(target=thing, daemon=True)
    maker.start()
    assert begun.wait(3600)
    child = os.fork()
    if child == 0:
        go_on.set()
        os._exit(0 if thing() == os.getpid() else 1)
    try:
        for _ in range(300):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.1)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child waits for a thread that it does not have")
        assert os.waitstatus_to_exitcode(status) == 0
    finally:
        go_on.set()
        maker.join(3600)


def test_threads_compile_and_run_different_programs_together():
    jobs = [chain(1 + i % 4, (20 + i, 30)) for i in range(THREADS)]
    wanted = [interpret(program, arguments)[0] for program, arguments in jobs]

    def work(i):
        program, arguments = jobs[i]
        for _ in range(2):
            executable = CinnCompiler().compile(program, device("cpu"), options={"cache": None})
            for _ in range(20):
                got = executable.run([StridedArray.from_array(a) for a in arguments])
                for g, w in zip(got, wanted[i], strict=True):
                    assert_equal(g.array(), w, 20)

    together(work)


def test_one_executable_runs_on_several_threads_together():
    program, _ = chain(3, (700, 64))
    rng = np.random.default_rng(1)
    inputs = [[rng.standard_normal(s).astype(np.float32) for s in ((700, 64), (64, 64))] for _ in range(THREADS)]
    executable = CinnCompiler().compile(program, device("cpu"))
    bound = executable.bind(())
    alone = [[r.array().copy() for r in bound([StridedArray(a) for a in own])] for own in inputs]
    set_threads(3)

    def work(i):
        for k in range(30):
            call = bound if k % 2 else executable.run
            got = call([StridedArray(a) for a in inputs[i]])
            assert all((g.array() == w).all() for g, w in zip(got, alone[i], strict=True))

    try:
        together(work)
    finally:
        set_threads(1)


def test_the_number_of_threads_changes_while_programs_run():
    program, arguments = chain(2, (900, 40))
    executable = CinnCompiler().compile(program, device("cpu"))
    inputs = [StridedArray(a) for a in arguments]
    alone = [r.array().copy() for r in executable.run(inputs)]

    def work(i):
        for k in range(20):
            if i == 0:
                set_threads(1 + k % 3)
            assert all((g.array() == w).all() for g, w in zip(executable.run(inputs), alone, strict=True))

    try:
        together(work, 4)
    finally:
        set_threads(1)


START = """
    import sys, threading
    sys.path.insert(0, {tests!r})
    sys.setswitchinterval(1e-5)
    from test_threads import chain, together
    from argosy_cinn import CinnCompiler
    from argosy_hwadapt import device
    from argosy_tensorcore.storage import StridedArray
    jobs = [chain(1 + i % 3, (300 + i, 20)) for i in range(8)]

    def work(i):
        program, arguments = jobs[i]
        CinnCompiler().compile(program, device("cpu")).run([StridedArray(a) for a in arguments])

    together(work, timeout=3600)
    print("done")
"""


def test_threads_that_start_the_compiler_together_neither_hang_nor_crash(tmp_path):
    code = textwrap.dedent(START.format(tests=os.path.dirname(__file__)))
    for attempt in range(3):  # with an empty cache, then with a full one
        environment = {**os.environ, "ARGOSY_CACHE_DIR": str(tmp_path / str(attempt // 2)), "ARGOSY_NUM_THREADS": "2"}
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", code], env=environment, capture_output=True, text=True,
            timeout=3600, check=False,
        )  # fmt: skip
        assert done.stdout.strip() == "done", done.stderr[-2000:]


def test_a_child_forked_while_threads_compile_compiles_too():
    if not hasattr(os, "fork"):
        return
    code = textwrap.dedent(START.format(tests=os.path.dirname(__file__))).replace(
        "    print", "print"
    ) + textwrap.dedent(
        """
        import os, time
        thread = threading.Thread(target=together, args=(work,), kwargs={"count": 4})
        thread.start()
        for _ in range(3):
            time.sleep(0.02)
            child = os.fork()
            if child == 0:
                work(5)
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        thread.join()
        print("forked")
        """
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-X", "faulthandler", "-c", code],
        capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["done", "forked"], done.stderr[-2000:]
