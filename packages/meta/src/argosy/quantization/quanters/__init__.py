"""Quanters: what passes is rounded as quantisation would."""

from argosy.faces import face

_TABLE = {
    name: f"argosy.quantization.quanters.abs_max:{name}"
    for name in ("FakeQuanterWithAbsMaxObserver", "FakeQuanterWithAbsMaxObserverLayer")
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
