"""Small pictures without a library: PNG images of arrays, and lines as SVG."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

__all__ = ["as_image", "line", "png", "png_source"]

Array = np.ndarray[Any, Any]
_SMALLEST, _LARGEST = 8, 512


def as_image(values: Array) -> Array | None:
    """Bytes [H, W] or [H, W, 3] of values [H, W], [1 or 3, H, W] or [H, W, 1 or 3] from their least to their greatest;
    None for any other shape, and of one too small or too large to look at."""
    if values.ndim == 3 and values.shape[0] in (1, 3):
        values = values.transpose(1, 2, 0)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[..., 0]
    if values.ndim not in (2, 3) or (values.ndim == 3 and values.shape[2] != 3):
        return None
    if min(values.shape[:2]) < _SMALLEST or max(values.shape[:2]) > _LARGEST:
        return None
    scaled: Array = np.rint(255 * _unit(values)).astype(np.uint8)
    return scaled


def _unit(values: Array) -> Array:
    """From 0 to 1; what is not finite counts as the least."""
    wide = values.astype(np.float64)
    finite = np.isfinite(wide)
    if not finite.any():
        return np.zeros(wide.shape)
    low, high = wide[finite].min(), wide[finite].max()
    scaled: Array = (np.where(finite, wide, low) - low) / ((high - low) or 1.0)
    return scaled


def png_source(image: Array) -> str:
    """An image as the source of an ``<img>``."""
    return "data:image/png;base64," + base64.b64encode(png(image)).decode()


def png(image: Array) -> bytes:
    """An image as the bytes of a PNG file."""
    height, width = image.shape[:2]
    colour = 2 if image.ndim == 3 else 0
    rows = image.reshape(height, -1)
    data = zlib.compress(np.insert(rows, 0, 0, axis=1).tobytes())  # each row begins with its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def line(values: Array, width: int = 240, height: int = 48) -> str:
    """A vector as a line; long ones by the mean of neighbours."""
    if values.size > width:
        values = np.array([part.mean() for part in np.array_split(values.astype(np.float64), width)])
    up = height - 1 - (height - 2) * _unit(values)
    across = np.linspace(0, width, values.size)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, up, strict=True))
    return (
        f"<svg role='img' aria-label='values as a line' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}'><polyline fill='none' stroke='#1f77b4' points='{points}'/></svg>"
    )
