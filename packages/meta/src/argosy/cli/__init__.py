"""The ``argosy`` command: ``run-check``, ``info``, ``devices``."""

from argosy.cli.main import main

__all__ = ["main"]
