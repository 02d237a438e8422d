"""Branches and loops are part of the native code around them; on a device of work-groups the host drives them."""

import signal

import numpy as np
import pytest
from programs import assert_equal, on_host

from argosy_cinn import CinnCompiler, explain
from argosy_cinn.runtime import set_threads
from argosy_hwadapt import device, why
from argosy_phi_ops import prim
from argosy_phi_ops.context import context, emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType, effects
from argosy_pir.core import Block, Operation, Region
from argosy_pir.dialect import get_definition
from argosy_tensorcore.storage import StridedArray

RNG = np.random.default_rng(3)
F = "float32"


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def region(types, function, terminator="control.yield"):
    """A region of one block that ends with what ``function(*arguments)`` returns."""
    block = Block(types)
    with emit_at(Builder.at_end(block)):
        results = function(*block.arguments)
    block.append(Operation(terminator, results))
    made = Region()
    made.append(block)
    return made


def check(function, *arguments, on_device=True):
    """Compile a program that ``function(builder, *inputs)`` makes, run it twice and compare with the interpreter."""
    program = Program("control")
    inputs = [program.add_input(TensorType(a.shape, a.dtype.name)) for a in arguments]
    builder = Builder.at_end(program.block)
    with emit_at(builder):
        program.set_outputs(function(builder, *inputs))
    want, _ = interpret(program, arguments)
    executable = CinnCompiler().compile(program, device("cpu"))
    for _ in range(2):
        got = executable.run([StridedArray.from_array(a) for a in arguments])
        for g, w in zip(got, want, strict=True):
            assert_equal(g.array(), w, 20)
    if on_device and why("opencl") is None:
        check_on_device(program, arguments, want)
    return executable


def check_on_device(program, arguments, want):
    there = device("opencl")
    run = CinnCompiler().compile(program, there).bind(())
    for _ in range(2):
        got = run([StridedArray.from_array(a, there) for a in arguments])
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g.to_host(), w, rtol=1e-4, atol=1e-5 * np.abs(w).max(initial=1))


def product(x, w):
    return prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))


def recurrence(builder, xs, h, w):
    """A recurrent cell over all steps, then its gradient with respect to the first state, by a scan the other way."""

    def cell(x, h):
        new = prim.tanh(prim.add(product(h, w), x))
        return [new, new]

    steps = xs.shape[0]
    forward = builder.create(
        "control.scan", [xs, h], {"inputs": 1}, [xs.type, h.type], [region([h.type, h.type], cell)]
    )

    def back(y, g):
        inner = prim.mul(g, prim.sub(1.0, prim.mul(y, y)))
        total = prim.dot_general(inner, w, lhs_contract=(1,), rhs_contract=(1,))
        return [prim.reduce_sum(inner, axes=(0,)), total]

    stacked = TensorType((steps, h.shape[1]), F)
    backward = builder.create(
        "control.scan", [forward.results[0], prim.mul(h, 0.5)], {"inputs": 1, "reverse": True},
        [stacked, h.type], [region([h.type, h.type], back)],
    )  # fmt: skip
    return [forward.results[1], backward.results[1], prim.reduce_sum(backward.results[0], axes=(0,))]


def test_a_recurrence_of_128_steps_and_its_gradient_are_one_native_call():
    executable = check(recurrence, f32(128, 3, 8), f32(3, 8), f32(8, 8) * 0.3)
    assert executable.report()["host_calls"] == {}
    assert len(executable.manifest.hosts) == 0
    assert "scan of 128 steps" in explain(executable)


def test_loops_give_the_same_bits_for_any_number_of_threads():
    arguments = (f32(20, 70, 90), f32(70, 90), f32(90, 90) * 0.1)
    found = []
    for threads in (1, 2, 4):
        set_threads(threads)
        executable = check(recurrence, *arguments, on_device=False)
        found.append([p.array().copy() for p in executable.run([StridedArray.from_array(a) for a in arguments])])
    set_threads(1)
    for other in found[1:]:
        assert all((a == b).all() for a, b in zip(found[0], other, strict=True))


def test_carried_values_that_change_places_stay_apart():
    def program(builder, x, y):
        def body(i, a, b, c):
            return [b, a, prim.add(c, prim.mul(a, prim.cast(i, dtype=F)))]

        bounds = [prim.constant(v, "int32") for v in (0, 5, 2)]
        types = [x.type] * 3
        loop = builder.create("control.for", [*bounds, x, y, x], {}, types, [region([bounds[0].type, *types], body)])
        return list(loop.results)

    assert check(program, f32(7), f32(7)).report()["host_calls"] == {}


@pytest.mark.parametrize("stop", [0, 1, 2, 9])
def test_a_loop_whose_bounds_are_computed_may_run_never(stop):
    def program(builder, x, stop):
        def body(i, a):
            return [prim.add(prim.mul(a, 0.5), prim.cast(i, dtype=F))]

        start, step = prim.constant(1, "int64"), prim.constant(3, "int64")
        loop = builder.create("control.for", [start, stop, step, x], {}, [x.type], [region([stop.type, x.type], body)])
        return [loop.results[0]]

    assert check(program, f32(300), np.array(stop)).report()["host_calls"] == {}


def test_a_scan_without_inputs_in_a_branch_in_a_loop():
    scalar = TensorType((), F)

    def program(builder, x):
        def turn(a):
            inner = Builder.at_end(a.owner)

            def grown():
                here = prim.mul(a, 1.0)
                deep = Builder.at_end(here.op.parent)
                made = deep.create(
                    "control.scan", [here], {"inputs": 0, "length": 4}, [TensorType((4,), F), scalar],
                    [region([scalar], lambda v: [prim.mul(v, 2.0), prim.add(v, 1.0)])],
                )  # fmt: skip
                return [prim.reduce_max(made.results[0], axes=(0,))]

            condition = prim.lt(a, 50.0)
            ways = [region([], grown), region([], lambda: [prim.mul(a, 3.0)])]
            return [inner.create("control.if", [condition], {}, [scalar], ways).results[0]]

        total = prim.reduce_sum(prim.abs(x), axes=(0,))
        test = region([scalar], lambda v: [prim.lt(v, 1000.0)], "control.condition")
        return [builder.create("control.while", [total], {}, [scalar], [test, region([scalar], turn)]).results[0]]

    assert check(program, f32(7)).report()["host_calls"] == {}


@pytest.mark.filterwarnings("ignore:control.while runs on the cpu")
def test_a_loop_around_a_host_call_is_driven_from_the_host():
    def program(builder, x):
        body = region([x.type], lambda v: [prim.add(on_host(v, 0), 1.0)])
        test = region([x.type], lambda v: [prim.lt(prim.reduce_max(v, axes=(0,)), 5.0)], "control.condition")
        return [builder.create("control.while", [x], {}, [x.type], [test, body]).results[0]]

    assert check(program, f32(7)).report()["host_calls"] == {"control.while": 1}


def test_what_only_a_region_reads_is_computed_before_it():
    def program(builder, x, flag):
        doubled = prim.mul(x, 2.0)
        ways = [region([], lambda: [prim.add(doubled, 1.0)]), region([], lambda: [prim.neg(doubled)])]
        return [builder.create("control.if", [flag], {}, [x.type], ways).results[0]]

    for flag in (True, False):
        assert check(program, f32(33), np.array(flag)).report()["host_calls"] == {}


# -- signals


class Stopped(Exception):
    """What the handler of a signal raises."""


def _stop(*_):
    raise Stopped


@pytest.fixture
def alarm():
    """A signal a moment after ``alarm()``, whose handler raises."""
    before = signal.signal(signal.SIGALRM, _stop)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.2)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def _until(builder, x, limit):
    """``while x[0] < limit: x = x + 1``, which never ends where the numbers are so large that 1 is nothing."""

    def test(x):
        first = prim.reshape(prim.slice(x, start=(0,), limit=(1,), stride=(1,)), shape=())
        return [prim.lt(first, limit)]

    ways = [region([x.type], test, "control.condition"), region([x.type], lambda x: [prim.add(x, 1.0)])]
    return builder.create("control.while", [x], {}, [x.type], ways).results


def _counting(builder, x, limit):
    """``for i in range(limit): x = x + 1``."""
    whole = prim.cast(limit, dtype="int64")
    index = TensorType((), "int64")
    step = region([index, x.type], lambda i, x: [prim.add(x, 1.0)])
    operands = [prim.constant(0, "int64"), whole, prim.constant(1, "int64"), x]
    return builder.create("control.for", operands, {}, [x.type], [step]).results


def _within(builder, x, limit):
    """The first loop in a second one that ends: what is stopped stops all around it."""

    def step(i, x):
        return _until(Builder.at_end(context().builder.block), x, limit)

    operands = [prim.constant(0, "int64"), prim.constant(3, "int64"), prim.constant(1, "int64"), x]
    index = TensorType((), "int64")
    return builder.create("control.for", operands, {}, [x.type], [region([index, x.type], step)]).results


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="POSIX signals")
@pytest.mark.parametrize("size", [1, 300_000], ids=["one thread", "parallel"])
@pytest.mark.parametrize("loop", [_until, _counting, _within])
def test_a_signal_ends_a_loop(loop, size, alarm):
    """What its handler raises is raised by the call; the program works afterwards."""
    program = Program("endless")
    x, limit = program.add_input(TensorType((size,), F)), program.add_input(TensorType((), F))
    builder = Builder.at_end(program.block)
    with emit_at(builder):
        program.set_outputs(loop(builder, x, limit))
    run = CinnCompiler().compile(program, device("cpu")).run
    zeros, few, huge = (
        StridedArray.from_array(a) for a in (np.zeros(size, np.float32), np.float32(3), np.float32(9e18))
    )
    far = huge if loop is _counting else StridedArray.from_array(np.float32(1 << 25))
    assert run([zeros, few])[0].array()[0] == 3
    for _ in range(2):
        alarm()
        with pytest.raises(Stopped):
            run([zeros, far])
        assert run([zeros, few])[0].array()[-1] == 3


def test_effects_within_nests_are_looked_for_once(monkeypatch):
    """Whether an operation has an effect is asked of each that it contains, once."""
    asked = []
    monkeypatch.setattr(effects, "get_definition", lambda name: asked.append(name) or get_definition(name))
    depth = 40
    program = Program("nest")
    flag = program.add_input(TensorType((), "bool"))
    builder = Builder.at_end(program.block)

    def way(level):
        if level == depth:
            return [prim.constant(1.0, F)]
        inner = Builder.at_end(context().builder.block)
        ways = [region([], lambda: way(level + 1)), region([], lambda: [prim.constant(0.0, F)])]
        return list(inner.create("control.if", [flag], {}, [TensorType((), F)], ways).results)

    with emit_at(builder):
        program.set_outputs(way(0))
    operations = sum(1 for _ in program.walk())
    assert effects.is_pure(program.block.first)
    assert len(asked) <= operations
