"""The order of the whole suite, what of it runs once, and what several of its files need."""

import gc
import os
import subprocess
import sys
from collections import defaultdict
from itertools import islice

import pytest
from once import made_once
from workspace import ROOT, TESTED_ALONE, runs_alike_alone

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""Numpy's library has a thread a core, which wait for work by looking for it: beside another worker and threads of ours
that is most of the time of tests that multiply matrices."""


@pytest.fixture
def hot_at_once(monkeypatch):
    """Eager calls that are seen a few times are compiled."""
    from argosy_phi_ops.eager import table, tiering

    monkeypatch.setattr(tiering, "BUDGET", 1)
    table.forget()
    yield
    table.forget()


@pytest.fixture(scope="module")
def eager_by_numpy():
    """What is not exact is left to numpy: samples that are applied once are not worth compiling. How compiled code
    comes in is tested elsewhere."""
    from argosy_phi_ops.eager import tiering

    before = tiering.is_deterministic()
    tiering.set_deterministic(True)
    yield
    tiering.set_deterministic(before)


@pytest.fixture
def quick_code(monkeypatch):
    """LLVM's code generator optimises nothing, unless a level is set: for tests that compile much and run it a few
    times."""
    if "ARGOSY_CODEGEN_LEVEL" not in os.environ:
        monkeypatch.setenv("ARGOSY_CODEGEN_LEVEL", "0")


@pytest.fixture(scope="session")
def dist(tmp_path_factory):
    """The folder with the wheels of all packages, as ``hatch run build`` makes it."""

    def build(folder):
        command = [sys.executable, ROOT / "tools" / "wheels.py", "--out", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "dist", build)


def pytest_configure(config):
    """What an earlier run compiled is not compiled again, where packages are alone and in processes that tests start,
    too: the keys of its entries hold the sources. Nor do tests depend on what the user's folder has."""
    if config.pluginmanager.hasplugin("cacheprovider"):
        os.environ.setdefault("ARGOSY_CACHE_DIR", str(config.cache.mkdir("argosy")))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Tens of thousands of tests are millions of objects that stay: the collector looks at them no more. Each of its
    full rounds would take more than a second of those tests that ask for one. It comes by itself less often, too."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """What a file of tests leaves (modules that it imported, programs that caches keep) stays, too."""
    done = yield
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()
    return done


@pytest.hookimpl(trylast=True)  # after -k and -m have chosen
def pytest_collection_modifyitems(config, items):
    """The longest tests come first, some to each worker: at the end they would keep one while the other has nothing.

    Where a package is tested installed alone, its tests are not repeated beside its siblings where that runs the same
    code (see ``runs_alike_alone``). ``test_install_alone`` demands that each test left out here passes there.
    """
    alone = [item for item in items if "test_install_alone" in item.nodeid]
    packages = {item.callspec.params["package"] for item in alone}
    left_out = config.stash[TESTED_ALONE] = defaultdict(set)
    rest = []
    for item in items:
        folder, package, *_ = item.path.relative_to(ROOT).parts
        if folder == "packages" and package in packages and runs_alike_alone(package, item):
            left_out[package].add(item.nodeid.removeprefix(f"packages/{package}/"))
        elif item not in alone:
            rest.append(item)
    items[:] = _begin_with(alone, rest, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _begin_with(long: list[pytest.Item], rest: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """All tests in an order in which the first ones of each worker, who have equal shares of the list, are long."""
    found: list[pytest.Item] = []
    remaining, total = iter(rest), len(long) + len(rest)
    for i in range(workers):
        share, first = (total - len(found)) // (workers - i), long[i::workers]
        found += [*first, *islice(remaining, max(0, share - len(first)))]
    return [*found, *remaining]


def pytest_terminal_summary(terminalreporter):
    """How many tests ran where packages are installed alone, which the count of this session leaves out."""
    passed = [report.user_properties for report in terminalreporter.stats.get("passed", ())]
    counts = [count for properties in passed for name, count in properties if name == "passed alone"]
    if counts:
        terminalreporter.write_line(
            f"{sum(counts)} tests of {len(counts)} packages passed where each is installed alone"
        )
