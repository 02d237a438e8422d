"""Written by ``python -m argosy.api.stubs``."""

from argosy.optimizer.adam import AdamW as AdamW
