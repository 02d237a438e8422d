"""Dynamic and static mode: at once, or recorded into the default program for an ``Executor``."""

from __future__ import annotations

from argosy.device.places import set_device
from argosy.static.program import default_main_program, default_startup_program
from argosy.static.session import in_static_mode, start_static_mode, stop_static_mode
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_tensorcore.place import Place

__all__ = ["disable_static", "enable_static", "in_dynamic_mode", "in_dynamic_or_pir_mode", "in_pir_mode", "use_pir_api"]


def in_dynamic_mode() -> bool:
    """True unless operators are recorded on this rank: by a capture (``jit.to_static``) or into a static program."""
    return active_tracer() is None


def in_dynamic_or_pir_mode() -> bool:
    """True: what is recorded is PIR."""
    return True


def in_pir_mode() -> bool:
    """True where operators are recorded on this rank: the opposite of :func:`in_dynamic_mode`."""
    return not in_dynamic_mode()


def use_pir_api() -> bool:
    """True: programs are PIR, there is no older representation."""
    return True


def disable_static(place: str | Place | None = None) -> None:
    """Go back to dynamic mode, in which operators run at once; ``place`` becomes that of new tensors. Raises
    DeviceNotFound for one that is not there."""
    stop_static_mode()
    if place is not None:
        set_device(place)


def enable_static() -> None:
    """Let operators be recorded into the default main program, which ``static.Executor`` runs, until
    :func:`disable_static`."""
    if not in_static_mode():
        start_static_mode(default_main_program(), default_startup_program())
