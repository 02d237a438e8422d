"""The run of the prover over everything: what it records, what it leaves out, and what is recorded."""

import prove_all
import pytest
from prove_all import Recorded, fingerprint, read, run, summary, work
from prover import MESHES, STEP_MESHES, Proven
from rich.console import Console

from argosy_phi_ops.declare.index import MODULES


@pytest.fixture
def options(tmp_path):
    """Options of a short run with a record of its own."""

    class Options:
        shard, meshes, names, limit, seed, record = "1/1", "2", "relu,zeros,add", 8, 0, tmp_path / "record.json"
        whole, steps = 0, False

    return Options


def test_what_is_recorded_is_not_proven_again(options):
    """A second run has nothing to do; one with more layouts has, where there are more."""
    assert run(options, Console(quiet=True)) == 0
    record = read(options.record)
    assert record.keys() == {"relu", "add"}  # zeros takes no tensor
    assert record["relu"]["program"] == fingerprint("relu")
    relu = Recorded(*record["relu"]["2"])
    assert relu.cases == relu.possible > relu.uneven > 0 < relu.partial
    assert work(options) == []
    options.limit = 9
    assert [task.name for task in work(options)] == ["add"]


def test_few_layouts_are_run_whole_and_the_cheapest_first(options):
    """Operators of more layouts are left to chance; what was run whole is so for any limit."""
    options.whole = 10
    assert [(task.name, task.limit) for task in work(options)] == [("relu", None), ("add", 8)]
    options.whole, options.names = 100, "add,relu"
    assert [(task.name, task.limit) for task in work(options)] == [("relu", None), ("add", None)]
    assert run(options, Console(quiet=True)) == 0
    assert all(entry["2"][0] == entry["2"][1] for entry in read(options.record).values())
    options.whole, options.limit = 0, 10**6
    assert work(options) == []


def test_steps_are_recorded_beside_layouts(options):
    """Of all operators, on each mesh; a second run has nothing to do."""
    run(options, Console(quiet=True))
    options.steps = True
    assert {task.name for task in work(options)} == read(options.record).keys() == {"add", "relu"}
    assert run(options, Console(quiet=True)) == 0
    assert all(entry["steps 2"] > 0 < entry["2"][0] for entry in read(options.record).values())
    assert work(options) == []


def test_an_operator_that_computes_something_else_is_proven_again(options, monkeypatch):
    """By the fingerprint of its programs."""
    run(options, Console(quiet=True))
    monkeypatch.setattr(prove_all, "fingerprint", lambda name: "another")
    assert {task.name for task in work(options)} == {"relu", "add"}


def test_a_failure_is_counted_and_not_recorded(options, monkeypatch):
    """The others are proven nevertheless."""

    def prove(name, *_):
        if name == "relu":
            raise AssertionError("wrong sum")
        return Proven(1, 1, 0, 0)

    monkeypatch.setattr(prove_all, "prove_whole", prove)
    assert run(options, Console(quiet=True)) == 1
    assert read(options.record).keys() == {"add"}


def test_shards_share_the_work(options):
    """Two shards do together what one does, and nothing twice."""
    options.shard = "1/2"
    first = [task.name for task in work(options)]
    options.shard = "2/2"
    assert sorted(first + [task.name for task in work(options)]) == ["add", "relu"]


def test_the_record_is_of_operators_there_are():
    """Each was proven on every mesh; nothing is recorded of others."""
    record = read(prove_all.RECORD)
    assert len(record) > 350
    assert record.keys() <= MODULES.keys()
    assert all(Recorded(*entry[mesh]).cases > 0 for entry in record.values() for mesh in MESHES)
    assert len(list(summary(record))) == len(STEP_MESHES)
