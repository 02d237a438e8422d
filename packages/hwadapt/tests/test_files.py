"""Files that are replaced whole: writers beside each other that look for what was abandoned."""

import os
import sys

import pytest

from argosy_hwadapt import files


@pytest.mark.skipif(sys.platform == "win32", reason="there are no locks")
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_another_writer_takes_for_abandoned_is_left_to_it(kind, tmp_path, monkeypatch):
    """Between its creation and its lock: another writer has locked it, and removes it a moment later."""
    flock, sync, taken = files.fcntl.flock, os.fsync, []

    def locked_before(descriptor, how):
        if not taken:
            taken.extend(tmp_path.glob(".*.argosy-tmp"))
            raise BlockingIOError
        flock(descriptor, how)

    def removed_meanwhile(descriptor):
        for path in taken:
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
        sync(descriptor)

    monkeypatch.setattr(files.fcntl, "flock", locked_before)
    monkeypatch.setattr(os, "fsync", removed_meanwhile)
    target = tmp_path / "made"
    if kind == "file":
        files.write_file(target, [b"new"])
        assert target.read_bytes() == b"new"
    else:
        with files.replace_folder(target, lambda name: False):
            pass
        assert target.is_dir()
    assert len(taken) == 1
    assert not list(tmp_path.glob(".*"))
