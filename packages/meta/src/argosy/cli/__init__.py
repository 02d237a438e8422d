"""The ``argosy`` command: ``run-check``, ``info``, ``devices``, ``launch``."""

from argosy.cli.main import main

__all__ = ["main"]
