"""Models that a folder offers in its ``hubconf.py``. Nothing is downloaded; that file is run, so trust it."""

from __future__ import annotations

import builtins
import hashlib
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from argosy.framework.serialization import load as _read_state
from argosy.settings import user_cache

__all__ = ["help", "list", "load", "load_state_dict_from_url"]


def list(repo_dir: str, source: str = "github", force_reload: bool = False) -> builtins.list[str]:
    """Names of the functions that ``hubconf.py`` in the folder offers (those without an underscore before them).

    Raises NotImplementedError unless ``source`` is "local".
    """
    module = _configuration("list", repo_dir, source)
    return [name for name, found in vars(module).items() if callable(found) and not name.startswith("_")]


def help(repo_dir: str, model: str, source: str = "github", force_reload: bool = False) -> str | None:
    """The docstring of a function of ``hubconf.py``."""
    found: str | None = _entry("help", repo_dir, source, model).__doc__
    return found


def load(repo_dir: str, model: str, source: str = "github", force_reload: bool = False, **kwargs: Any) -> Any:
    """What a function of ``hubconf.py`` gives for these arguments: a layer, as a rule."""
    return _entry("load", repo_dir, source, model)(**kwargs)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    check_hash: str | bool = False,
    file_name: str | None = None,
    map_location: str | None = None,
) -> Any:
    """What :func:`argosy.load` reads from the file that has the last name of ``url`` (or is called ``file_name``).

    It has to lie in ``model_dir``, by default ``~/.cache/paddle/hub/checkpoints``, where Paddle keeps it: nothing is
    downloaded. check_hash: True for the SHA-256 in the name (``name-<first digits>.ext``), or its first digits;
    map_location: "numpy" for arrays, "cpu" for tensors. Raises FileNotFoundError where the file is not there,
    ValueError where its hash is another and for other places.
    """
    if map_location not in (None, "cpu", "numpy", "np"):
        raise ValueError(f"hub.load_state_dict_from_url(): map_location is 'cpu' or 'numpy', got {map_location!r}")
    folder = user_cache() / "hub" / "checkpoints" if model_dir is None else Path(model_dir)
    path = folder / (file_name or Path(urlparse(url).path).name)
    if not path.is_file():
        raise FileNotFoundError(f"hub.load_state_dict_from_url(): argosy downloads nothing. Put {url} at {path}")
    if check_hash:
        wanted = check_hash if isinstance(check_hash, str) else path.stem.rpartition("-")[2]
        if not wanted or not hashlib.sha256(path.read_bytes()).hexdigest().startswith(wanted):
            raise ValueError(f"hub.load_state_dict_from_url(): the SHA-256 of {path} does not begin with {wanted!r}")
    return _read_state(str(path), return_numpy=map_location in ("numpy", "np"))


def _entry(owner: str, repo_dir: str, source: str, model: str) -> Any:
    found = getattr(_configuration(owner, repo_dir, source), model, None) if isinstance(model, str) else None
    if not callable(found):
        raise RuntimeError(f"hub.{owner}(): hubconf.py in {repo_dir} has no function {model!r}")
    return found


def _configuration(owner: str, repo_dir: str, source: str) -> ModuleType:
    """The module ``hubconf.py``, run anew, with its folder on the path meanwhile."""
    if source not in ("github", "gitee", "local"):
        raise ValueError(f"hub.{owner}(): source should be github, gitee or local, got {source!r}")
    if source != "local":
        raise NotImplementedError(f"hub.{owner}(): source {source!r}: nothing is downloaded; clone it, source='local'")
    file = Path(repo_dir).expanduser() / "hubconf.py"
    if not file.is_file():
        raise FileNotFoundError(f"hub.{owner}(): there is no {file}")
    spec = spec_from_file_location("hubconf", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"hub.{owner}(): {file} cannot be imported")
    module = module_from_spec(spec)
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    missing = [name for name in getattr(module, "dependencies", ()) if find_spec(name) is None]
    if missing:
        raise RuntimeError(f"hub.{owner}(): hubconf.py needs packages that are not there: {', '.join(missing)}")
    return module
