"""One program over any communicator; run under mpiexec it saves what its rank computed. Values are exact
integers.
"""

import sys

import numpy as np


def program(comm):
    """Return the results of every operation of the contract, by name."""
    n, results = comm.size, {}
    for dtype in ("float32", "int64", "float16", "complex64", "bool"):
        data = (np.arange(4 * n) % 5 + comm.rank).astype(dtype)
        for op in ("sum", "prod") if dtype in ("complex64",) else ("sum", "prod", "max", "min"):
            results[f"all_reduce {dtype} {op}"] = received = np.empty_like(data)
            comm.all_reduce(data, received, op)
            results[f"reduce_scatter {dtype} {op}"] = received = np.empty(4, dtype)
            comm.reduce_scatter(data, received, op)
        results[f"all_gather {dtype}"] = received = np.empty((n, 4 * n), dtype)
        comm.all_gather(data, received)
        results[f"all_to_all {dtype}"] = received = np.empty_like(data)
        comm.all_to_all(data, received)
        comm.broadcast(data, n - 1)
        results[f"broadcast {dtype}"] = data
    average = np.full(3, float(comm.rank))
    comm.all_reduce(average, average, "avg")
    results["in place average"] = average
    results["ring"] = ring = np.empty(2)
    comm.send(np.array([comm.rank, 0.5]), (comm.rank + 1) % n, tag=7)
    comm.recv(ring, (comm.rank - 1) % n, tag=7)
    comm.barrier()
    group = comm.split(comm.rank % 2 if comm.rank < 2 else -1, -comm.rank)
    results["split"] = np.array([-1, -1] if group is None else [group.rank, group.size])
    return results


if __name__ == "__main__":
    from argosy_hwadapt.mpi import world

    communicator = world()
    np.savez(f"{sys.argv[1]}/{communicator.rank}.npz", **program(communicator))
    communicator.close()
