"""Files that scripts fetch by address: those that lie where Paddle would have put them. Nothing is downloaded."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from argosy.dataset.common import md5file
from argosy.settings import user_cache

__all__ = ["get_path_from_url", "get_weights_path_from_url", "is_url"]

_PACKED = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".zip")


def is_url(path: str) -> bool:
    """Whether ``path`` is an address of the web."""
    return path.startswith(("http://", "https://"))


def get_weights_path_from_url(url: str, md5sum: str | None = None) -> str:
    """The file of that name in ``~/.cache/paddle/hapi/weights``, Paddle's folder for weights.

    Raises FileNotFoundError where it is not there, naming the address to fetch it from and where to put it; ValueError
    where its MD5 sum differs from ``md5sum``.
    """
    return get_path_from_url(url, str(user_cache() / "hapi" / "weights"), md5sum, decompress=False)


def get_path_from_url(
    url: str,
    root_dir: str,
    md5sum: str | None = None,
    check_exist: bool = True,
    decompress: bool = True,
    method: str = "get",
) -> str:
    """The file of ``root_dir`` that has the last name of ``url``; with ``decompress`` the folder unpacked beside it,
    where it is an archive.

    Raises FileNotFoundError where it is not there, naming the address to fetch it from and where to put it; ValueError
    where its MD5 sum differs from ``md5sum``.
    """
    path = Path(root_dir) / url.rstrip("/").rpartition("/")[2]
    ending = next((end for end in _PACKED if path.name.endswith(end)), None) if decompress else None
    unpacked = None if ending is None else path.with_name(path.name.removesuffix(ending))
    if unpacked is not None and unpacked.exists():
        return str(unpacked)
    if unpacked is not None:
        raise FileNotFoundError(f"argosy downloads nothing: fetch {url} and unpack it as {unpacked}")
    if not path.is_file():
        raise FileNotFoundError(f"argosy downloads nothing: fetch {url} and put it into {path.parent}")
    if md5sum is not None and md5file(str(path)) != md5sum:
        raise ValueError(f"{path} has another MD5 sum than {md5sum}: it is damaged or another version")
    return str(path)


def _get_unique_endpoints(trainer_endpoints: list[str]) -> set[str]:
    """One endpoint ``host:port`` of each host, the first in order: who downloads for the others."""
    by_host = {endpoint.split(":")[0]: endpoint for endpoint in sorted(trainer_endpoints, reverse=True)}
    return set(by_host.values())


def _decompress(fname: str) -> str:
    """Unpack an archive beside itself and give the path that is named as it is, without its ending.

    Raises ValueError for a file of another ending and for members of a tar file that lead out of the folder; of zip
    files these are left out.
    """
    path = Path(fname)
    ending = next((end for end in _PACKED if path.name.endswith(end)), None)
    if ending is None:
        raise ValueError(f"{path} is no archive: its name should end in one of {', '.join(_PACKED)}")
    if ending == ".zip":
        shutil.unpack_archive(path, path.parent)
    else:
        _unpack_tar(path)
    return str(path.with_name(path.name.removesuffix(ending)))


def _unpack_tar(path: Path) -> None:
    """Unpack a tar file beside itself. Raises ValueError for members that lead elsewhere, or are links where Python
    (before 3.11.4) cannot tell where they lead."""
    with tarfile.open(path) as archive:
        if hasattr(tarfile, "data_filter"):
            try:
                archive.extractall(path.parent, filter="data")
            except tarfile.FilterError as error:
                raise ValueError(f"{path}: {error}") from error
            return
        folder = path.parent.resolve()
        for member in archive:
            inside = (folder / member.name).resolve().is_relative_to(folder)
            if not inside or not (member.isfile() or member.isdir()):
                raise ValueError(f"{path}: member {member.name!r} is no file or folder beneath {folder}")
        archive.extractall(folder)
