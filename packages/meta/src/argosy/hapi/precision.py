"""Mixed precision of a ``Model``: what ``prepare(amp_configs=...)`` asks for, and the steps taken with it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from argosy.amp.casting import auto_cast
from argosy.amp.decoration import decorate
from argosy.amp.scaler import GradScaler
from argosy.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm

__all__ = ["Precision"]

_LEVELS = ("O0", "O1", "O2")
_CASTING = frozenset({"custom_white_list", "custom_black_list", "dtype"})
_SCALING = frozenset({
    "init_loss_scaling", "incr_ratio", "decr_ratio", "incr_every_n_steps", "decr_every_n_nan_or_inf",
    "use_dynamic_loss_scaling",
})  # fmt: skip


class Precision:
    """How a model's batches are run: the level, the lists and dtype of ``auto_cast``, and the scaler of its losses.

    configs: a level, or a mapping of ``level`` (default ``O1``) and arguments of ``auto_cast`` and ``GradScaler``.
    Raises ValueError for other levels and names, TypeError for what is neither.
    """

    def __init__(self, configs: str | Mapping[str, Any] | None) -> None:
        given: dict[str, Any] = {"level": configs} if isinstance(configs, str) else dict(_as_mapping(configs))
        self.level = given.pop("level", "O1") if given else "O0"
        if self.level not in _LEVELS:
            raise ValueError(f"amp_configs: level should be one of {list(_LEVELS)}, got {self.level!r}")
        unknown = sorted(set(given) - _CASTING - _SCALING)
        if unknown:
            known = sorted({"level"} | _CASTING | _SCALING)
            raise ValueError(f"amp_configs: {unknown} is not among {known}")
        self._casting = {key: value for key, value in given.items() if key in _CASTING}
        scaling = {key: value for key, value in given.items() if key in _SCALING}
        self._scaler = GradScaler(self.level != "O0", **scaling)

    def convert(self, network: Any, optimizer: Any) -> None:
        """Make network and optimizer ready for the level, in place. Raises ValueError for a clip that O2 excludes."""
        if self.level != "O2":
            return
        clip = getattr(optimizer, "_grad_clip", None)
        if clip is not None and not isinstance(clip, (ClipGradByNorm, ClipGradByGlobalNorm)):
            raise ValueError(f"amp_configs: level O2 clips by norm or global norm, not by {type(clip).__name__}")
        decorate(network, optimizer, "O2", self._casting.get("dtype", "float16"))

    def casting(self) -> AbstractContextManager[None]:
        """The block in which the network runs."""
        return auto_cast(self.level != "O0", level=self.level, **self._casting)

    def backward(self, loss: Any) -> None:
        """Gradients of the loss, scaled."""
        self._scaler.scale(loss).backward()

    def update(self, optimizer: Any) -> None:
        """One step of the optimizer with the gradients of :meth:`backward`, skipped where they overflowed."""
        self._scaler.step(optimizer)
        self._scaler.update()


def _as_mapping(configs: Any) -> Mapping[str, Any]:
    if configs is None:
        return {}
    if not isinstance(configs, Mapping):
        raise TypeError(f"amp_configs is a level ('O1', 'O2') or a dict, not {type(configs).__name__}")
    return configs
