"""Programs that are called with arrays: where they take the short way, where the long one, and that both agree."""

import threading

import numpy as np
import pytest

from argosy_cinn import CinnCompiler
from argosy_cinn.runtime import arrays
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Program, TensorType
from argosy_tensorcore.storage import StridedArray

pytestmark = pytest.mark.usefixtures("unguarded")
F32 = "float32"


def compiled(update=False):
    """``x * 2 + row sums of x``, and with ``update`` a state that grows by x."""
    program = Program("short")
    x = program.add_input(TensorType((3, 4), F32))
    state = program.add_state("s", TensorType((3, 4), F32)).argument if update else None
    with emit_at(Builder.at_end(program.block)):
        y = prim.add(prim.mul(x, 2.0), prim.broadcast(prim.reduce_sum(x, axes=(1,)), shape=(3, 4), axes=(0,)))
        grown = [prim.add(state, x)] if update else []
    program.set_outputs([y], grown)
    return CinnCompiler().compile(program, device("cpu"), (), {"cache": None})


def expected(x):
    return 2 * x + x.sum(1, keepdims=True)


X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_the_machine_has_a_short_way():
    """On CPython with a global lock it must work: the tests below would pass without it, too."""
    import sys
    import sysconfig

    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("there is none on this interpreter")
    assert compiled().bind([]).on_arrays is not None


def test_both_ways_agree():
    bound = compiled().bind([])
    (short,) = bound.on_arrays([X])
    bound.on_arrays = None
    (long,) = bound([StridedArray(X.copy())])
    np.testing.assert_array_equal(short, long.array())
    np.testing.assert_allclose(short, expected(X))


def test_arrays_with_gaps_take_the_long_way_and_are_right():
    bound = compiled().bind([])
    wide = np.arange(24, dtype=np.float32).reshape(3, 8)[:, ::2]
    assert bound.on_arrays([wide]) is None
    (made,) = bound([StridedArray.from_array(wide)])
    np.testing.assert_allclose(made.array(), expected(wide))


def test_a_wrong_number_of_arguments_is_told():
    bound = compiled().bind([])
    with pytest.raises(TypeError, match="a compiled program takes"):
        bound.on_arrays([X, X])


def test_states_grow_and_their_versions_are_bumped():
    state = StridedArray(np.zeros((3, 4), np.float32))
    bound = compiled(update=True).bind([state])
    for _ in range(3):
        assert bound.on_arrays([X]) is not None
    np.testing.assert_array_equal(state.array(), 3 * X)
    assert state.storage.version == 3


def test_an_input_in_the_memory_of_a_written_state_takes_the_long_way():
    state = StridedArray(np.ones((3, 4), np.float32))
    bound = compiled(update=True).bind([state])
    assert bound.on_arrays([state.array()]) is None
    (made,) = bound([state])
    np.testing.assert_allclose(made.array(), expected(np.ones((3, 4), np.float32)))
    np.testing.assert_array_equal(state.array(), np.full((3, 4), 2, np.float32))


def test_watched_programs_take_the_long_way():
    executable = compiled()
    bound, events = executable.bind([]), []
    executable.watch(events.extend)
    try:
        assert bound.on_arrays([X]) is None
        bound([StridedArray(X.copy())])
    finally:
        executable.unwatch()
    assert events
    assert bound.on_arrays([X]) is not None


def test_threads_run_one_program_together():
    bound, wrong = compiled().bind([]), []

    def work(seed):
        x = np.random.default_rng(seed).standard_normal((3, 4)).astype(np.float32)
        for _ in range(300):
            (made,) = bound.on_arrays([x])
            if not np.allclose(made, expected(x), atol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_without_a_short_way_programs_run_as_before(monkeypatch):
    monkeypatch.setattr(arrays, "_trampoline", lambda: None)
    bound = compiled().bind([])
    assert bound.on_arrays is None
    (made,) = bound([StridedArray(X.copy())])
    np.testing.assert_allclose(made.array(), expected(X))
