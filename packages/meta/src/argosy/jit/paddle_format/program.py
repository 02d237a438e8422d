"""From Paddle's files to a program of argosy with its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from argosy.jit.input_spec import InputSpec
from argosy.jit.lowering import simplify
from argosy.jit.paddle_format.document import Document, Step
from argosy.jit.paddle_format.parameters import read_parameters
from argosy.jit.paddle_format.running import DATA_DEPENDENT, check_operators, run
from argosy.jit.paddle_format.stepwise import StepwiseProgram
from argosy.jit.specs import spec_type
from argosy_infer.errors import ProgramFileError
from argosy_infer.export import LoadedProgram
from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.context import set_grad_enabled
from argosy_pir import Operation
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["load_paddle_program", "read_paddle_program"]


def load_paddle_program(path: str | Path, weights: Path | None = None) -> LoadedProgram:
    """The program that Paddle wrote as ``<path>.json`` and ``<path>.pdiparams`` (or the file ``weights``), captured
    with argosy's operators.

    Sizes that it leaves open stay open. Raises ProgramFileError naming the file that is missing or damaged,
    NotImplementedError naming an operator that is not known here, or that the program's sizes depend on data.
    """
    found = read_paddle_program(path, weights)
    if isinstance(found, StepwiseProgram):
        raise NotImplementedError(f"{path}.json computes sizes from data: jit.load and inference run it, step by step")
    return found


def read_paddle_program(path: str | Path, weights: Path | None = None) -> LoadedProgram | StepwiseProgram:
    """As :func:`load_paddle_program`, and a program whose sizes depend on data as one that runs step by step."""
    base = Path(path)
    program_file, weight_file = base.with_name(base.name + ".json"), weights or base.with_name(base.name + ".pdiparams")
    document = Document(_read(program_file), str(program_file))
    names = [step.attributes["name"] for step in document.parameters]
    arrays = read_parameters(_read(weight_file), names, str(weight_file)) if names else {}
    _check(document, arrays, weight_file)
    check_operators(document)
    try:
        return _capture(document, arrays, str(program_file))
    except DATA_DEPENDENT as reason:
        return StepwiseProgram(document, arrays, str(program_file), str(reason))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ProgramFileError(f"cannot read {path}: {error.strerror or error}") from error


def _check(document: Document, arrays: dict[str, Any], file: Path) -> None:
    for step in document.parameters:
        name, type = step.attributes["name"], step.types[0]
        if type is not None and arrays[name].size != _count(type[1]):
            raise ProgramFileError(f"{file}: {name} is {list(arrays[name].shape)}, the program expects {list(type[1])}")


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count


def _capture(document: Document, arrays: dict[str, Any], file: str) -> LoadedProgram:
    states = {name: Tensor._wrap(StridedArray.from_array(array)) for name, array in arrays.items()}
    for name, tensor in states.items():
        tensor.name = name
    recording = set_grad_enabled(False)
    try:
        with Tracer("forward") as tracer:
            captured = tracer.finish(run(document, states, _Inputs(tracer).make, file))
    finally:
        set_grad_enabled(recording)
    simplify(captured.program, "cse,dce")
    for state in captured.program.states:
        if not any(_is_statistic(op, i) for op, i in state.argument.uses) and "float" in str(state.type):
            state.attributes["trainable"] = True
    kept = zip(captured.program.states, captured.states, strict=True)
    return LoadedProgram(captured.program, {state.name: to_numpy(t) for state, t in kept})


def _is_statistic(op: Operation, position: int) -> bool:
    """Whether the operand there is a running mean or variance."""
    return op.name == "phi.batch_norm" and position in (1, 2)


class _Inputs:
    """Makes the program's inputs, numbering its open sizes."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer, self.first = tracer, 0

    def make(self, step: Step) -> Tensor:
        """The input that a ``data`` operation stands for."""
        a = step.attributes
        spec = InputSpec([int(n) for n in a["shape"]], a["dtype"], a["name"])
        made = self.tracer.input(spec_type(spec, self.first), spec.name)
        self.first += spec.shape.count(-1)
        return made
