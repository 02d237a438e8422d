"""Looking at compiled programs: estimates, events of kernels while somebody watches."""

import threading
from weakref import WeakSet

import numpy as np
import pytest
from programs import ON_HOST, build, check, on_host
from test_threads import chain

from argosy_cinn import CinnCompiler, explain
from argosy_cinn.runtime import set_threads
from argosy_cinn.tools import tracing
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_tensorcore.storage import StridedArray


@pytest.fixture
def watched(monkeypatch):
    """Events of the test's programs, while it runs: those that other tests left would all be made again, too."""
    monkeypatch.setattr(tracing, "_programs", WeakSet())
    events = []
    tracing.start(events.extend)
    yield events
    tracing.stop()


def compiled(depth=2, shape=(900, 64)):
    program, arguments = chain(depth, shape)
    return CinnCompiler().compile(program, device("cpu")), [StridedArray(a) for a in arguments]


def test_every_kernel_call_has_its_events_and_results_are_the_same(watched):
    executable, inputs = compiled()
    tracing.stop()
    plain = [r.array().copy() for r in executable.run(inputs)]
    tracing.start(watched.extend)
    set_threads(2)
    try:
        seen = executable.run(inputs)
    finally:
        set_threads(1)
    assert all((a == b.array()).all() for a, b in zip(plain, seen, strict=True))
    assert {e.call for e in watched} == set(range(executable.report()["kernel_calls"]))
    assert all(e.end >= e.start for e in watched)
    assert sum(e.call == 0 for e in watched) > 1, "a product runs in several chunks"
    last = [max(e.end for e in watched if e.call == n) for n in range(3)]
    first = [min(e.start for e in watched if e.call == n) for n in range(3)]
    assert all(a <= b for a, b in zip(last, first[1:], strict=False)), "kernels run one after the other"


def test_nothing_is_recorded_when_nobody_watches(watched):
    executable, inputs = compiled()
    executable.run(inputs)
    count = len(watched)
    assert count
    tracing.stop()
    executable.run(inputs)
    assert len(watched) == count
    tracing.start(watched.extend)


def test_host_calls_are_events_too(watched):
    program = build(lambda x: on_host(prim.mul(x, 2.0), 0), [np.zeros(50, np.float32)])
    executable = CinnCompiler().compile(program, device("cpu"))
    executable.run([StridedArray(np.arange(50, dtype=np.float32))])
    assert [e.name for e in watched if e.call is None] == [ON_HOST]
    assert {e.thread for e in watched if e.call is None} == {threading.get_ident()}


def test_two_watchers_are_refused(watched):
    with pytest.raises(RuntimeError, match="already"):
        tracing.start(print)


def test_estimates_count_every_buffer_once_and_a_product_twice_its_cells():
    x, w = np.zeros((64, 32), np.float32), np.zeros((32, 16), np.float32)
    product = check(lambda x, w: prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,)), x, w)
    (call,) = product.manifest.calls
    assert (call.read, call.written, call.operations) == ((64 * 32 + 32 * 16) * 4, 64 * 16 * 4, 2 * 64 * 32 * 16)
    rows = check(
        lambda x: [prim.exp(x), prim.mul(x, x), prim.reduce_sum(x, axes=(1,))], np.zeros((64, 512), np.float32)
    )
    assert sum(c.read for c in rows.manifest.calls) == 64 * 512 * 4
    assert sum(c.written for c in rows.manifest.calls) == (2 * 64 * 512 + 64) * 4


def test_a_cached_program_tells_its_own_lines():
    def lines():
        return explain(compiled()[0])

    assert lines() == lines()
    assert "900 x 64 x 64" in lines()
    assert "buffer" in lines()
