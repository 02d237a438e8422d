"""Dtypes, strided storage, Tensor, interchange, safetensors and the counter-based RNG of argosy."""

from argosy_tensorcore.__about__ import __version__

__all__ = ["__version__"]
