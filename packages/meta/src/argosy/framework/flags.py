"""Paddle's switches, as argosy stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from argosy.checked import checked

__all__ = ["get_flags", "set_flags"]

_FLAGS: dict[str, Any] = {
    "FLAGS_use_stride_kernel": True,
    "FLAGS_enable_pir_api": True,
    "FLAGS_check_nan_inf": False,
    "FLAGS_check_nan_inf_level": 0,
    "FLAGS_cudnn_deterministic": True,
    "FLAGS_embedding_deterministic": 1,
    "FLAGS_allocator_strategy": "auto_growth",
    "FLAGS_eager_delete_tensor_gb": 0.0,
    "FLAGS_retain_grad_for_all_tensor": False,
    "FLAGS_benchmark": False,
}
"""Paddle's switches as argosy stands: results are deterministic and eager views share memory, always."""
_CHECKS = frozenset({"FLAGS_check_nan_inf", "FLAGS_check_nan_inf_level"})
_FREE = _CHECKS | {"FLAGS_allocator_strategy", "FLAGS_eager_delete_tensor_gb"}


def _known(name: str) -> str:
    full = name if name.startswith("FLAGS_") else "FLAGS_" + name
    if full not in _FLAGS:
        raise ValueError(f"flag {name} is unknown; there are {', '.join(sorted(_FLAGS))}")
    return full


@checked
def get_flags(flags: str | Sequence[str]) -> dict[str, Any]:
    """The values of one flag or of several. Raises ``ValueError`` for an unknown one."""
    if not isinstance(flags, (str, list, tuple)):
        raise TypeError(f"get_flags: flags should be a name or a list of names, got {type(flags).__name__}")
    return {name: _FLAGS[_known(name)] for name in ([flags] if isinstance(flags, str) else flags)}


@checked
def set_flags(flags: Mapping[str, Any]) -> None:
    """Set flags by name. Raises ``NotImplementedError`` for a value that argosy cannot honour.

    ``FLAGS_check_nan_inf`` has the results of eager operators looked at: NaN or infinity raises ``RuntimeError``, or is
    printed with ``FLAGS_check_nan_inf_level`` 1; 2 prints what float16 could not hold, too, 3 everything. Gradients are
    left to ``autograd.detect_anomaly``, captured programs to ``science.first_nan``.
    """
    if not isinstance(flags, Mapping):
        raise TypeError(f"set_flags: flags should map names to values, got {type(flags).__name__}")
    for name, value in flags.items():
        full = _known(name)
        if full not in _FREE and value != _FLAGS[full]:
            raise NotImplementedError(f"set_flags: {full} is {_FLAGS[full]!r}; {value!r} is not implemented")
        _FLAGS[full] = bool(value) if full == "FLAGS_check_nan_inf" else value
    if _CHECKS.intersection(map(_known, flags)):
        _check_numbers()


def _check_numbers() -> None:
    """Switch the checker of results as the flags say."""
    debugging = import_module("argosy.amp.debugging")
    modes = debugging.DebugMode
    mode = modes(min(int(_FLAGS["FLAGS_check_nan_inf_level"]), modes.CHECK_ALL.value))
    debugging.enable_tensor_checker(debugging.TensorCheckerConfig(_FLAGS["FLAGS_check_nan_inf"], mode))
