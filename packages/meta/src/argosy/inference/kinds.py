"""Numbers that name dtypes, places and precisions, as Paddle Inference counts them."""

from enum import Enum

__all__ = ["DataType", "PlaceType", "PrecisionType"]


class DataType(Enum):
    """The dtype of an input or output."""

    FLOAT32 = 0
    INT64 = 1
    INT32 = 2
    UINT8 = 3
    INT8 = 4
    FLOAT16 = 5
    BOOL = 6
    FLOAT64 = 7
    BFLOAT16 = 8


class PlaceType(Enum):
    """Where a tensor lies: here the cpu."""

    UNK = -1
    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM = 4


class PrecisionType(Enum):
    """What a model computes in."""

    Float32 = 0
    Int8 = 1
    Half = 2
    Bfloat16 = 3
