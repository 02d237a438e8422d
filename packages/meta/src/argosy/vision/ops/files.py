"""Pictures from files, as tensors."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from argosy.argument_checks import validate_call
from argosy.vision.image import host, pillow, reading_picture
from argosy_tensorcore.tensor import Tensor

__all__ = ["decode_jpeg", "read_file"]

_MODES = {"unchanged": None, "gray": "L", "rgb": "RGB"}


@validate_call
def read_file(filename: str, name: str | None = None) -> Tensor:
    """The bytes of a file, uint8 ``[n]``."""
    return Tensor(np.fromfile(Path(filename), np.uint8))


@validate_call
def decode_jpeg(x: Tensor, mode: str = "unchanged", name: str | None = None) -> Tensor:
    """The picture in the bytes ``x``, uint8 ``[C, H, W]``; mode: "unchanged", "gray" or "rgb"."""
    if mode not in _MODES:
        raise ValueError(f"decode_jpeg: mode should be one of {tuple(_MODES)}, got {mode!r}")
    with reading_picture("argument 'x' of decode_jpeg"):
        found = pillow("Image", "decode_jpeg").open(io.BytesIO(host(x).astype(np.uint8).tobytes()), formats=["JPEG"])
        values = np.array(found if _MODES[mode] is None else found.convert(_MODES[mode]))
    return Tensor(np.ascontiguousarray(values[None] if values.ndim == 2 else values.transpose(2, 0, 1)))
