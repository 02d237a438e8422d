"""The end of a save: once every rank's parts are in the folder, one rename of the metadata makes them the checkpoint.

The parts of each save have names of their own, so that until then the checkpoint that a save replaces is whole.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from argosy.distributed.checkpoint.metadata import SAVE, Metadata, metadata_file, part_file, part_of
from argosy.distributed.checkpoint.parts import Array
from argosy.framework.serialization import replace_file
from argosy_tensorcore.safetensors import save_file

__all__ = ["Commit"]

_ABANDONED = 24 * 3600  # seconds after which parts that no metadata names are nobody's
_TOKEN = re.compile(rb'"save": "([0-9a-f]+)"')
_HEAD = 256  # bytes of the metadata in which the save's token stands
_LONGEST_WAIT = 0.1  # seconds between two looks into the folder


class Commit(NamedTuple):
    """One save as one rank sees it: the checkpoint's number in the folder, its metadata, and the rank's number within
    the group; ``leads`` is whether it writes the metadata.
    """

    folder: str
    unique_id: int
    metadata: Metadata
    rank: int
    leads: bool

    def write_parts(self, parts: dict[str, Array]) -> None:
        """Write this rank's file, where it has parts."""
        if parts:
            file = part_file(self.rank, self.unique_id, self.metadata.save)
            save_file(parts, os.path.join(self.folder, file), {SAVE: self.metadata.save})

    def switch(self) -> None:
        """Make the save the checkpoint of its number, and remove the parts of those before it."""
        replace_file(self._metadata_path(), self.metadata.to_json().encode())
        remove_unused(self.folder, self.unique_id, self.metadata.save)

    def finish_by_files(self, parts: dict[str, Array]) -> None:
        """All of a rank's save, without a word to the other ranks: they see each other's files.

        Returns once the save is the checkpoint. Raises OSError, also for what another rank could not write.
        """
        try:
            self.write_parts(parts)
            if self.leads:
                self._wait_for(self._all_parts)
                self.switch()
        except OSError as error:
            with contextlib.suppress(OSError):
                replace_file(self._failure_path(), f"{type(error).__name__}: {error}".encode())
            raise
        if not self.leads:
            self._wait_for(self._is_switched)

    def _wait_for(self, ready: Callable[[], bool]) -> None:
        pause = 0.001
        while not ready():
            self._check_failures()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_WAIT)

    def _all_parts(self) -> bool:
        files = {piece.file for entry in self.metadata.tensors.values() for piece in entry.pieces}
        return all(os.path.exists(os.path.join(self.folder, file)) for file in files)

    def _is_switched(self) -> bool:
        return _save_of(self._metadata_path()) == self.metadata.save

    def _check_failures(self) -> None:
        for path in Path(self.folder).glob(f"*_{self.unique_id}.{self.metadata.save}.failed"):
            rank = path.name.partition("_")[0]
            raise OSError(f"checkpoint {self.unique_id} is not written: rank {rank} met {path.read_text('utf-8')}")

    def _metadata_path(self) -> str:
        return os.path.join(self.folder, metadata_file(self.unique_id))

    def _failure_path(self) -> str:
        return os.path.join(self.folder, f"{self.rank}_{self.unique_id}.{self.metadata.save}.failed")


def remove_unused(folder: str, unique_id: int, save: str) -> None:
    """Remove the parts that earlier saves of checkpoint ``unique_id`` wrote, and those of other checkpoints' saves
    that ended without metadata long ago.
    """
    for name in os.listdir(folder):
        number, token = part_of(name) or (None, "")
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError):  # another rank's sweep was faster
            if number == unique_id and token != save:
                os.unlink(path)
            elif number not in (None, unique_id) and token and os.stat(path).st_mtime < time.time() - _ABANDONED:
                if _save_of(os.path.join(folder, metadata_file(int(number or 0)))) != token:
                    os.unlink(path)


def _save_of(path: str) -> str | None:
    """The token of the save that a metadata file ends. None where there is none."""
    try:
        with open(path, "rb") as file:
            found = _TOKEN.search(file.read(_HEAD))
    except FileNotFoundError:
        return None
    return found[1].decode() if found else None
