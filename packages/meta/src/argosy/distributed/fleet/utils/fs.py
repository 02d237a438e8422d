"""``LocalFS``: the file system of this machine by the names that scripts of fleet have for any."""

from __future__ import annotations

import os
import shutil

__all__ = ["LocalFS"]


class LocalFS:
    """Files and directories of this machine."""

    def ls_dir(self, fs_path: str) -> tuple[list[str], list[str]]:
        """The names of directories and of files in a directory; none where there is none."""
        if not self.is_exist(fs_path):
            return [], []
        directories = self.list_dirs(fs_path)
        return directories, [name for name in os.listdir(fs_path) if name not in directories]

    def list_dirs(self, fs_path: str) -> list[str]:
        """The names of directories in a directory; none where there is none."""
        if not self.is_exist(fs_path):
            return []
        return [name for name in os.listdir(fs_path) if self.is_dir(os.path.join(fs_path, name))]

    def mkdirs(self, fs_path: str) -> None:
        """Make a directory, and those above it, where it is missing. Raises FileExistsError where a file has the
        name."""
        os.makedirs(fs_path, exist_ok=True)

    def rename(self, fs_src_path: str, fs_dst_path: str) -> None:
        """Give a file or directory another path."""
        os.rename(fs_src_path, fs_dst_path)

    def mv(self, src_path: str, dst_path: str, overwrite: bool = False, test_exists: bool = False) -> None:
        """Give a file or directory another path. Raises FileNotFoundError where it is missing, FileExistsError where
        the path is taken, unless ``overwrite``."""
        if not self.is_exist(src_path):
            raise FileNotFoundError(src_path)
        if overwrite:
            self.delete(dst_path)
        if self.is_exist(dst_path):
            raise FileExistsError(dst_path)
        self.rename(src_path, dst_path)

    def delete(self, fs_path: str) -> None:
        """Remove a file, or a directory with all that is in it; nothing where there is none."""
        if self.is_file(fs_path):
            os.remove(fs_path)
        elif self.is_exist(fs_path):
            shutil.rmtree(fs_path)

    def touch(self, fs_path: str, exist_ok: bool = True) -> None:
        """Make an empty file where it is missing. Raises FileExistsError where it is not, without ``exist_ok``."""
        with open(fs_path, "a" if exist_ok else "x", encoding="utf-8"):
            pass

    def is_file(self, fs_path: str) -> bool:
        """Whether the path is a file's."""
        return os.path.isfile(fs_path)

    def is_dir(self, fs_path: str) -> bool:
        """Whether the path is a directory's."""
        return os.path.isdir(fs_path)

    def is_exist(self, fs_path: str) -> bool:
        """Whether there is anything at the path."""
        return os.path.exists(fs_path)

    def need_upload_download(self) -> bool:
        """False: the files are here."""
        return False
