"""The conftest of a package's tests where it is installed alone; see ``test_install_alone.py``."""

import gc
import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

HERE = Path(__file__).parent  # some tests change the folder
ALIKE = json.loads((HERE / "alike.json").read_text(encoding="utf-8"))


@pytest.hookimpl(wrapper=True)
def pytest_collection():  # what is collected stays: the collector need not look at it again and again
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_runtest_logreport(report):
    if report.skipped or (report.when == "call" and report.passed):
        with (HERE / "outcomes").open("a", encoding="utf-8") as file:
            print(report.nodeid, repr(report.longrepr[2]) if report.skipped else "", sep="\t", file=file)


@pytest.fixture(autouse=True)
def alike(request, monkeypatch):
    """Tests that are not repeated beside siblings come nowhere where those plug in: they apply no operator eagerly,
    and look up nothing that a sibling registers."""
    if not request.node.nodeid.startswith(tuple(ALIKE["tests"])):
        return
    looked_up = metadata.entry_points
    monkeypatch.setattr(metadata, "entry_points", lambda **wanted: _found(looked_up(**wanted), wanted))
    if "argosy_phi_ops" in sys.modules:
        from argosy_phi_ops import compiler
        from argosy_phi_ops.eager import table
        from argosy_phi_ops.eager.application import Application

        table.forget()
        compiler._entry_point_names.cache_clear()
        monkeypatch.setattr(Application, "__init__", _applied)


def _applied(*_):
    raise AssertionError("an operator is applied eagerly: this runs otherwise beside siblings (tests/workspace.py)")


def _found(points, wanted):
    same = "name" in wanted and (bool(points) or wanted["name"] not in ALIKE["registered"])
    assert same, f"beside siblings {wanted} finds something else (tests/workspace.py)"
    return points
