"""Weights that a tensor's name determines, so that records hold names and shapes instead of numbers."""

import zlib

import numpy as np


def weights(name: str, shape: list[int]) -> np.ndarray:
    """Float32 numbers for the tensor ``name``: about 1 for norms, small for biases, of the size that keeps activations
    near 1 for matrices."""
    draw = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape)
    if len(shape) == 1:
        is_scale = ("norm" in name.lower() and name.endswith("weight")) or (".ln_" in name and name.endswith("weight"))
        return ((1.0 if is_scale else 0.0) + 0.2 * draw).astype(np.float32)
    return (draw * (0.5 if "embed" in name or "wte" in name else 1.2 / np.sqrt(shape[-1]))).astype(np.float32)
