"""Observers: what passes is kept track of and left as it is."""

from argosy.faces import face

_TABLE = {
    **{name: f"argosy.quantization.observers.abs_max:{name}" for name in ("AbsmaxObserver", "AbsmaxObserverLayer")},
    **{
        name: f"argosy.quantization.observers.groupwise:{name}"
        for name in ("GroupWiseWeightObserver", "GroupWiseWeightObserverLayer")
    },
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
