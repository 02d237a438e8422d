"""Written by ``python -m argosy.api.stubs``."""

from argosy.quantization.observers.abs_max import AbsmaxObserver as AbsmaxObserver
from argosy.quantization.observers.abs_max import AbsmaxObserverLayer as AbsmaxObserverLayer
from argosy.quantization.observers.groupwise import GroupWiseWeightObserver as GroupWiseWeightObserver
from argosy.quantization.observers.groupwise import GroupWiseWeightObserverLayer as GroupWiseWeightObserverLayer
