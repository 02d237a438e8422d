"""Measured figures and the reports they are told in."""

import numpy as np
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
