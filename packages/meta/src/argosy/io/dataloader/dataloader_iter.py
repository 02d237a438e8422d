"""Where Paddle has the iterators of a ``DataLoader``: here they are iterators like any other."""

from collections.abc import Iterator as _DataLoaderIterBase

__all__ = ["_DataLoaderIterBase"]
