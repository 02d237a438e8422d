"""Folders of models as transformers writes them: ``config.json`` and safetensors, whole or in shards with an index."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from argosy_hwadapt.files import replace_folder, write_file
from argosy_tensorcore.safetensors import CheckpointError, SafetensorsFile, save_file

__all__ = ["ModelFiles", "write_folder"]

Array = np.ndarray[Any, Any]
_WHOLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_WRITTEN = re.compile(r"model(\.\d+)?-\d{5}-of-\d{5}\.safetensors|model\.safetensors(\.index\.json)?")
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
SHARD_BYTES = 5 << 30
"""Bytes of a shard, at most, unless one tensor alone is larger."""


class ModelFiles(Mapping[str, Array]):
    """The tensors of a folder by name, mapped into memory: pages are read when touched, and written to in private, so
    that training leaves the files as they are. Raises CheckpointError naming file and tensor."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.fspath(folder)
        self._open: dict[str, SafetensorsFile] = {}
        index = os.path.join(self.folder, _INDEX)
        if os.path.exists(index):
            self._shards = self._read_index(index)
        elif os.path.exists(os.path.join(self.folder, _WHOLE)):
            self._shards = dict.fromkeys(self._file(_WHOLE), _WHOLE)
        else:
            pickles = [name for name in os.listdir(self.folder) if name.startswith("pytorch_model")]
            hint = f"; {pickles[0]} may run code when it is read, so write the model as safetensors" if pickles else ""
            raise CheckpointError(f"{self.folder} has neither {_WHOLE} nor {_INDEX}{hint}")

    def __getitem__(self, name: str) -> Array:
        return self._file(self._shards[name])[name]

    def path_of(self, name: str) -> str:
        """The file that holds a tensor."""
        return os.path.join(self.folder, self._shards[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._shards)

    def __len__(self) -> int:
        return len(self._shards)

    def _file(self, shard: str) -> SafetensorsFile:
        if shard not in self._open:
            path = os.path.join(self.folder, shard)
            if not os.path.isfile(path):
                raise CheckpointError(f"{path} does not exist; {_INDEX} names it")
            self._open[shard] = SafetensorsFile(path, writable=True)
        return self._open[shard]

    def _read_index(self, path: str) -> dict[str, str]:
        """Which shard has which tensor: each one that is named is there, no shard holds others, and no others are."""
        try:
            with open(path, encoding="utf-8") as file:
                table = json.load(file)["weight_map"]
        except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path} is no index of shards: {error!r}") from None
        if not isinstance(table, dict) or not all(isinstance(shard, str) for shard in table.values()):
            raise CheckpointError(f"{path}: weight_map must map names of tensors to names of files")
        for shard in sorted(set(table.values())):
            if os.path.basename(shard) != shard or not shard.endswith(".safetensors"):
                raise CheckpointError(f"{path}: {shard!r} is no safetensors file of this folder")
            named, held = {name for name, of in table.items() if of == shard}, set(self._file(shard))
            if named != held:
                odd = sorted(named ^ held)[:3]
                raise CheckpointError(
                    f"{path}: {shard} holds {len(held)} tensors, {len(named)} are named; {odd} differ"
                )
        shards = sorted(name for name in os.listdir(self.folder) if _SHARD.fullmatch(name))
        if rest := [name for name in shards if name not in table.values()]:
            raise CheckpointError(f"{path} does not name the shard {rest[0]}, which lies beside it")
        return dict(table)


def write_folder(
    folder: str | os.PathLike[str],
    config: Mapping[str, Any],
    tensors: Mapping[str, Array],
    more: Mapping[str, bytes] | None = None,
) -> None:
    """Write ``config.json``, the tensors, in shards where they are large, and ``more`` files by name, in folders within
    it, too; others that the folder has stay.

    Whenever the writer is killed, the folder holds the old model or the new one: that is written into a folder of its
    own, which takes the place of the old one in one step (see `argosy_hwadapt.files.replace_folder`).
    """
    folder = os.fspath(folder)
    os.makedirs(os.path.dirname(os.path.abspath(folder)), exist_ok=True)
    with replace_folder(folder, lambda name: _WRITTEN.fullmatch(name) is not None) as fresh:
        for name, content in {"config.json": json.dumps(dict(config), indent=2).encode(), **(more or {})}.items():
            os.makedirs(os.path.dirname(os.path.join(fresh, name)), exist_ok=True)
            write_file(os.path.join(fresh, name), [content])
        shards = _shards_of(tensors)
        for shard, names in shards.items():
            save_file({name: tensors[name] for name in names}, os.path.join(fresh, shard), {"format": "pt"})
        if len(shards) > 1:
            table = {name: shard for shard, names in shards.items() for name in names}
            index = {"metadata": {"total_size": sum(a.nbytes for a in tensors.values())}, "weight_map": table}
            write_file(os.path.join(fresh, _INDEX), [json.dumps(index, indent=2).encode()])


def _shards_of(tensors: Mapping[str, Array]) -> dict[str, list[str]]:
    """The tensors of each file."""
    groups: list[list[str]] = [[]]
    size = 0
    for name, array in tensors.items():
        if groups[-1] and size + array.nbytes > SHARD_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(name)
        size += array.nbytes
    if len(groups) == 1:
        return {_WHOLE: groups[0]}
    return {f"model-{i + 1:05}-of-{len(groups):05}.safetensors": names for i, names in enumerate(groups)}
