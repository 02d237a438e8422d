"""Written by ``python -m argosy.api.stubs``."""

from argosy.quantization.observers.abs_max import AbsmaxObserver as AbsmaxObserver
from argosy.quantization.observers.abs_max import AbsmaxObserverLayer as AbsmaxObserverLayer
from argosy.quantization.observers.groupwise import GroupWiseWeightObserver as GroupWiseWeightObserver
from argosy.quantization.observers.groupwise import GroupWiseWeightObserverLayer as GroupWiseWeightObserverLayer
from argosy.quantization.observers.histogram import HistObserver as HistObserver
from argosy.quantization.observers.histogram import HistObserverLayer as HistObserverLayer
from argosy.quantization.observers.histogram import KLObserver as KLObserver
from argosy.quantization.observers.histogram import KLObserverLayer as KLObserverLayer
