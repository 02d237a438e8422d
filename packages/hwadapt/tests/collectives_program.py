"""One program over any communicator; run under mpiexec it saves what its rank computed. Values are exact
integers, or reduced in the order of ranks by every communicator.
"""

import sys

import numpy as np


def program(comm):
    """Return the results of every operation of the contract, by name."""
    n, results = comm.size, {}
    for dtype in ("float32", "int64", "float16", "complex64", "bool"):
        data = (np.arange(4 * n) % 3 + comm.rank % 2).astype(dtype)
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
    for dtype in ("float32", "float16", "int32", "bool"):  # large, and reductions whose bits depend on their order
        data = (np.random.default_rng(comm.rank).random(n * 20_001) * 3).astype(dtype)
        for op in ("sum", "prod", "max") + ("avg",) * dtype.startswith("float"):
            results[f"large all_reduce {dtype} {op}"] = received = data.copy()
            comm.all_reduce(received, received, op)
            results[f"large reduce_scatter {dtype} {op}"] = received = np.empty(20_001, dtype)
            comm.reduce_scatter(data, received, op)
        results[f"large all_gather {dtype}"] = received = np.empty((n, data.size), dtype)
        comm.all_gather(data, received)
    longer = np.arange(3 << 20, dtype=np.int32) * (comm.rank + 1)  # than all that is on its way at a time
    comm.all_reduce(longer, longer)
    results["longer"] = longer[::4099]
    average = np.full(3, float(comm.rank))
    comm.all_reduce(average, average, "avg")
    results["in place average"] = average
    results["ring"] = ring = np.empty(2)
    comm.send(np.array([comm.rank, 0.5]), (comm.rank + 1) % n, tag=7)
    comm.recv(ring, (comm.rank - 1) % n, tag=7)
    results["nothing"] = nothing = np.empty((0, 3), np.float32)
    comm.all_reduce(nothing, nothing)
    comm.reduce_scatter(nothing.astype(np.float16), nothing.astype(np.float16))
    comm.all_gather(nothing, nothing)
    comm.all_to_all(nothing, nothing.copy())
    comm.broadcast(nothing, 0)
    comm.send(nothing, comm.rank)
    comm.recv(nothing, comm.rank)
    comm.barrier()
    group = comm.split(comm.rank % 2 if comm.rank < 2 else -1, -comm.rank)
    results["split"] = np.array([-1, -1] if group is None else [group.rank, group.size])
    pair = comm.split(comm.rank // 2, -comm.rank)
    results["in the pair"] = within = np.full((5, 2), comm.rank + 1, np.int32)
    pair.all_reduce(within, within, "max")
    results["from the pair's last"] = last = np.full(2, comm.rank)
    pair.broadcast(last, pair.size - 1)
    return results


if __name__ == "__main__":
    from argosy_hwadapt.mpi import world

    communicator = world()
    np.savez(f"{sys.argv[1]}/{communicator.rank}.npz", **program(communicator))
    communicator.close()
