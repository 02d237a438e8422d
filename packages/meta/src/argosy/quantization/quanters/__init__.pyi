"""Written by ``python -m argosy.api.stubs``."""

from argosy.quantization.quanters.abs_max import FakeQuanterWithAbsMaxObserver as FakeQuanterWithAbsMaxObserver
from argosy.quantization.quanters.abs_max import FakeQuanterWithAbsMaxObserverLayer as FakeQuanterWithAbsMaxObserverLayer
