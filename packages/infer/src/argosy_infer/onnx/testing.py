"""The cases of nodes that the library ``onnx`` brings, run on a device: each is a model with inputs and outputs.

What is counted are cases of plain tensors, of numbers and truth values. The others, and those of plain tensors that are
known not to pass, have a reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from typing import Any

import numpy as np
import onnx

from argosy_hwadapt import Device
from argosy_infer.onnx.document import dtype_name, read_array
from argosy_infer.onnx.session import Session
from argosy_tensorcore.dtype import as_dtype, finfo
from argosy_tensorcore.place import Place

__all__ = ["EXCLUDED", "Case", "cases"]

Array = np.ndarray[Any, Any]

EXCLUDED = {
    "test_bernoulli*": "random numbers of another generator",
    "test_training_dropout*": "random numbers of another generator",
    "test_nonmaxsuppression_*": "the size of a result depends on data",
    "test_nonzero_example": "the size of a result depends on data",
    "test_unique_*axis*": "the size of a result depends on data",
    "test_image_decoder_*": "files of pictures",
    "test_qlinearmatmul_?D_int8_*": "results wrap around that the format says are saturated",
}
"""Patterns of names of cases of plain tensors that do not pass, and why."""
_KEPT = ("test_training_dropout_zero_ratio*", "test_unique_*_without_axis")
"""Names that a pattern covers though they pass."""

#: Results may differ by shares of the expected element, and of the largest one; the latter is at
#: least what the dtype tells apart.
_OF_EACH, _OF_LARGEST = 1e-3, 2e-6


@dataclass(frozen=True)
class Case:
    """The case in ``folder``."""

    folder: str

    @property
    def name(self) -> str:
        """Its name, ``test_...``."""
        return os.path.basename(self.folder)

    @cached_property
    def model(self) -> Any:
        """Its ``onnx.ModelProto``."""
        return onnx.load(os.path.join(self.folder, "model.onnx"))

    @property
    def kind(self) -> str:
        """Why it is none of plain tensors; empty for one that is."""
        for domain in (each.domain for each in self.model.opset_import):
            if domain not in ("", "ai.onnx"):
                return f"operators of {domain}"
        for x in [*self.model.graph.input, *self.model.graph.output]:
            kind = x.type.WhichOneof("value")
            if kind != "tensor_type":
                return f"{kind.removesuffix('_type')}s"
            try:
                dtype_name(x.type.tensor_type.elem_type, "")
            except NotImplementedError as error:
                return f"elements of type {str(error).rpartition(' ')[2]}"
        return ""

    @property
    def exclusion(self) -> str:
        """Why it does not pass, though of plain tensors; empty for one that has to."""
        if any(fnmatch(self.name, kept) for kept in _KEPT):
            return ""
        return next((reason for pattern, reason in EXCLUDED.items() if fnmatch(self.name, pattern)), "")

    def difference(self, compiler: str | None = None, device: str | Place | Device | None = None) -> str:
        """Run it: how its results differ from those expected; empty where they do not."""
        session = Session(self.model, compiler, device)
        found = session.run(*self._arrays("input", self.model.graph.input))
        expected = self._arrays("output", self.model.graph.output)
        for name, want, got in zip(session.output_names, expected, found, strict=True):
            if (got.dtype, got.shape) != (want.dtype, want.shape):
                return f"{name} is {got.dtype} {list(got.shape)}, not {want.dtype} {list(want.shape)}"
            if not _is_close(want, got):
                return f"{name} differs from what is expected"
        return ""

    def _arrays(self, kind: str, infos: Any) -> list[Array]:
        path = os.path.join(self.folder, "test_data_set_0", kind)
        return [read_array(onnx.load_tensor(f"{path}_{i}.pb"), None) for i in range(len(infos))]


def _is_close(want: Array, got: Array) -> bool:
    if want.dtype.kind in "biu":
        return bool(np.array_equal(want, got))
    wide = want.astype(np.float64)
    scale = float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0))
    share = max(_OF_LARGEST, float(finfo(as_dtype(want.dtype)).eps))
    return bool(np.allclose(got.astype(np.float64), wide, _OF_EACH, share * scale + 1e-7, equal_nan=True))


def cases() -> Iterator[Case]:
    """All cases of nodes, by name; none where the installed ``onnx`` brings none."""
    folder = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "node")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return (Case(os.path.join(folder, name)) for name in names)
