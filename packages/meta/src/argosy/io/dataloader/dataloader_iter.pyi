"""Written by ``python -m argosy.api.stubs``."""

from collections.abc import Iterator as _own__DataLoaderIterBase
_DataLoaderIterBase = _own__DataLoaderIterBase
