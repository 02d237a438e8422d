"""The conftest of a package's tests where it is installed alone; see ``test_install_alone.py``."""

import gc
import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

HERE = Path(__file__).parent  # some tests change the folder
PLUGGED = json.loads((HERE / "plugged.json").read_text(encoding="utf-8"))


@pytest.hookimpl(wrapper=True)
def pytest_collection():  # what is collected stays: the collector need not look at it again and again
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000)  # as in tests/conftest.py
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):  # nor at what a file leaves
    done = yield
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()
    return done


def pytest_runtest_logreport(report):
    if report.skipped or (report.when == "call" and report.passed):
        with (HERE / "outcomes").open("a", encoding="utf-8") as file:
            print(report.nodeid, repr(report.longrepr[2]) if report.skipped else "", sep="\t", file=file)


@pytest.fixture(autouse=True)
def alike(request, monkeypatch):
    """Tests that are not repeated beside siblings come nowhere where those plug in: they look up nothing that a sibling
    registers, a compiler of operators that are applied often among it, and record no gradients where nothing can."""
    if request.node.nodeid.startswith(tuple(PLUGGED["tests"])):
        return
    looked_up = metadata.entry_points
    monkeypatch.setattr(metadata, "entry_points", lambda **wanted: _found(looked_up(**wanted), wanted))
    if "argosy_phi_ops" in sys.modules:
        from argosy_phi_ops import compiler, extension
        from argosy_phi_ops.eager import table

        table.forget()
        compiler._entry_point_names.cache_clear()
        if extension.recorder_source() is None:
            monkeypatch.setattr(extension, "recorder_source", _asked)


def _asked():
    raise AssertionError("gradients are asked for: beside siblings they are recorded (tests/workspace.py)")


def _found(points, wanted):
    same = "name" in wanted and (bool(points) or wanted["name"] not in PLUGGED["registered"])
    assert same, f"beside siblings {wanted} finds something else (tests/workspace.py)"
    return points
