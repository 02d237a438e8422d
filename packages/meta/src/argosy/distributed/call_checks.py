"""Operations that ranks must agree on before messages are sent: different calls end in an error instead of a hang.

Communicators compare collectives by themselves; an operation made of messages (``scatter``) is compared here.
"""

from __future__ import annotations

from typing import Any

from argosy.settings import CHECK_COLLECTIVES
from argosy_hwadapt.communicator import Communicator

__all__ = ["agree", "is_checking"]


def is_checking() -> bool:
    """Whether ranks compare their calls (``ARGOSY_CHECK_COLLECTIVES``, on unless ``0``)."""
    return CHECK_COLLECTIVES.read()


def agree(communicator: Communicator, kind: str, **agreed: Any) -> None:
    """Compare a composite operation with the other ranks' before its messages are sent, where ranks can.

    Raises CollectiveMismatch where they differ.
    """
    compare = getattr(communicator, "agree", None)
    if compare is not None:
        compare(kind, **agreed)
