"""``report_collectives``: what a compiled step communicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argosy.distributed.dist_model import DistModel
from argosy.jit.static_function import StaticFunction
from argosy_autoparallel.counting import Counts
from argosy_pir.program import Program

if TYPE_CHECKING:
    from argosy_autoparallel import CollectiveReport

__all__ = ["report_collectives"]


def report_collectives(step: Any) -> CollectiveReport:
    """Every collective of the newest program of ``step`` on this rank, or of a block in which they were counted: kind,
    ranks, type, bytes sent, the line that it comes from, and whether somebody asked for it or an operation needed it.

    step: what ``jit.to_static`` or ``distributed.to_static`` made, after its first call; a rank's program; or what
        ``distributed.count_collectives`` gave, of eager execution as well.
    The report prints as text; ``report.collectives`` and ``report.implicit`` are its entries. Raises RuntimeError where
    nothing has been compiled yet, TypeError for anything else.
    """
    from argosy_autoparallel import report_collectives as report

    if isinstance(step, DistModel):
        step = step.dist_main_program()
    elif isinstance(step, StaticFunction):
        step = step.main_program
    if not isinstance(step, Program | Counts):
        raise TypeError(
            f"report_collectives: expected a captured function, a DistModel or counts, got {type(step).__name__}"
        )
    return report(step)
