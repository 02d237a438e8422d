"""``load_state_dict``: a checkpoint's values into tensors of any layout, reading only what each rank holds."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.distributed.checkpoint.background import finish_writing
from argosy.distributed.checkpoint.generators import find_states
from argosy.distributed.checkpoint.metadata import Box, Entry, Metadata, ids_in, metadata_file, parse
from argosy.distributed.checkpoint.nesting import FlatState, flatten_state, is_array, nest_state
from argosy.distributed.checkpoint.parts import Array, dtype_of, overwrite, parts_of, shape_of
from argosy.distributed.checkpoint.reading import Reader
from argosy.distributed.collective import member_group
from argosy.distributed.group import Group
from argosy.distributed.objects import gather_bytes
from argosy.optimizer.optimizer import Optimizer
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.safetensors import CheckpointError
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor
from argosy_tensorcore.wait_notice import announce_wait

__all__ = ["load_merged_state_dict", "load_state_dict"]


def load_state_dict(
    state_dict: dict[str, Any],
    path: str | os.PathLike[str],
    process_group: Group | None = None,
    coordinator_rank: int = 0,
    unique_id: int | None = None,
    offload: bool = False,
    mw_name_compatibility: bool = True,
    aoa_config: object = None,
    safetensors: bool = False,
    worker_groups: object = None,
    comm_method: str = "broadcast",
) -> None:
    """Fill ``state_dict`` in place with what :func:`save_state_dict` wrote, whatever the meshes and placements then
    were; every rank of the group calls, and sees the folder.

    state_dict: says what is wanted and where, tensors are overwritten and plain values replaced; a layer or an
    optimizer stands for its state (an optimizer's accumulators are made first), and with an optimizer the rank's random
    generator goes on where it was. Floating values are cast to the tensor's dtype. unique_id: the checkpoint's number,
    by default the largest that the coordinator sees. Ways to communicate are accepted for compatibility: ranks read
    their parts from the files themselves.

    Nothing is changed before names, shapes and files were checked. Raises FileNotFoundError without a checkpoint or a
    file of it, CheckpointError (a ValueError) for files that are damaged or of another save, ValueError naming tensors
    that the checkpoint lacks or has otherwise, NotImplementedError for ``aoa_config``.
    """
    if aoa_config is not None:
        raise NotImplementedError("load_state_dict(aoa_config) is not implemented: rename the keys of the dictionary")
    finish_writing()
    group = member_group(process_group, "load_state_dict")
    if group is None:
        return
    folder, flat = os.fspath(path), flatten_state(state_dict, "load_state_dict")
    number = _agreed_id(group, folder, group.peer(coordinator_rank, "load_state_dict"), unique_id)
    metadata, where = _metadata(folder, number)
    _check(flat, metadata, where)
    generators = find_states(flat, metadata, where)
    arrays = {key: x for key, x in flat.leaves.items() if is_array(x)}
    with announce_wait(f"loading {folder}"), Reader(folder, metadata) as reader:
        plan = {key: [(part, reader.plan(key, part.box)) for part in parts_of(x)] for key, x in arrays.items()}
        for key, parts in plan.items():
            found = [(slices, reader.read(key, box, steps)) for (box, slices), steps in parts]
            if found:
                overwrite(arrays[key], _assemble(found))
    _put_values(flat, metadata)
    for generator, state in generators:
        generator.set_state(state)


def load_merged_state_dict(
    path: str | os.PathLike[str],
    prefix: str | None = None,
    unique_id: int | None = None,
    offload: bool = False,
    aoa_config: object = None,
    safetensors: bool = False,
) -> dict[str, Any]:
    """The whole of a checkpoint as nested dictionaries of ordinary tensors and plain values, in this process alone.

    prefix: only what is below this name (``"model"``), without it. Raises as :func:`load_state_dict` does.
    """
    if aoa_config is not None:
        raise NotImplementedError("load_merged_state_dict(aoa_config) is not implemented: rename the result's keys")
    finish_writing()
    folder = os.fspath(path)
    metadata, where = _metadata(folder, _newest(folder) if unique_id is None else unique_id)
    keys = [key for key in (*metadata.tensors, *metadata.values) if _is_below(key, prefix)]
    if prefix and not keys:
        raise ValueError(f"{where} has nothing below {prefix!r}; it has {_some(metadata.paths)}")
    with announce_wait(f"loading {folder}"), Reader(folder, metadata) as reader:
        leaves = {key: _read_whole(reader, key) if key in metadata.tensors else metadata.values[key] for key in keys}
    made = nest_state(leaves, metadata.paths)
    for folder_name in prefix.split(".") if prefix else ():
        made = made[folder_name]
    return made


def _assemble(parts: Sequence[tuple[tuple[slice, ...], Array]]) -> Array:
    """The array that consists of parts."""
    if len(parts) == 1:
        return parts[0][1]
    shape = tuple([max([slices[axis].stop for slices, _ in parts]) for axis in range(parts[0][1].ndim)])
    made: Array = np.empty(shape, parts[0][1].dtype)
    for slices, values in parts:
        made[slices] = values
    return made


def _is_below(key: str, prefix: str | None) -> bool:
    return not prefix or key.startswith(f"{prefix}.")


def _read_whole(reader: Reader, key: str) -> Tensor:
    entry = reader.metadata.tensors[key]
    box = Box((0,) * len(entry.shape), entry.shape)
    values = reader.read(key, box, reader.plan(key, box))
    return Tensor._wrap(StridedArray.from_array(values))


# ---- which checkpoint


def _newest(folder: str) -> int:
    found = ids_in(folder)
    if not found:
        raise FileNotFoundError(f"{folder} has no checkpoint: no file <id>.metadata.json")
    return found[-1]


def _agreed_id(group: Group, folder: str, root: int, unique_id: int | None) -> int:
    """The number that all ranks read: the coordinator's, and its error where it has none."""
    found: Any = unique_id
    if group.rank == root and unique_id is None:
        try:
            found = _newest(folder)
        except FileNotFoundError as error:
            found = str(error)
    told = [json.loads(data) for data in gather_bytes(group, json.dumps([unique_id, found]).encode())]
    if any(given != unique_id for given, _ in told):
        raise ValueError(f"load_state_dict: ranks give different unique_id: {[given for given, _ in told]}")
    chosen = told[root][1]
    if isinstance(chosen, str):
        raise FileNotFoundError(chosen)
    return int(chosen)


def _metadata(folder: str, unique_id: int) -> tuple[Metadata, str]:
    path = os.path.join(folder, metadata_file(unique_id))
    try:
        with open(path, encoding="utf-8") as file:
            return parse(file.read(), path), path
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no checkpoint {unique_id} in {folder}; there are {ids_in(folder)}") from None
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is not text: {error}") from error


# ---- what fits


def _check(flat: FlatState, metadata: Metadata, where: str) -> None:
    known = {*metadata.tensors, *metadata.values}
    missing = [key for key in flat.leaves if key not in known]
    if missing:
        raise ValueError(f"{where} lacks {len(missing)} of what is wanted: {_some(missing)}; it has {_some(known)}")
    for bare in flat.bare:
        inside = [key for key in known if _is_below(key, bare)]
        if inside:
            raise ValueError(
                f"load_state_dict: {bare!r} is empty, but the checkpoint has {len(inside)} entries there, such as "
                f"{_some(inside)}. An optimizer has no states before its first step: give the optimizer itself"
            )
    wrong = [text for key, x in flat.leaves.items() if (text := _misfit(key, x, metadata))]
    if wrong:
        raise ValueError(f"{where} does not fit: {'; '.join(wrong[:5])}")


def _misfit(key: str, x: Any, metadata: Metadata) -> str:
    entry = metadata.tensors.get(key)
    if is_array(x) != (entry is not None):
        return f"{key} is {'a tensor' if entry else 'a plain value'} in the checkpoint, but not in the dictionary"
    if entry is None:
        return ""
    if shape_of(x) != entry.shape:
        return f"{key} has shape {list(entry.shape)} in the checkpoint, but {list(shape_of(x))} is wanted"
    if not _casts(entry, dtype_of(x)):
        return f"{key} is {entry.dtype} in the checkpoint, but {dtype_of(x)} is wanted"
    return ""


def _casts(entry: Entry, wanted: str) -> bool:
    return entry.dtype == wanted or as_dtype(entry.dtype).kind == as_dtype(wanted).kind == "f"


def _some(keys: Any) -> str:
    shown = sorted(keys)
    return ", ".join(map(repr, shown[:3])) + (", ..." if len(shown) > 3 else "")


# ---- filling in


def _put_values(flat: FlatState, metadata: Metadata) -> None:
    for key, x in flat.leaves.items():
        if not is_array(x):
            value = metadata.values[key]
            flat.homes[key][flat.paths[key][-1]] = tuple(value) if isinstance(x, tuple) else value
    for owner, states in flat.owners:
        if isinstance(owner, Optimizer):
            owner.set_state_dict(states)  # its tensors are filled already; a schedule is not
