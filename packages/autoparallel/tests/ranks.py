"""Running a function as several ranks of one process, each with a context of its own."""

from argosy_autoparallel import set_world
from argosy_hwadapt.inproc import run_ranks
from argosy_phi_ops.context import Context, bind_context


def on_ranks(function, size, timeout=3600):
    """The results of ``function(rank)`` on ``size`` ranks, in order."""

    def main(communicator):
        with bind_context(Context(communicator.rank, communicator.size)):
            set_world(communicator)
            return function(communicator.rank)

    return run_ranks(main, size, timeout)
