"""Which traced tensors of a capture are alive: those that Python can still reach, wherever it holds them."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterable
from threading import RLock
from typing import TYPE_CHECKING, Any

from argosy_hwadapt.fork import renew_in_child
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_phi_ops.capture.tracer import Tracer

__all__ = ["are_all_known", "live_tensors"]

_looking = renew_in_child(RLock())


def live_tensors(tracer: Tracer) -> list[Tensor]:
    """The traced tensors of a capture that anybody holds. Only the collector knows them all: views, detached ones,
    those hidden in any object.

    They are found by their class: looking through all objects would hold what other threads are in the middle of
    making, whose ``tuple()`` would fail (SystemError). One thread looks at a time: meanwhile it holds the tensors of
    all threads, and none of these may count as alive for that.
    """
    with _looking:
        return [x for x in gc.get_referrers(Tensor) if _is_traced_by(tracer, x)]


def are_all_known(tracer: Tracer, known: Iterable[Tensor]) -> bool:
    """Whether `live_tensors` are all among ``known``. Looking through the heap takes as long as it is large: it is left
    out where nobody but these tensors holds a payload of the capture, which the counts of references tell."""
    tensors = {id(x): x for x in known}
    return _hold_all_payloads(tracer, tensors.values()) or all(id(x) in tensors for x in live_tensors(tracer))


def _hold_all_payloads(tracer: Tracer, tensors: Iterable[Tensor]) -> bool:
    holders = Counter(id(x.payload) for x in tensors)
    payload: Any = object()
    own = sys.getrefcount(payload)  # references of this function
    for reference in tracer.payloads:
        payload = reference()
        if payload is not None and sys.getrefcount(payload) != own + holders[id(payload)]:
            return False
    return True


def _is_traced_by(tracer: Tracer, x: Any) -> bool:
    payload = getattr(x, "payload", None) if type(x) is Tensor else None
    return payload is not None and payload.is_traced and payload.tracer is tracer
