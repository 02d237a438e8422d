"""Load, optimise and run exported argosy programs."""

from argosy_infer.__about__ import __version__

__all__ = ["__version__"]
