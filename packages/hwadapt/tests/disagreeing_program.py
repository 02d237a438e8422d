"""Three ranks that do not do the same, one way for each name; run under mpiexec each rank prints what it got.

A rank that got an error exits with 3, which no MPI does by itself.
"""

import os
import signal
import sys
import time

import numpy as np

from argosy_hwadapt.errors import CommunicatorError
from argosy_hwadapt.mpi import world

DATA = np.ones(4, np.float32)


def kinds(comm):
    if comm.rank == 0:
        comm.all_reduce(DATA, DATA)
    else:
        comm.barrier()


def sizes(comm):
    comm.all_reduce(DATA[: 2 + comm.rank], DATA[: 2 + comm.rank])


def group_and_all(comm):
    group = comm.split(0 if comm.rank < 2 else 1, comm.rank)
    if comm.rank == 0:
        group.all_reduce(DATA, DATA)
    else:
        comm.barrier()


def in_a_group(comm):
    group = comm.split(0 if comm.rank < 2 else 1, -comm.rank)
    if comm.rank == 0:
        group.broadcast(DATA, 0)
    else:
        group.broadcast(DATA, group.size - 1)


def message_and_collective(comm):
    if comm.rank == 0:
        comm.recv(DATA, 1)
    else:
        comm.barrier()


def circle(comm):
    comm.recv(DATA, (comm.rank + 1) % comm.size)


def early_end(comm):
    if comm.rank == 0:
        comm.all_gather(DATA, np.empty(12, np.float32))


def early_end_before_a_message(comm):
    if comm.rank == 0:
        comm.recv(DATA, 2)


def unlike_messages(comm):
    if comm.rank == 0:
        comm.send(np.ones(3), 1)
    elif comm.rank == 1:
        comm.recv(DATA, 0)


def exception(comm):
    if comm.rank == 1:
        raise ValueError("boom")
    comm.barrier()


def killed(comm):
    sys.stdout.write(f"process {os.getpid()}\n")
    sys.stdout.flush()
    comm.barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.barrier()


def killed_in_a_reduction(comm):
    data = np.ones(1 << 18, np.float32)
    comm.all_reduce(data, data, "max")
    with open("/proc/self/maps") as maps:
        names = {line.split()[5] for line in maps if "argosy-ranks-" in line and "(deleted)" not in line}
    sys.stdout.write(f"process {os.getpid()}\nshared memory with a name: {names or 'none'}\n")
    sys.stdout.flush()
    if comm.rank == 1:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
    while True:
        comm.all_reduce(data, data, "max")


def slow(comm):
    """Nothing is wrong here: one rank computes for long, and messages are larger than MPI's buffers."""
    comm.send(np.arange(10**6), (comm.rank + 1) % comm.size)
    if comm.rank == 0:
        time.sleep(1.5)
    received = np.empty(10**6, np.int64)
    comm.recv(received, (comm.rank - 1) % comm.size)
    comm.send(received, (comm.rank + 1) % comm.size, tag=3)  # delivered although the sender ends
    comm.recv(received, (comm.rank - 1) % comm.size, tag=3)
    sys.stdout.write(f"{received[-1]}\n")


if __name__ == "__main__":
    communicator = world()
    try:
        globals()[sys.argv[1]](communicator)
    except CommunicatorError as error:
        sys.stdout.write(f"[{communicator.rank}] {type(error).__name__}: {error}\n")
        sys.exit(3)
