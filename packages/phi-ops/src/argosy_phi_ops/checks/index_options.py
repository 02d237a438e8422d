"""Whether compiled programs refuse indices that are out of range."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from argosy_phi_ops.checks.index_errors import CHECK
from argosy_pir.program import Program

__all__ = ["SETTING", "checks_indices", "unchecked"]

SETTING = "ARGOSY_CHECK_INDEX"


def checks_indices(options: Mapping[str, Any]) -> bool:
    """Whether a compiler keeps the checks of a program: its option ``check_index``, or ``ARGOSY_CHECK_INDEX`` (1, which
    is the default, or 0). Raises ValueError for anything else."""
    given = options.get("check_index")
    if given is not None:
        if not isinstance(given, bool):
            raise ValueError(f"option check_index is {given!r}: expected True or False")
        return given
    text = os.environ.get(SETTING, "")
    if text not in ("", "0", "1"):
        raise ValueError(f"{SETTING} is {text!r}: expected 1 or 0")
    return text != "0"


def unchecked(program: Program) -> Program:
    """``program``, or a copy without its checks."""
    if not any(op.name == CHECK for op in program.walk()):
        return program
    copy = program.clone()
    for op in [op for op in copy.walk() if op.name == CHECK]:
        op.erase()
    return copy
