"""Paddle's switches, as argosy stands."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from argosy.argument_checks import validate_call
from argosy.framework.flag_defaults import DEFAULTS
from argosy.nn.hooks import CHANGES
from argosy_phi_ops.eager.tiering import is_deterministic, set_deterministic
from argosy_phi_ops.settings import CHECK_INDEX as CHECK_INDEX_SETTING

__all__ = ["get_flags", "set_flags"]

CHECK_INDEX = "FLAGS_check_index"
"""Argosy's own: whether compiled programs refuse indices that are out of range."""
DETERMINISTIC = "FLAGS_cudnn_deterministic"

_FLAGS: dict[str, Any] = DEFAULTS | {
    "FLAGS_use_stride_kernel": True,
    "FLAGS_enable_pir_api": True,
    DETERMINISTIC: is_deterministic(),
    "FLAGS_embedding_deterministic": 1,
    "FLAGS_retain_grad_for_all_tensor": False,
    CHECK_INDEX: CHECK_INDEX_SETTING.read(),
}
"""Paddle's flags as argosy stands: equal runs give equal results and eager views share memory, always."""
_CHECKS = frozenset({"FLAGS_check_nan_inf", "FLAGS_check_nan_inf_level"})
_REFUSED = frozenset({"FLAGS_retain_grad_for_all_tensor"})
"""Flags that would change what a program computes, were they implemented."""
_said: set[str] = set()
"""Flags without meaning here that were set in this process, each said once."""


def _check_flag(name: str) -> str:
    if name not in _FLAGS:
        near = difflib.get_close_matches(name if name.startswith("FLAGS_") else "FLAGS_" + name, _FLAGS, 3)
        raise ValueError(f"flag {name} is unknown" + (f"; there are {', '.join(near)}" if near else ""))
    return name


def _of_its_type(name: str, value: Any) -> Any:
    """The value as its flag's type. Raises TypeError for one that cannot be."""
    kind = type(DEFAULTS.get(name, _FLAGS[name]))
    if kind is str:
        if not isinstance(value, str):
            raise TypeError(f"set_flags: {name} should be a string, got {value!r:.60}")
        return value
    try:
        if isinstance(value, str):
            raise ValueError
        return kind(value)
    except (TypeError, ValueError):
        raise TypeError(f"set_flags: {name} should be a {kind.__name__}, got {value!r:.60}") from None


@validate_call
def get_flags(flags: str | Sequence[str]) -> dict[str, Any]:
    """The values of one flag or of several. Raises ``ValueError`` for an unknown one."""
    if not isinstance(flags, (str, list, tuple)):
        raise TypeError(f"get_flags: flags should be a name or a list of names, got {type(flags).__name__}")
    return {name: _FLAGS[_check_flag(name)] for name in ([flags] if isinstance(flags, str) else flags)}


@validate_call
def set_flags(flags: Mapping[str, Any]) -> None:
    """Set flags by name: those of Paddle's build for the CPU. One that nothing in argosy reads keeps its value and is
    warned about once; ``ValueError`` for an unknown one, ``TypeError`` for a value of another type.

    ``FLAGS_check_nan_inf`` has the results of eager operators looked at: NaN or infinity raises ``RuntimeError``, or is
    printed with ``FLAGS_check_nan_inf_level`` 1; 2 prints what float16 could not hold, too, 3 everything. Gradients are
    left to ``autograd.detect_anomaly``, captured programs to ``science.first_nan``.

    ``FLAGS_check_index`` (True) has programs that are compiled refuse indices that are out of range, as eager execution
    does; False, or ``ARGOSY_CHECK_INDEX=0`` in the environment, lets them be clamped where they are read and dropped
    where they are written. Functions that were captured under the other value are captured anew.

    ``FLAGS_cudnn_deterministic`` leaves eager operators that round in an order of their own (sums, products, exp) to
    numpy: nothing then depends on which calls a process made before.
    """
    if not isinstance(flags, Mapping):
        raise TypeError(f"set_flags: flags should map names to values, got {type(flags).__name__}")
    for name, given in flags.items():
        value = _of_its_type(_check_flag(name), given)
        if name not in _CHECKS | {CHECK_INDEX, DETERMINISTIC} and value != _FLAGS[name]:
            if name in _REFUSED:
                raise NotImplementedError(f"set_flags: {name} is {_FLAGS[name]!r}; {value!r} is not implemented")
            _say(name)
        _FLAGS[name] = value
    if _CHECKS.intersection(map(_check_flag, flags)):
        _check_numbers()
    if CHECK_INDEX in map(_check_flag, flags):
        _check_indices()
    set_deterministic(bool(_FLAGS[DETERMINISTIC]))


def _check_indices() -> None:
    """Let compilers read the flag, and captures look at what they watch."""
    CHECK_INDEX_SETTING.write(None if _FLAGS[CHECK_INDEX] else "0")
    CHANGES.count += 1


def _say(name: str) -> None:
    """Warn, once in a process, that a flag changes nothing."""
    if name not in _said:
        _said.add(name)
        warnings.warn(f"set_flags: {name} is kept and changes nothing here: argosy has no such switch", stacklevel=4)


def _check_numbers() -> None:
    """Switch the checker of results as the flags say."""
    debugging = import_module("argosy.amp.debugging")
    modes = debugging.DebugMode
    mode = modes(min(int(_FLAGS["FLAGS_check_nan_inf_level"]), modes.CHECK_ALL.value))
    debugging.enable_tensor_checker(debugging.TensorCheckerConfig(_FLAGS["FLAGS_check_nan_inf"], mode))
