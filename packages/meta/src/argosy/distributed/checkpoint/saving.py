"""``save_state_dict``: each rank writes its parts of a state, and one says where they are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from argosy.distributed.checkpoint.background import WriteTask, finish_writing, start_writing
from argosy.distributed.checkpoint.committing import Commit
from argosy.distributed.checkpoint.generators import generator_values
from argosy.distributed.checkpoint.metadata import Box, Entry, Metadata, Piece, ids_in, part_file
from argosy.distributed.checkpoint.nesting import FlatState, flatten_state, is_array
from argosy.distributed.checkpoint.parts import Array, dtype_of, parts_of, settle_sums, shape_of, values_of
from argosy.distributed.collective import member_group
from argosy.distributed.group import Group
from argosy.distributed.objects import gather_bytes
from argosy_autoparallel.dist_tensor import ShardedArray
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.wait_notice import announce_wait

__all__ = ["save_state_dict"]

Writers = dict[str, dict[Box, list[int]]]
Told = dict[str, Any]
"""What one rank tells the others of its state, as plain data."""


def save_state_dict(
    state_dict: dict[str, Any],
    path: str | os.PathLike[str],
    process_group: Group | None = None,
    coordinator_rank: int = 0,
    unique_id: int | None = None,
    async_save: bool = False,
    safetensors: bool = False,
    save_replicas: bool = False,
) -> WriteTask | None:
    """Write a state, distributed tensors included, to the folder ``path``; every rank of the group calls.

    state_dict: tensors by name, in nested dictionaries, beside plain values (which the coordinator writes); a layer or
    an optimizer stands for its state. unique_id: the checkpoint's number in the folder, which replaces what has it;
    by default one more than the largest. async_save: copy the values and write them while the program goes on; the
    result's ``wait()`` raises what went wrong, as the next save does. save_replicas: each rank writes all that it
    holds, instead of one rank each part. ``safetensors`` is accepted for compatibility: files always are.

    The states of the ranks' random generators are written with an optimizer that stands for its state, so that what
    resumes draws what would have come next; a generator (``paddle.seed`` returns it) stands for its state, too.

    A checkpoint appears, or replaces another, in one step, after the parts of all ranks: whenever ranks are killed,
    what was there before loads. In the background each rank waits until the folder has the parts of all.
    Raises TypeError and ValueError for what cannot be written and for ranks that differ, OSError from the disk.
    """
    finish_writing()
    group = member_group(process_group, "save_state_dict")
    if group is None:
        return None
    root = group.peer(coordinator_rank, "save_state_dict")
    flat, folder = flatten_state(state_dict, "save_state_dict"), os.fspath(path)
    leaves = {key: settle_sums(x) for key, x in flat.leaves.items()}
    os.makedirs(folder, exist_ok=True)
    told = _exchange(group, _announcement(leaves, flat, unique_id, folder))
    number, save = _agreed_id(told, root), told[root]["save"]
    writers = _writers(told, root, save_replicas)
    files = [part_file(rank, number, save) for rank in group.ranks]
    metadata = _metadata(told, writers, files, root)
    mine = {name: values for key in writers for name, values in _values(key, writers[key], group.rank, leaves.get(key))}
    commit = Commit(folder, number, metadata, group.ranks[group.rank], group.rank == root)
    if async_save:
        copies = {key: array.copy() for key, array in mine.items()}
        return start_writing(lambda: commit.finish_by_files(copies))
    with announce_wait(f"saving {folder}"):
        commit.write_parts(mine)
        group.communicator.barrier()
        if commit.leads:
            commit.switch()
        group.communicator.barrier()
    return None


# ---- what ranks tell each other


def _announcement(leaves: dict[str, Any], flat: FlatState, unique_id: int | None, folder: str) -> Told:
    arrays = {key: x for key, x in leaves.items() if is_array(x)}
    states, where = generator_values(flat)
    return {
        "id": unique_id,
        "next": max(ids_in(folder), default=-1) + 1,
        "save": os.urandom(8).hex(),
        "tensors": {
            key: [dtype_of(x), list(shape_of(x)), [box for box, _ in parts_of(x)], _is_ordinary(x)]
            for key, x in arrays.items()
        },
        "values": {key: x for key, x in leaves.items() if key not in arrays} | states,
        "paths": flat.paths | where,
    }


def _is_ordinary(x: Any) -> bool:
    return type(getattr(x, "payload", None)) is not ShardedArray


def _exchange(group: Group, told: Told) -> list[Told]:
    return [json.loads(data) for data in gather_bytes(group, json.dumps(told).encode())]


def _agreed_id(told: list[Told], root: int) -> int:
    given = {each["id"] for each in told}
    if len(given) != 1:
        raise ValueError(f"save_state_dict: ranks give different unique_id: {[each['id'] for each in told]}")
    chosen = told[root]["next"] if None in given else given.pop()
    if type(chosen) is not int or chosen < 0:
        raise ValueError(f"save_state_dict: unique_id is a number from 0, not {chosen!r}")
    return chosen


# ---- who writes what


def _writers(told: list[Told], root: int, replicas: bool) -> Writers:
    """The ranks that write each part: of those that hold it the one with least to write so far, or (``replicas``) all;
    of ordinary tensors the coordinator, where it has them.
    """
    load = [0] * len(told)
    chosen: Writers = {}
    for key, holders in _holders(told).items():
        for box, ranks in holders.items():
            dtype, _, _, ordinary = told[ranks[0]]["tensors"][key]
            first = root if ordinary and root in ranks else min(ranks, key=lambda r: (load[r], r))
            writing = [first, *[r for r in ranks if replicas and r != first]]
            for rank in writing:
                load[rank] += box.size * as_dtype(dtype).itemsize
            chosen.setdefault(key, {})[box] = writing
    return chosen


def _holders(told: list[Told]) -> Writers:
    """The ranks that hold each part of each tensor."""
    found: Writers = {}
    kinds: dict[str, tuple[int, list[Any]]] = {}
    for rank, each in enumerate(told):
        for key, (dtype, shape, boxes, _) in each["tensors"].items():
            first, kind = kinds.setdefault(key, (rank, [dtype, shape]))
            if kind != [dtype, shape]:
                kinds_differ = f"{kind[0]} {kind[1]} on rank {first}, but {dtype} {shape} on rank {rank}"
                raise ValueError(f"save_state_dict: {key!r} is {kinds_differ}")
            held = found.setdefault(key, {})
            for offset, size in boxes:
                held.setdefault(Box(tuple(offset), tuple(size)), []).append(rank)
    return found


def _values(key: str, writers: dict[Box, list[int]], rank: int, x: Any) -> Iterator[tuple[str, Array]]:
    """What a rank writes of a tensor, by the names in its file."""
    for box, slices in () if x is None else parts_of(x):
        if rank in writers[box]:
            yield _name(key, box, writers, rank), values_of(x)[slices]


def _name(key: str, box: Box, writers: dict[Box, list[int]], rank: int) -> str:
    """What a part is called in the file of a rank: as its tensor, where it is the only one."""
    alone = sum(rank in ranks for ranks in writers.values()) == 1
    return key if alone else f"{key}@{','.join(map(str, box.offset))}"


# ---- files


def _metadata(told: list[Told], writers: Writers, files: list[str], root: int) -> Metadata:
    inorder = [told[root], *[each for i, each in enumerate(told) if i != root]]
    tensors: dict[str, Entry] = {}
    values: dict[str, Any] = {}
    paths: dict[str, list[str]] = {}
    for each in inorder:
        for key, (dtype, shape, _, _) in each["tensors"].items():
            parts = writers.get(key, {})
            pieces = [Piece(files[r[0]], box, _name(key, box, parts, r[0])) for box, r in parts.items()]
            tensors.setdefault(key, Entry(dtype, tuple(shape), tuple(pieces)))
        values = {**each["values"], **values}
        paths = {**each["paths"], **paths}
    return Metadata(told[root]["save"], tensors, values, paths)
