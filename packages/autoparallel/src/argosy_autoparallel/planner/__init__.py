"""Choosing placements for a whole program: the protocol, and the planners found by name."""

from argosy_autoparallel.planner.protocol import Cluster, ParallelStrategy, Planner, PlanningError
from argosy_autoparallel.planner.registry import get_planner, planner_names

__all__ = ["Cluster", "ParallelStrategy", "Planner", "PlanningError", "get_planner", "planner_names"]
