"""Models that a folder offers in its ``hubconf.py``. Nothing is downloaded; that file is run, so trust it."""

from __future__ import annotations

import builtins
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["help", "list", "load"]


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
