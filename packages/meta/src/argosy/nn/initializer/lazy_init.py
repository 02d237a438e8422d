"""Layers without values, under the older address."""

from argosy.nn.lazy import LazyGuard

__all__ = ["LazyGuard"]
