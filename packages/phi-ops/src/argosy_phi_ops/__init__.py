"""The argosy operator library: one declaration per operator."""

from argosy_phi_ops.__about__ import __version__

__all__ = ["__version__"]
