"""The argosy device contract: memory, kernels, streams, communicators, worker threads."""

from argosy_hwadapt.__about__ import __version__

__all__ = ["__version__"]
