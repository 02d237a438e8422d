"""Planners are found by name, and what is missing or doubled is said."""

from importlib import metadata

import pytest

from argosy_autoparallel import ParallelStrategy, ProcessMesh, Shard, get_planner, planner_names


class EverythingOnTheFirstDimension:
    """A planner as a third party would write it."""

    name = "first-dimension"

    def plan(self, program, cluster, fixed=None):
        mesh = ProcessMesh(list(range(cluster.nodes * cluster.devices_per_node)))
        return ParallelStrategy(mesh, {"x": (Shard(0),), **(fixed or {})})


def install(monkeypatch, count):
    points = [
        metadata.EntryPoint("first-dimension", f"{__name__}:EverythingOnTheFirstDimension", "argosy.planners")
    ] * count
    monkeypatch.setattr("argosy_hwadapt.plugins._entry_points", lambda group: {"first-dimension": points})
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda self: EverythingOnTheFirstDimension)


def test_an_installed_planner_is_found_and_plans(monkeypatch):
    """A planner of another distribution is made by name and answers with a plan."""
    from argosy_autoparallel import Cluster

    install(monkeypatch, 1)
    assert planner_names() == ["first-dimension"]
    plan = get_planner("first-dimension").plan(None, Cluster(1, 2, 1 << 30, 1e12, 1e10, 1e9))
    assert plan.mesh.process_ids == [0, 1]
    assert plan.placements == {"x": (Shard(0),)}


def test_unknown_and_doubled_names_are_errors(monkeypatch):
    """The error lists the planners installed, or both owners."""
    install(monkeypatch, 1)
    with pytest.raises(LookupError, match=r"no planner is named 'best'; installed: first-dimension"):
        get_planner("best")
    install(monkeypatch, 2)
    with pytest.raises(LookupError, match="claimed by"):
        get_planner("first-dimension")
