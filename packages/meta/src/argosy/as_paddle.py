"""argosy in the place of Paddle, for libraries that say ``import paddle`` themselves.

Importing this module does it, for the rest of the process:

    import argosy.as_paddle
    import deepxde  # with DDE_BACKEND=paddle

``paddle`` and every ``paddle.x.y`` are then the modules of argosy, the same objects under both names, and
``paddle.__version__`` is the version of Paddle whose interface argosy has, as libraries compare it. A script that
is not to be touched runs so by

    python -m argosy.as_paddle train.py --epochs 3
    python -m argosy.as_paddle -m pytest ...

and pytest loads it as a plugin: ``-p argosy.as_paddle``.
"""

from __future__ import annotations

import runpy
import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import argosy
from argosy import version
from argosy.api import SHOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["install", "main", "uninstall"]


class _Paddle(ModuleType):
    """``argosy`` under Paddle's name and version: what is set here is set there."""

    __version__ = version.full_version
    __git_commit__ = version.commit

    def __getattr__(self, name: str) -> Any:
        return getattr(argosy, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):  # the import system's own
            super().__setattr__(name, value)
        else:
            setattr(argosy, name, value)

    def __dir__(self) -> list[str]:
        return dir(argosy)


class _Finder(MetaPathFinder, Loader):
    """Finds ``paddle.x`` where ``argosy.x`` lies."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == "paddle":
            return ModuleSpec(name, self, is_package=True)
        if name.startswith("paddle.") and find_spec(_own_name(name)) is not None:
            return ModuleSpec(name, self)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return _Paddle("paddle", argosy.__doc__) if spec.name == "paddle" else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if name != "paddle":  # the import system goes on with what stands here, not with the empty module that it made
            sys.modules[name] = import_module(_own_name(name))
            # with what that has loaded: a later import of paddle.amp.auto_cast would put the module in the place of the
            # function of that name
            below = _own_name(name) + "."
            for loaded in [loaded for loaded in sys.modules if loaded.startswith(below)]:
                sys.modules.setdefault("paddle" + loaded.removeprefix("argosy"), sys.modules[loaded])


def _own_name(name: str) -> str:
    return "argosy" + name.removeprefix("paddle")


_FINDER = _Finder()


def install() -> None:
    """From here on ``import paddle`` gives argosy. Raises ImportError where another ``paddle`` was imported before."""
    present = sys.modules.get("paddle")
    if present is not None and not isinstance(present, _Paddle):
        where = getattr(present, "__file__", None) or "its maker"
        raise ImportError(
            f"paddle was imported already, from {where}: import argosy.as_paddle before it", name="paddle"
        )
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    import_module("paddle")
    _show_tensors_of("paddle")


def uninstall() -> None:
    """``import paddle`` finds what it found before; libraries that were imported meanwhile keep argosy."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
        _show_tensors_of("argosy")
        for name in [name for name in sys.modules if name == "paddle" or name.startswith("paddle.")]:
            del sys.modules[name]


def _show_tensors_of(framework: str) -> None:
    """Let the class of tensors name this module as its own: libraries compare ``str(type(x))``."""
    SHOWN.framework = framework
    runtime = sys.modules.get("argosy.runtime")
    if runtime is not None:
        runtime.Tensor.__module__ = framework


def main(arguments: Sequence[str]) -> None:
    """Run a script, or with ``-m`` a module, as Python would."""
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        sys.exit("usage: python -m argosy.as_paddle (SCRIPT | -m MODULE) [ARGUMENT ...]")
    if arguments[0] == "-m":
        sys.argv = list(arguments[1:])
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(arguments)
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    import_module("argosy.as_paddle")  # by its own name, so that there is one finder
    main(sys.argv[1:])
else:
    install()
