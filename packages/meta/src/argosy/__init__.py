"""A complete deep-learning framework in Python with the system architecture of PaddlePaddle 3."""

from argosy.__about__ import __version__

__all__ = ["__version__"]
