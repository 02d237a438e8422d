"""Written by ``python -m argosy.api.stubs``."""

from argosy.distribution.distribution import ExponentialFamily as ExponentialFamily
