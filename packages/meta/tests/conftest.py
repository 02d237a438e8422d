"""What tests of the framework share."""

import gc
from weakref import WeakSet

import pytest

from argosy_cinn.tools import tracing
from argosy_phi_ops.context import AMBIENT
from argosy_phi_ops.eager import tiering


@pytest.fixture(autouse=True, scope="module")
def eager_by_numpy():
    """What is not exact is left to numpy: samples that are applied once are not worth compiling. How compiled code
    comes in is tested across the packages."""
    before = tiering.is_deterministic()
    tiering.set_deterministic(True)
    yield
    tiering.set_deterministic(before)


@pytest.fixture(autouse=True)
def plain_dispatch_afterwards():
    """Distributed tensors in reference cycles hold dispatch on its long way until they are collected; what keeps them
    for ever is a leak.
    """
    before = AMBIENT.word
    yield
    if AMBIENT.word:
        gc.collect()
        gc.freeze()  # what is left stays: the collection after the next test need not look at it
    assert AMBIENT.word <= before, "distributed tensors, or a context of gradients or precision, outlived the test"


@pytest.fixture
def verified_passes(monkeypatch):
    """Programs are verified after each pass that rewrites them, which no user's process does."""
    monkeypatch.setenv("ARGOSY_VERIFY", "1")


@pytest.fixture
def own_programs(monkeypatch):
    """A profiler makes the code of all programs again: here of the test's, not of those that hundreds of tests left."""
    monkeypatch.setattr(tracing, "_programs", WeakSet())


@pytest.fixture(scope="session")
def mpiexec():
    """The command that starts so many processes as ranks; tests that ask for it are skipped without MPI."""
    from argosy.distributed.launch.process_manager import NoMpi, command

    try:
        command(1)
    except NoMpi as error:
        pytest.skip(f"no MPI: {error}")
    return command
