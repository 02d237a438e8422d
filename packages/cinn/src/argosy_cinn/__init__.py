"""The argosy fusion compiler: programs in, native executables out."""

from argosy_cinn.__about__ import __version__

__all__ = ["__version__"]
