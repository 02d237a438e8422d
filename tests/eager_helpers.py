"""What tests of eager execution share."""

from __future__ import annotations

import numpy as np

import argosy as paddle
from argosy_phi_ops.eager import native


def tensor(a: object, wants: bool = False, dtype: str = "float32") -> paddle.Tensor:
    return paddle.to_tensor(np.asarray(a, dtype), stop_gradient=not wants)


def is_native() -> bool:
    return native.status() == "native"


def made_natively(x: paddle.Tensor) -> bool:
    return x.payload._memory is not None
