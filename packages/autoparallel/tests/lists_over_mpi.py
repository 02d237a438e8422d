"""Run under mpiexec: a pipeline's lists over MPI. ``exact`` compares gradients with those of one thread; ``raise`` ends
one rank in the middle, ``kill`` before the n-th instruction, after its process id was printed.
"""

import os
import signal
import sys

import numpy as np
from stages import functions, given, lists_of, values

from argosy_autoparallel.pipeline.schedules import zb_h1
from argosy_autoparallel.schedule import InstructionError, open_groups, run, run_in_step, verify
from argosy_hwadapt.communicators import open_world

MICROBATCHES = 4


def main(case, killed=0):
    """Walk this rank's list."""
    world = open_world("mpi")
    orders = zb_h1(world.size, MICROBATCHES)
    lists, types = lists_of(orders, world.size, MICROBATCHES), given(orders, MICROBATCHES)
    verify(lists)
    pieces, runs = functions(world.size), 0
    print(f"process {os.getpid()}", flush=True)  # noqa: T201

    def third(*arrays):
        nonlocal runs
        runs += 1
        if runs == 3:
            raise ArithmeticError("no gradient")
        return functions(world.size)["backward_input", 1](*arrays)

    def kill(place, _):
        if world.rank == 1 and place.number == killed - 1:
            os.kill(os.getpid(), signal.SIGKILL)

    if case == "raise" and world.rank == 1:
        pieces["backward_input", 1] = third
    try:
        observer = kill if case == "kill" else None
        left = run(lists[world.rank], pieces, values(types)[world.rank], open_groups(world, []), observer)
    except InstructionError as error:
        print(f"[{world.rank}] {error}", flush=True)  # noqa: T201
        raise
    expected = run_in_step(lists, [functions(world.size)] * world.size, values(types))[world.rank]
    for ref, array in expected.items():
        np.testing.assert_array_equal(left[ref], array)
    print("equal", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
