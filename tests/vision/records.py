"""Arrays as text: of a large one, elements at equal steps."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("wheel.json")
_MOST = 300


def sampled(array: np.ndarray) -> np.ndarray:
    """At most about 300 elements of ``array``."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat[:: -(-flat.size // _MOST)] if flat.size > _MOST else flat


def entry(array: np.ndarray) -> Any:
    """What is recorded of an array: shape, dtype, elements; of a text, the text."""
    if array.dtype.kind == "U":
        return str(array)
    packed = base64.b64encode(zlib.compress(sampled(array).tobytes(), 9)).decode()
    return [list(array.shape), array.dtype.str, packed]


def save(made: dict[str, np.ndarray]) -> None:
    """Write the records."""
    FILE.write_text(json.dumps({k: entry(v) for k, v in made.items()}, indent=0, sort_keys=True) + "\n")


def load() -> dict[str, Any]:
    """By name: a text, or shape, dtype and sampled elements."""
    found = json.loads(FILE.read_text())
    for name, value in found.items():
        if not isinstance(value, str):
            shape, dtype, packed = value
            found[name] = shape, dtype, np.frombuffer(zlib.decompress(base64.b64decode(packed)), dtype)
    return found
