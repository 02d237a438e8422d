"""Written by ``python -m argosy.api.stubs``."""

from argosy.distribution.transforms.base import TransformedDistribution as TransformedDistribution
