"""Capture keeps what Python did as a program that verifies, prints and computes the same."""

import os
import signal
import threading

import numpy as np
import pytest

from argosy_phi_ops.capture.tracer import Tracer, active_tracer
from argosy_phi_ops.context import Context, context, set_grad_enabled
from argosy_phi_ops.eager.dispatch import suspend_layers, write
from argosy_phi_ops.errors import CaptureError, GraphBreak
from argosy_phi_ops.passes.decompose import Decompose
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir.dims import SymExpr
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.tensor import Tensor

N = SymExpr.symbol("n")


def tensor(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def run(captured, *inputs):
    program = captured.program.clone()
    Decompose().run(program)
    program.verify()
    return interpret(program, list(inputs), [t.payload.ndarray for t in captured.states])


def test_a_captured_function_with_a_symbolic_size_computes_the_same_at_any_size():
    weight = tensor(3, 4)
    with Tracer("f") as tracer:
        x = tracer.input(TensorType((N, 3), "float32"), "x")
        captured = tracer.finish([(x @ weight) * 2.0 + 1])
    captured.program.verify()
    assert captured.states == [weight]
    assert str(Program.parse(str(captured.program))) == str(captured.program)
    for n in (1, 5):
        value = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        (result,), _ = run(captured, value)
        np.testing.assert_allclose(result, (Tensor(value) @ weight * 2.0 + 1).numpy(), rtol=1e-6)


def test_operations_carry_the_users_line():
    with Tracer() as tracer:
        x = tracer.input(TensorType((2,), "float32"))
        captured = tracer.finish([x + x])
    location = captured.program.block.first.location
    assert location.file == __file__
    assert location.function == "test_operations_carry_the_users_line"


def test_writes_become_versions_and_end_in_the_states():
    weight = tensor(3)
    before = weight.numpy()
    with Tracer() as tracer:
        x = tracer.input(TensorType((3,), "float32"))
        write(weight, weight - x)
        doubled = weight * 2.0
        captured = tracer.finish([doubled])
    assert captured.written == [0]
    np.testing.assert_array_equal(weight.numpy(), before)  # nothing ran
    (result,), (new,) = run(captured, np.ones(3, np.float32))
    np.testing.assert_array_equal(new, before - 1)
    np.testing.assert_array_equal(result, (before - 1) * 2)


def test_two_tensors_over_one_storage_are_one_state():
    weight = tensor(3)
    alias = weight.detach()
    with Tracer() as tracer:
        captured = tracer.finish([weight + alias])
    assert len(captured.states) == 1


def test_stopped_tensors_that_depend_on_leaves_get_a_barrier_when_used():
    weight = tensor(3)
    weight.stop_gradient = False
    with Tracer() as tracer:
        previous = set_grad_enabled(False)
        frozen = weight * 2.0
        set_grad_enabled(previous)
        assert frozen.stop_gradient
        result = frozen * weight
        captured = tracer.finish([result])
    assert not result.stop_gradient
    names = [op.name for op in captured.program.block]
    assert names.count("prim.stop_gradient") == 1


def test_python_that_needs_a_value_breaks_the_graph_and_says_where():
    with Tracer() as tracer:
        x = tracer.input(TensorType((), "float32"))
        y = x + 1.0
        with pytest.raises(GraphBreak, match=r"test_capture\.py"):
            bool(y)


def test_a_traced_tensor_that_escaped_is_named():
    with Tracer() as tracer:
        x = tracer.input(TensorType((2,), "float32"))
        y = x + 1.0
        tracer.finish([y])
    with pytest.raises(CaptureError, match=r"after its capture had ended.*test_capture\.py"):
        y.numpy()


def test_suspended_code_runs_eagerly_inside_a_capture():
    with Tracer() as tracer:
        with suspend_layers():
            made = tensor(2) + 1.0
        assert not made.payload.is_traced
        assert active_tracer() is tracer
    assert active_tracer() is None


def test_captures_do_not_nest():
    with Tracer(), pytest.raises(CaptureError, match="inside a capture"), Tracer():
        pass


def test_a_state_that_was_changed_behind_the_tracers_back_is_named():
    weight = tensor(3)
    with Tracer() as tracer:
        x = weight + 1.0
        weight.set_value(np.zeros(3, np.float32))
        with pytest.raises(CaptureError, match="changed outside of it"):
            tracer.finish([x])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX processes")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_changes_its_layers_whoever_changed_them_in_its_parent():
    held, done = threading.Event(), threading.Event()

    def hold():
        with Context._changing:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(600)  # a child that waits for ever is killed by it
        layer = object()
        context().put_everywhere(layer)
        os._exit(0 if context().layers[0] is layer else 1)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
