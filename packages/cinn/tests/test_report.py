"""Measured figures and the reports they are told in."""

import io
import sys
from datetime import UTC, datetime

import numpy as np
import pytest
from programs import build
from test_programs import region
from test_threads import chain

from argosy_cinn import CinnCompiler
from argosy_cinn.runtime.cache import ObjectCache
from argosy_cinn.tools import limits as machine
from argosy_cinn.tools.limits import Limits, limits
from argosy_cinn.tools.measure import add_program, measure, time
from argosy_cinn.tools.report import Report, Table
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import context, emit_at
from argosy_pir import Builder, Program, SymExpr, TensorType
from argosy_tensorcore.storage import StridedArray


def test_every_kernel_has_a_time_and_states_stay():
    program, arguments = chain(2, (200, 32))
    executable = CinnCompiler().compile(program, device("cpu"))
    found = measure(executable, [StridedArray(a) for a in arguments], repeats=2)
    assert len(found.kernels) == executable.report()["kernel_calls"]
    assert all(t > 0 for t in found.kernels)
    report = Report("chain")
    add_program(report, executable, found)
    assert all(call.kernel in report["kernels"] for call in executable.manifest.calls)
    plain = [r.array() for r in executable.run([StridedArray(a) for a in arguments])]
    assert all(np.isfinite(r).all() for r in plain)


def test_a_kernel_that_is_called_often_is_one_line_and_each_step_another():
    program, arguments = chain(6, (64, 64))
    executable = CinnCompiler().compile(program, device("cpu"))
    manifest = executable.manifest
    assert manifest.kernel_calls > manifest.kernels, "no kernel is called twice"
    report = Report("chain")
    add_program(report, executable, measure(executable, [StridedArray(a) for a in arguments], repeats=2))
    names = [call.kernel for call in manifest.calls]
    rows = [line.split() for line in report["kernels"].splitlines() if line.split()[0] in names]
    assert {row[0]: int(row[1]) for row in rows} == {name: names.count(name) for name in names}
    steps = [line.split() for line in report["planned program"].splitlines()[2:]]
    assert [(int(row[0]), row[1]) for row in steps] == list(enumerate(names))


@pytest.mark.parametrize(("bounds", "steps"), [((2, 9, 3), 3), ((5, 0, -2), 3), ((0, 0, 1), 0)])
def test_a_loop_moves_and_computes_what_its_steps_do(bounds, steps):
    x = np.ones((40, 8), np.float32)

    def program(x):
        start, stop, step = (prim.constant(n, "int64") for n in bounds)
        body = region([start.type, x.type], lambda i, h: [prim.tanh(prim.mul(h, x))])
        builder = context().builder
        return builder.create("control.for", [start, stop, step, x], {}, [x.type], [body]).result

    executable = CinnCompiler().compile(build(program, [x]), device("cpu"))
    (call,) = executable.manifest.calls
    assert call.text == f"for of {steps} steps: regions of 1 kernels"
    assert (call.read, call.written) == (max(steps, 1) * 2 * x.nbytes, max(steps, 1) * x.nbytes)


def test_a_program_of_symbolic_sizes_is_told_at_those_of_a_call():
    n = SymExpr.symbol("n")
    program = Program("symbolic")
    x = program.add_input(TensorType((n, 16), "float32"))
    with emit_at(Builder.at_end(program.block)):
        program.set_outputs([prim.tanh(x)])
    arguments = [StridedArray(np.ones((5, 16), np.float32))]
    executable = CinnCompiler().compile(program, device("cpu")).for_sizes(arguments, [])
    report = Report("symbolic")
    add_program(report, executable, measure(executable, arguments, repeats=2))
    assert "320 B of outputs" in report["memory"]


def test_a_prompt_shows_the_beginning_and_says_what_is_left_out():
    report = Report("long")
    report.add("table", Table(["n"], [[str(i)] for i in range(10)], most=4))
    report.add("listing", "\n".join("x" * 500 for _ in range(30)))
    shown = str(report).splitlines()
    assert "... 6 more rows: save() them to a file" in shown
    assert "... 22 more lines: save() them to a file" in shown
    assert max(map(len, shown)) <= 160
    assert report["table"].splitlines()[-1] == "9"
    assert len(report["listing"]) == 30 * 501 - 1


def test_a_terminal_gets_tables_in_colours_and_plain_ones_without_rich(monkeypatch):
    pytest.importorskip("rich")
    report = Report("drawn [1]")
    report.add("kernels", Table(["kernel", "of limit"], [["a[0]", "80%"], ["b", "5%"]], judged="of limit"))
    assert "\033" not in repr(report)
    monkeypatch.setattr(sys, "stdout", Terminal())
    drawn = repr(report)
    assert "drawn [1]" in drawn
    assert "a[0]" in drawn
    assert "\033[32m" in drawn
    assert "\033[31m" in drawn
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert repr(report) == str(report)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_limits_of_the_machine_are_kept():
    found = limits()
    assert found == limits()
    assert found.bandwidth > 1e8
    assert found.rate > 1e8
    assert Limits(1e9, 1e10, 1).seconds(10**9, 10**9) == 1.0
    assert Limits(1e9, 1e10, 1).seconds(0, 10**10) == 1.0


def test_limits_that_a_kernel_beats_are_measured_again(monkeypatch, tmp_path):
    """The first measurement is of a busy machine; the second one is kept, the third one finds nothing better."""
    measurements = iter([Limits(1.0, 2.0, 1, "first"), Limits(1e30, 2e30, 1, "second"), Limits(1.0, 1.0, 1, "third")])
    cache = ObjectCache(tmp_path)
    monkeypatch.setattr(machine, "default_cache", lambda: cache)
    monkeypatch.setattr(machine, "measured_limits", lambda: next(measurements))
    x = np.ones((64, 64), np.float32)
    executable = CinnCompiler().compile(build(prim.exp, [x]), device("cpu"))
    report = Report("limits")
    add_program(report, executable, measure(executable, [StridedArray.from_array(x)], repeats=1))
    assert "measured second and 1 times before" in report["kernels"]
    assert limits() == Limits(1e30, 2e30, 1, "second", 2)
    add_program(Report("again"), executable, measure(executable, [StridedArray.from_array(x)], repeats=1))
    assert limits().times == 2  # nothing beats these
    assert limits(beaten=limits()) == Limits(1e30, 2e30, 1, "third", 3)


def test_limits_say_when_they_were_measured():
    before = datetime.now(UTC).replace(microsecond=0)
    assert before <= datetime.fromisoformat(machine.measured_limits().measured) <= datetime.now(UTC)


@pytest.mark.parametrize(("read", "written"), [(0, 1), (1, 0), (100, 50), (1 << 20, 1 << 20), (3 << 20, 1 << 20)])
def test_streams_of_any_size_are_measured(read, written, monkeypatch):
    monkeypatch.setattr(machine, "_SECONDS", 0.0)
    assert 0 < machine.stream_seconds(read, written) < float("inf")


def test_tables_align_and_escape():
    table = Table(["name", "n"], [["a<b", "5"], ["longer", "12"]])
    assert table.text() == ["name     n", "------  --", "a<b      5", "longer  12"]
    assert "a&lt;b" in table.html()


def test_durations_have_a_unit():
    assert [time(s) for s in (2.5e-9, 1.5e-6, 0.25, 3)] == ["2.5 ns", "1.5 us", "250 ms", "3 s"]
