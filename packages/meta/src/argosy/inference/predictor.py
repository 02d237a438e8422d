"""Predictors with handles: values are put into inputs by name, and read from outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from argosy.inference.config import Config
from argosy.inference.kinds import DataType
from argosy.jit.paddle_format.program import read_paddle_program
from argosy.jit.paddle_format.stepwise import StepwiseProgram
from argosy_cinn.runtime.workers import default_threads, set_threads
from argosy_infer.export import LoadedProgram, load_program
from argosy_infer.predictor import Predictor as Program
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor as DenseTensor

__all__ = ["Predictor", "PredictorPool", "Tensor", "create_predictor"]

Array = np.ndarray[Any, Any]


class Tensor:
    """A handle of an input or output of a predictor, which makes it."""

    def __init__(self, name: str, is_output: bool = False) -> None:
        self._name, self._is_output = name, is_output
        self._shape: list[int] = [0]
        self._array: Array | None = None

    def reshape(self, shape: Sequence[int] | int) -> None:
        """The shape that will come; ``copy_from_cpu`` brings its own."""
        self._shape = [shape] if isinstance(shape, int) else [int(n) for n in shape]

    def copy_from_cpu(self, data: Array) -> None:
        """Put a copy of an array in. Raises TypeError for what is none."""
        if not isinstance(data, np.ndarray):
            raise TypeError(f"In copy_from_cpu, we only support numpy ndarray data type, got {type(data).__name__}.")
        self._put(data.copy())

    def share_external_data(self, data: DenseTensor) -> None:
        """Read the memory of a tensor when the predictor runs."""
        if not isinstance(data, DenseTensor):
            raise TypeError(f"In share_external_data, we only support Tensor, got {type(data).__name__}.")
        self._put(to_numpy(data))

    def _put(self, array: Array) -> None:
        if self._is_output:
            raise RuntimeError(f"{self._name} is an output: the predictor writes it")
        self._array, self._shape = array, list(array.shape)

    def copy_to_cpu(self) -> Array:
        """A copy of the value. Raises RuntimeError before there is one."""
        if self._array is None:
            wanted = "run() the predictor" if self._is_output else "copy_from_cpu()"
            raise RuntimeError(f"{self._name} has no value yet: {wanted} first")
        return self._array.copy()

    def shape(self) -> list[int]:
        """The sizes."""
        return list(self._shape)

    def type(self) -> DataType:
        """The dtype, FLOAT32 before there is a value."""
        return DataType.FLOAT32 if self._array is None else DataType[self._array.dtype.name.upper()]

    def lod(self) -> list[list[int]]:
        """No levels: sequences of unequal lengths are padded."""
        return []

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Raises NotImplementedError for any level."""
        if len(lod):
            raise NotImplementedError("set_lod: levels of sequences are not implemented; pad them")


class Predictor:
    """A model, made by :func:`create_predictor`."""

    def __init__(self, program: Program | StepwiseProgram) -> None:
        self._program = program
        self._inputs = {name: Tensor(name) for name in program.input_names}
        # As Paddle names what a program returns.
        self._outputs = {f"fetch_name_{i}": Tensor(f"fetch_name_{i}", True) for i in range(len(program.output_names))}

    def get_input_names(self) -> list[str]:
        """Names of the inputs, in order."""
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """Names of the outputs, in order."""
        return list(self._outputs)

    def get_input_handle(self, name: str) -> Tensor:
        """The handle of an input. Raises RuntimeError for a name that is none."""
        return _handle(self._inputs, name)

    def get_output_handle(self, name: str) -> Tensor:
        """The handle of an output. Raises RuntimeError for a name that is none."""
        return _handle(self._outputs, name)

    def run(self, inputs: Sequence[DenseTensor] | None = None) -> list[DenseTensor] | None:
        """Run on what the handles hold, and fill those of the outputs; or on tensors in order, and return tensors.

        Raises InputError for inputs that do not fit, RuntimeError for an input without a value.
        """
        given = [handle.copy_to_cpu() for handle in self._inputs.values()] if inputs is None else inputs
        arrays = self._program.run(*(to_numpy(x) if isinstance(x, DenseTensor) else x for x in given))
        for handle, array in zip(self._outputs.values(), arrays, strict=True):
            handle._array, handle._shape = array, list(array.shape)
        if inputs is None:
            return None
        return [DenseTensor._wrap(StridedArray.from_array(array)) for array in arrays]

    def clone(self) -> Predictor:
        """A predictor of the same program and weights with handles of its own, for another thread."""
        states = {name: state.to_host() for name, state in self._program.states.items()}
        if isinstance(self._program, StepwiseProgram):
            return Predictor(self._program.with_weights(states))
        return Predictor(Program(LoadedProgram(self._program.program, states), device=self._program.device))

    def clear_intermediate_tensor(self) -> None:
        """Nothing to do: intermediates lie in one arena, which the next run uses again."""

    def try_shrink_memory(self) -> int:
        """0, the bytes given back: intermediates lie in one arena, which the next run uses again."""
        return 0


class PredictorPool:
    """``size`` predictors that share weights, one for each thread."""

    def __init__(self, config: Config, size: int = 1) -> None:
        first = create_predictor(config)
        self._predictors = [first, *(first.clone() for _ in range(size - 1))]

    def retrieve(self, index: int) -> Predictor:
        """The predictor of that number. Raises IndexError."""
        return self._predictors[index]


def create_predictor(config: Config) -> Predictor:
    """The predictor of a model. Raises RuntimeError naming a file that is not there, ProgramFileError one that is
    damaged, NotImplementedError an operator of Paddle's that is not known here.
    """
    file = config.path()
    if file.suffix == ".json":
        weights = Path(config.params_file()) if config.params_file() else None
        loaded = read_paddle_program(file.with_suffix(""), weights)
    else:
        loaded = load_program(file.with_suffix(""))
    stepwise = isinstance(loaded, StepwiseProgram)
    if stepwise and not config._place.is_cpu_place():
        raise NotImplementedError(f"inference: {file} is run operator by operator, which is not implemented on devices")
    predictor = Predictor(loaded if isinstance(loaded, StepwiseProgram) else Program(loaded, device=config._place))
    if config._threads is not None:
        set_threads(min(config._threads, default_threads()))
    return predictor


def _handle(handles: dict[str, Tensor], name: str) -> Tensor:
    if name not in handles:
        raise RuntimeError(f"The variable named {name} is not found in the program; there are {list(handles)}")
    return handles[name]
