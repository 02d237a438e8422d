"""Where Paddle has ``auto_cast`` and its state, for code that takes them from there."""

from argosy.amp.casting import auto_cast
from argosy.amp.casting import current as amp_state

__all__ = ["amp_state", "auto_cast"]
