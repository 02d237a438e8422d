"""The error of a call that has noted an index out of range."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from argosy_cinn.checks.rewrite import SITE
from argosy_phi_ops.checks.index_errors import CHECK, index_error_of
from argosy_phi_ops.errors import AxisError
from argosy_pir.location import UNKNOWN, Location
from argosy_pir.program import Program


def refusal(program: Program, symbols: Mapping[str, int] | None, record: int, caller: Location = UNKNOWN) -> AxisError:
    """The error for what the record at the address ``record`` says of a run of ``program``, whose primitives are
    those that were compiled, with sizes ``symbols``; ``caller`` is the line of a check that has none."""
    site, index = (ctypes.c_int64 * 2).from_address(record)
    checks = [op for op in program.walk() if op.name == CHECK]
    check = next(op for i, op in enumerate(checks) if op.attributes.get(SITE, i) == site - 1)

    def number(dim: Any) -> int:
        return dim if isinstance(dim, int) else int(dim.evaluate(symbols or {}))

    return index_error_of(check, index, number, caller)


def may_refuse(program: Program) -> bool:
    """Whether a run of ``program``, of primitives, may refuse an index."""
    return any(op.name == CHECK for op in program.walk())


__all__ = ["may_refuse", "refusal"]
