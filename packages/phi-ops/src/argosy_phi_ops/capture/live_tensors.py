"""Which traced tensors of a capture are alive: those that Python can still reach, wherever it holds them."""

from __future__ import annotations

import gc
from threading import RLock
from typing import Any

from argosy_hwadapt.fork import renew_in_child
from argosy_tensorcore.tensor import Tensor

__all__ = ["live_tensors"]

_looking = renew_in_child(RLock())


def live_tensors(tracer: object) -> list[Tensor]:
    """The traced tensors of a capture that anybody holds. Only the collector knows them all: views, detached ones,
    those hidden in any object.

    They are found by their class: looking through all objects would hold what other threads are in the middle of
    making, whose ``tuple()`` would fail (SystemError). One thread looks at a time: meanwhile it holds the tensors of
    all threads, and none of these may count as alive for that.
    """
    with _looking:
        return [x for x in gc.get_referrers(Tensor) if _is_traced_by(tracer, x)]


def _is_traced_by(tracer: object, x: Any) -> bool:
    payload = getattr(x, "payload", None) if type(x) is Tensor else None
    return payload is not None and payload.is_traced and payload.tracer is tracer
