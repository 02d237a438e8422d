"""Settings by which Paddle measures kernels, layouts and loaders, and what they mean here."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argosy_cinn.settings import TUNE

__all__ = ["set_config"]

_PARTS: dict[str, dict[str, type]] = {
    "kernel": {"enable": bool, "tuning_range": list},
    "layout": {"enable": bool},
    "dataloader": {"enable": bool, "tuning_steps": int},
}
_ALL = {part: {"enable": True} for part in _PARTS}


def set_config(config: Mapping[str, Any] | str | None = None) -> None:
    """Choose what is measured: a dict, the path of a JSON file with one, or None for everything.

    ``kernel``'s ``enable`` is the variable ``ARGOSY_TUNE`` of this process, which the next compiled functions read (see
    ``to_static``'s ``tune``). Which steps are measured (``tuning_range``) is not chosen: a product is measured when it
    is compiled first. ``layout`` and ``dataloader`` are checked and change nothing, with a warning where they are to be
    enabled: programs have one layout, and ``num_workers`` is given to the loader. Raises ValueError for other parts and
    settings, TypeError for values of other types.
    """
    given = json.loads(Path(config).read_text(encoding="utf-8")) if isinstance(config, str) else config
    given = _ALL if given is None else given
    _check(given)
    if "enable" in given.get("kernel", {}):
        TUNE.write(str(int(given["kernel"]["enable"])))
    for part in ("layout", "dataloader"):
        if config is not None and given.get(part, {}).get("enable"):
            warnings.warn(f"incubate.autotune.set_config(): {part} is not tuned", stacklevel=2)


def _check(given: Any) -> None:
    if not isinstance(given, Mapping):
        raise TypeError(f"set_config(): argument 'config' should be a dict or a path, got {type(given).__name__}")
    for part, settings in given.items():
        if part not in _PARTS:
            raise ValueError(f"set_config(): parts are {[*_PARTS]}, got {part!r}")
        for key, value in settings.items():
            kind = _PARTS[part].get(key)
            if kind is None:
                raise ValueError(f"set_config(): settings of {part!r} are {[*_PARTS[part]]}, got {key!r}")
            if not isinstance(value, kind):
                raise TypeError(f"set_config(): {part}'s {key} should be {kind.__name__}, got {value!r:.60}")
