"""ONNX files: Paddle's converter, which is a package of its own. `backend` runs models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NoReturn

from argosy.utils.checks import try_import

__all__ = ["export"]


def export(
    layer: Any,
    path: str | os.PathLike[str],
    input_spec: Sequence[Any] | None = None,
    opset_version: int = 9,
    **configs: Any,
) -> NoReturn:
    """Raises ImportError without the package ``paddle2onnx``, as Paddle does, and NotImplementedError with it: it reads
    programs in Paddle's files, which argosy does not write. ``jit.save`` writes what ``argosy_infer`` serves."""
    try_import(
        "paddle2onnx", "onnx.export() needs paddle2onnx, which is not installed; jit.save() exports to argosy_infer"
    )
    raise NotImplementedError("onnx.export: paddle2onnx reads Paddle's own program files, which argosy does not write")
