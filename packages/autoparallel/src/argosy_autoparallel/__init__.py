"""Process meshes, placements and automatic parallelism for argosy."""

from argosy_autoparallel.__about__ import __version__

__all__ = ["__version__"]
