"""The argosy intermediate representation: an IR toolkit in pure Python."""

from argosy_pir.__about__ import __version__

__all__ = ["__version__"]
