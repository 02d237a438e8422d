"""Settings of a compilation that an option gives, or else the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def memory_budget(options: Mapping[str, Any]) -> int | None:
    """The bytes that intermediate values may need: the option ``memory_budget``, or ``ARGOSY_MEMORY_BUDGET`` (a number
    of bytes, or of KiB, MiB or GiB). Raises ValueError for what is neither."""
    given = options.get("memory_budget")
    if given is not None:
        if isinstance(given, bool) or not isinstance(given, int) or given < 0:
            raise ValueError(f"option memory_budget is {given!r}: expected a number of bytes")
        return given
    text = os.environ.get("ARGOSY_MEMORY_BUDGET")
    if not text:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMG]iB|)", text.strip())
    if found is None:
        raise ValueError(f"ARGOSY_MEMORY_BUDGET is {text!r}: expected bytes, as in 500000000 or 512MiB")
    return int(float(found[1]) * _UNITS[found[2]])


def guarding(options: Mapping[str, Any]) -> str:
    """The side on which memory of intermediate values and results ends at pages that nobody may touch: the option
    ``guard``, or ``ARGOSY_GUARD`` (``before`` or ``behind``; empty for none). Raises ValueError for anything else."""
    given = options.get("guard")
    name = "option guard" if given is not None else "ARGOSY_GUARD"
    given = os.environ.get("ARGOSY_GUARD", "") if given is None else given
    if given not in ("", "before", "behind"):
        raise ValueError(f"{name} is {given!r}: expected 'before' or 'behind'")
    return str(given)


def tuning(options: Mapping[str, Any]) -> bool:
    """Whether to measure: the option ``tune``, or ``ARGOSY_TUNE`` (1 or 0). Raises ValueError for anything else."""
    return _switch(options, "tune", False)


def winograd(options: Mapping[str, Any]) -> bool:
    """Whether convolutions may be made by minimal filtering, which rounds differently (how much, says
    `argosy_cinn.contraction.winograd.transforms`): the option ``winograd``, or ``ARGOSY_WINOGRAD`` (1 or 0). Raises
    ValueError for anything else."""
    return _switch(options, "winograd", True)


def _switch(options: Mapping[str, Any], name: str, default: bool) -> bool:
    given, variable = options.get(name), f"ARGOSY_{name.upper()}"
    if given is not None:
        if not isinstance(given, bool):
            raise ValueError(f"option {name} is {given!r}: expected True or False")
        return given
    text = os.environ.get(variable, "")
    if text not in ("", "0", "1"):
        raise ValueError(f"{variable} is {text!r}: expected 1 or 0")
    return text == "1" if text else default
