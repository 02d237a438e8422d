"""Written by ``python -m argosy.api.stubs``."""


