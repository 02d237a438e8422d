"""Written by ``python -m argosy.api.stubs``."""

from argosy.quantization.quanters.lsq import FakeQuanterLSQ as FakeQuanterLSQ
from argosy.quantization.quanters.lsq import FakeQuanterLSQLayer as FakeQuanterLSQLayer
from argosy.quantization.quanters.abs_max import FakeQuanterWithAbsMaxObserver as FakeQuanterWithAbsMaxObserver
from argosy.quantization.quanters.abs_max import FakeQuanterWithAbsMaxObserverLayer as FakeQuanterWithAbsMaxObserverLayer
