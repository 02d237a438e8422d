"""Paddle's module of distances, for code that takes layers from where Paddle defines them."""

from argosy.nn.geometry import PairwiseDistance

__all__ = ["PairwiseDistance"]
