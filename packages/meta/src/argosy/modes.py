"""Dynamic and static mode: argosy is always dynamic; programs are captured from running code."""

from __future__ import annotations

from argosy_phi_ops.capture import active_tracer

__all__ = ["disable_static", "enable_static", "in_dynamic_mode"]


def in_dynamic_mode() -> bool:
    """True unless a capture (``jit.to_static``) is recording on this rank."""
    return active_tracer() is None


def disable_static(place: object = None) -> None:
    """Stay in dynamic mode. There is no other."""


def enable_static() -> None:
    """Raises NotImplementedError: there is no global static mode."""
    raise NotImplementedError("enable_static() is not implemented; capture functions with argosy.jit.to_static instead")
