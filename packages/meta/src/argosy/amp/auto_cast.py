"""Where Paddle has ``auto_cast`` and its state, for code that takes them from there."""

from argosy.amp.casting import amp_state, auto_cast
from argosy.amp.support import get_autocast_dtype

__all__ = ["AMPGlobalState", "amp_global_state", "amp_state", "auto_cast"]


class AMPGlobalState:
    """What is cast to: ``amp_dtype`` by name, as :func:`argosy.amp.get_autocast_dtype` gives it."""

    @property
    def amp_dtype(self) -> str:
        """The half type of the innermost ``auto_cast``; the default one outside."""
        return get_autocast_dtype()


_STATE = AMPGlobalState()


def amp_global_state() -> AMPGlobalState:
    """The state of mixed precision."""
    return _STATE
