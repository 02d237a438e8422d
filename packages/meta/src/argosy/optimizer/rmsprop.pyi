"""Written by ``python -m argosy.api.stubs``."""

from argosy.optimizer.adaptive import RMSProp as RMSProp
