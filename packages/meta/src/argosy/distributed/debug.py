"""All ranks in one process: distributed programs under a debugger, in a notebook, in a test.

Ranks are threads that exchange real data; ranks that call different collectives, leave early or all wait are named
at once instead of hanging.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from argosy.distributed.environment import join
from argosy_hwadapt import inproc
from argosy_hwadapt.communicator import Communicator
from argosy_phi_ops.context import Context, RankState, bind_context
from argosy_tensorcore import naming

__all__ = ["run_ranks"]

T = TypeVar("T")
_names = RankState("argosy.names", lambda: naming.process_names)


def run_ranks(fn: Callable[[], T], size: int, timeout: float = 60) -> list[T]:
    """Run ``fn()`` as ``size`` ranks, each with ambient state of its own; returns their results in rank order.

    Names of layers and parameters are counted from 0 on each rank, as in processes of their own.

    >>> import argosy.distributed as dist
    >>> run_ranks(lambda: dist.get_rank() * 10, 3)
    [0, 10, 20]

    An exception of a rank is raised here with a note that tells the rank, and ends the others. Raises RankFailure
    when ranks have not finished after ``timeout`` seconds, saying where they are.
    """

    def rank(communicator: Communicator) -> T:
        with bind_context(Context(communicator.rank, communicator.size)) as ambient:
            join(ambient, communicator)
            _names.value = naming.UniqueNames()
            return fn()

    naming.set_name_source(_current_names)
    return inproc.run_ranks(rank, size, timeout)


def _current_names() -> naming.UniqueNames:
    """The counts of the calling rank, or of the process outside of ranks."""
    return _names.value
