"""The recorded bytes of distributed steps are what is counted now: whoever changes them runs the benchmark again."""

import importlib.util
import json
import sys

import pytest
from workspace import ROOT

from argosy.distributed.debug import run_ranks

BENCHMARKS = ROOT / "benchmarks"


@pytest.mark.parametrize("layout", ["data", "tensor"])
def test_recorded_bytes_are_counted(layout, monkeypatch):
    """Bytes and collectives of a step, of the two layouts that differ most."""
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    spec = importlib.util.spec_from_file_location("distributed_bytes", BENCHMARKS / "distributed_bytes.py")
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    recorded = json.loads((BENCHMARKS / "results" / "distributed_bytes.json").read_text())
    (row,) = [row for row in recorded["figures"] if row["layout"] == layout]
    counted, calls, parameters = run_ranks(lambda: benchmark.step(layout, row["ranks"]), row["ranks"])[0]
    assert counted == row["bytes"]
    assert calls == row["calls"]
    assert benchmark.formula(layout, row["ranks"], parameters) == row["formula"]
