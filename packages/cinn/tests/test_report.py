"""Measured figures and the reports they are told in."""

import io
import sys

import numpy as np
import pytest
from test_threads import chain

from argosy_cinn import CinnCompiler
from argosy_cinn.tools.limits import Limits, limits
from argosy_cinn.tools.measure import add_program, measure, time
from argosy_cinn.tools.report import Report, Table
from argosy_hwadapt import device
from argosy_tensorcore.storage import Strided


def test_every_kernel_has_a_time_and_states_stay():
    program, arguments = chain(2, (200, 32))
    executable = CinnCompiler().compile(program, device("cpu"))
    found = measure(executable, [Strided(a) for a in arguments], repeats=2)
    assert len(found.kernels) == executable.report()["kernel_calls"]
    assert all(t > 0 for t in found.kernels)
    report = Report("chain")
    add_program(report, executable, found)
    assert all(call.kernel in report["kernels"] for call in executable.manifest.calls)
    plain = [r.array() for r in executable.run([Strided(a) for a in arguments])]
    assert all(np.isfinite(r).all() for r in plain)


def test_a_kernel_that_is_called_often_is_one_line_and_each_step_another():
    program, arguments = chain(6, (64, 64))
    executable = CinnCompiler().compile(program, device("cpu"))
    manifest = executable.manifest
    assert manifest.kernel_calls > manifest.kernels, "no kernel is called twice"
    report = Report("chain")
    add_program(report, executable, measure(executable, [Strided(a) for a in arguments], repeats=2))
    names = [call.kernel for call in manifest.calls]
    rows = [line.split() for line in report["kernels"].splitlines() if line.split()[0] in names]
    assert {row[0]: int(row[1]) for row in rows} == {name: names.count(name) for name in names}
    steps = [line.split() for line in report["planned program"].splitlines()[2:]]
    assert [(int(row[0]), row[1]) for row in steps] == list(enumerate(names))


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


def test_tables_align_and_escape():
    table = Table(["name", "n"], [["a<b", "5"], ["longer", "12"]])
    assert table.text() == ["name     n", "------  --", "a<b      5", "longer  12"]
    assert "a&lt;b" in table.html()


def test_durations_have_a_unit():
    assert [time(s) for s in (2.5e-9, 1.5e-6, 0.25, 3)] == ["2.5 ns", "1.5 us", "250 ms", "3 s"]
