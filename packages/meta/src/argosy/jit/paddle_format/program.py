"""From Paddle's files to a program of argosy with its weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from argosy.jit.input_spec import InputSpec
from argosy.jit.lowering import simplify
from argosy.jit.paddle_format.document import Document, Step
from argosy.jit.paddle_format.operators import Constant, run_operator
from argosy.jit.paddle_format.parameters import read_parameters
from argosy.jit.specs import spec_type
from argosy_infer.errors import ProgramFileError
from argosy_infer.export import LoadedProgram
from argosy_phi_ops.capture import Tracer
from argosy_phi_ops.context import set_grad_enabled
from argosy_pir import Operation
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.storage import Strided
from argosy_tensorcore.tensor import Tensor

__all__ = ["load_paddle_program"]


def load_paddle_program(path: str | Path, weights: Path | None = None) -> LoadedProgram:
    """The program that Paddle wrote as ``<path>.json`` and ``<path>.pdiparams`` (or the file ``weights``), captured
    with argosy's operators.

    Sizes that it leaves open stay open. Raises ProgramFileError naming the file that is missing or damaged,
    NotImplementedError naming an operator that is not known here.
    """
    base = Path(path)
    program_file, weight_file = base.with_name(base.name + ".json"), weights or base.with_name(base.name + ".pdiparams")
    document = Document(_read(program_file), str(program_file))
    names = [step.attributes["name"] for step in document.parameters]
    arrays = read_parameters(_read(weight_file), names, str(weight_file)) if names else {}
    _check(document, arrays, weight_file)
    return _captured(document, arrays, str(program_file))


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


def _captured(document: Document, arrays: dict[str, Any], file: str) -> LoadedProgram:
    states = {name: Tensor._wrap(Strided.from_array(array)) for name, array in arrays.items()}
    for name, tensor in states.items():
        tensor.name = name
    recording = set_grad_enabled(False)
    try:
        with Tracer("forward") as tracer:
            outputs = _run(document, states, _Inputs(tracer), file)
            captured = tracer.finish(outputs)
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


def _run(document: Document, states: dict[str, Tensor], inputs: _Inputs, file: str) -> list[Tensor]:
    values: dict[int, Any] = {0: None}
    outputs: dict[int, Any] = {}
    special: dict[str, Callable[[Step], Any]] = {
        "parameter": lambda step: states.get(step.attributes["name"]),
        "data": inputs.make,
        "fetch": lambda step: outputs.setdefault(int(step.attributes["col"]), values[step.operands[0]]),
    }
    for step in document.steps:
        try:
            if step.name in special:
                results: Any = special[step.name](step)
            else:
                results = run_operator(step.name, [values[i] for i in step.operands], step.attributes)
            values.update(_results(step, results))
        except ProgramFileError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise ProgramFileError(f"{file}: operator {step.name} is damaged: {error!r:.200}") from error
    return [x.tensor() if isinstance(x, Constant) else x for _, x in sorted(outputs.items())]


def _results(step: Step, results: Any) -> dict[int, Any]:
    """The values of the step's results by their numbers."""
    many = len(step.results) > 1 or (step.name == "split" and len(step.operands) == 1)
    if not many and step.name in ("split", "split_with_num"):
        results = results[0]
    return dict(zip(step.results, results if many else [results], strict=len(step.results) == 1))
