"""The fuel of a process: how many transformations all its compilations together may do (``ARGOSY_FUEL``).

Each compilation takes what is left as the fuel of its passes (:mod:`argosy_pir.rewrite.fuel`) and settles afterwards;
``ARGOSY_FUEL_LOG`` names a file that receives the count and the last step.
"""

from __future__ import annotations

import json
from _thread import allocate_lock
from pathlib import Path

from argosy_phi_ops.settings import FUEL, FUEL_LOG

__all__ = ["process_fuel", "settle"]

_spent = 0
_last = ""
_settling = allocate_lock()


def process_fuel() -> int | None:
    """What ``ARGOSY_FUEL`` leaves to this process; None without end. Raises ValueError where it is no number."""
    fuel = FUEL.read()
    return None if fuel is None else max(fuel - _spent, 0)


def settle(spent: int, last: str | None) -> None:
    """Take ``spent`` steps, of which ``last`` names the last, from the process's fuel, and write the log."""
    global _spent, _last
    with _settling:
        _spent += spent
        _last = last if spent and last else _last
        path = FUEL_LOG.read()
        if path:
            Path(path).write_text(json.dumps({"spent": _spent, "last": _last}), encoding="utf-8")
