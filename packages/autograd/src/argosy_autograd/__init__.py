"""Automatic differentiation for argosy: eager tape and program transforms from one rule per primitive."""

from argosy_autograd.__about__ import __version__

__all__ = ["__version__"]
