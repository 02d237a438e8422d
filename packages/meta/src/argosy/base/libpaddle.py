"""What libraries take from Paddle's extension module itself: the type of dtypes."""

from argosy.framework.core import DataType

__all__ = ["DataType"]
