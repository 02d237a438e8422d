"""Paddle's programs whose sizes depend on data, such as detectors' and loops' that collect: run step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from argosy.jit.paddle_format.document import Document, Step
from argosy.jit.paddle_format.running import run
from argosy_autograd.modes import no_grad
from argosy_infer.errors import InputError
from argosy_tensorcore.casting import cast_exactly
from argosy_tensorcore.conversion import DataError
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["StepwiseProgram"]

Array = np.ndarray[Any, Any]


class StepwiseProgram:
    """A program that runs operator by operator, with Python's branches and loops, as the values tell.

    It has what a predictor has: ``states`` by name, ``input_names``, ``output_names``, ``run``; and ``reason``, why it
    could not be captured.
    """

    def __init__(self, document: Document, arrays: Mapping[str, Array], file: str, reason: str) -> None:
        self.document, self.file, self.reason = document, file, reason
        self.arrays = dict(arrays)
        self.states = {name: StridedArray.from_array(array) for name, array in arrays.items()}
        self.inputs = [step.attributes for step in document.steps if step.name == "data"]
        self.input_names = [str(a["name"]) for a in self.inputs]
        self.output_names = [str(s.attributes["name"]) for s in document.steps if s.name == "fetch"]

    @property
    def program(self) -> Document:
        """What Paddle wrote."""
        return self.document

    @property
    def trainable(self) -> list[str]:
        """The names of the states that Paddle trained."""
        found = (step.attributes for step in self.document.parameters)
        return [a["name"] for a in found if a["trained"]]

    def with_weights(self, arrays: Mapping[str, Array]) -> StepwiseProgram:
        """The program with other weights."""
        return StepwiseProgram(self.document, arrays, self.file, self.reason)

    def run(self, *arrays: Any) -> list[Array]:
        """The outputs for inputs in order. Raises InputError for inputs that do not fit."""
        states = {name: Tensor._wrap(payload) for name, payload in self.states.items()}
        with no_grad():
            return [to_numpy(t) for t in self.run_tensors(arrays, states)]

    def run_tensors(self, inputs: Sequence[Any], states: Mapping[str, Tensor]) -> list[Tensor]:
        """The outputs for inputs in order, which the tape sees. Raises InputError for inputs that do not fit."""
        if len(inputs) != len(self.inputs):
            raise InputError(f"the program takes {len(self.inputs)} inputs {self.input_names}, got {len(inputs)}")
        given = {str(a["name"]): _fit(a, x) for a, x in zip(self.inputs, inputs, strict=True)}

        def data(step: Step) -> Tensor:
            return given[str(step.attributes["name"])]

        return run(self.document, states, data, self.file)


def _check_values(name: str, given: Tensor, dtype: str) -> None:
    """Raise InputError where integers do not fit the dtype of the input."""
    try:
        cast_exactly(given.numpy(), as_dtype(dtype))
    except DataError as error:
        raise InputError(f"input {name!r} {error}") from None


def _fit(a: Mapping[str, Any], x: Any) -> Tensor:
    given = x if type(x) is Tensor else Tensor(x)
    shape, dtype = [int(n) for n in a["shape"]], str(a["dtype"])
    if given.dtype.name != dtype:
        if not np.can_cast(given.dtype.numpy, np.dtype(dtype), "same_kind"):
            raise InputError(f"input {a['name']!r} has dtype {given.dtype.name}, expected {dtype}")
        if given.dtype.kind in "iu":
            _check_values(str(a["name"]), given, dtype)
        given = given.astype(dtype)
    actual = list(given.shape)
    if len(actual) != len(shape) or any(n >= 0 and n != m for n, m in zip(shape, actual, strict=True)):
        raise InputError(f"input {a['name']!r} has shape {actual}, expected {shape}")
    return given
