"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.geometry import PairwiseDistance as PairwiseDistance
