"""What lets no gradient pass, as it is met: eager results without a history do not tell what they were made by, so that
errors of differentiation name what it may have been.

Operators are noted with the first application to operands of some types, where everything else is worked out, too:
later ones cost nothing.
"""

from __future__ import annotations

from typing import Any

from argosy_phi_ops.kept import Kept
from argosy_phi_ops.user_line import user_location

__all__ = ["met_walls", "note", "note_wall"]

_MOST = 4
_met = Kept(_MOST)


def note_wall(op: Any, dtype: Any) -> None:
    """Note that operator ``op`` is applied, whose results have no gradient: it says so, or they are of ``dtype``."""
    if not op.name.endswith("_like"):  # whoever asks for zeros knows that they are no function
        note(op.name, "gives a constant" if op.constant else f"gives {dtype.name}, which has no derivative")


def note(name: str, why: str) -> None:
    """Note that ``name``, of which ``why`` is true, is met at the user's line; the latest ones are kept."""
    text = f"{name} ({user_location()}) {why}"
    _met.pop(text, None)
    _met[text] = True


def met_walls() -> list[str]:
    """What was noted, the latest first."""
    return list(_met)[::-1]
