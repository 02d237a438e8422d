"""Static programs and their tensors in files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.framework import paddle_pickle as pickled
from argosy.framework.serialization import load as load_states
from argosy.framework.serialization import loadable_path, replace_file, save_together
from argosy.jit.paddle_format.program import load_paddle_program
from argosy.static.executor import Executor
from argosy.static.program import Program, default_main_program
from argosy_infer.export import LoadedProgram, load_program, save_program
from argosy_pir.program import Program as Captured
from argosy_pir.program import from_bytes
from argosy_pir.serialization import to_bytes
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "deserialize_persistables", "deserialize_program", "load", "load_from_file", "load_inference_model",
    "load_program_state", "normalize_program", "save", "save_inference_model", "save_to_file",
    "serialize_persistables", "serialize_program", "set_program_state",
]  # fmt: skip

Path = str | os.PathLike[str]


@validate_call
def save(program: Program, model_path: Path, protocol: int = 4, **configs: Any) -> None:
    """Write the program's parameters as ``<model_path>.pdparams`` and its other persistable tensors as ``.pdopt``, both
    at once: :func:`load` gives what one save wrote, wherever another was interrupted.
    """
    if configs:
        raise TypeError(f"static.save() has no argument {sorted(configs)}")
    base = os.fspath(model_path)
    kinds = {".pdparams": "param", ".pdopt": "opt"}
    states = {extension: program.state_dict(mode).items() for extension, mode in kinds.items()}
    save_together({base + e: {name: x.numpy() for name, x in held} for e, held in states.items()}, protocol)


@validate_call
def load(
    program: Program, model_path: Path, executor: Executor | None = None, var_list: Sequence[Tensor] | None = None
) -> None:
    """Give the program's tensors the values that :func:`save` wrote; with ``var_list`` those alone.

    Raises ValueError for values of another shape, or that are missing.
    """
    state = load_program_state(model_path)
    wanted = program.persistables() if var_list is None else {x.name: x for x in var_list}
    missing = sorted(wanted.keys() - state.keys())
    if missing:
        raise ValueError(f"static.load: {os.fspath(model_path)} has no values for {missing}")
    program.set_state_dict({name: state[name] for name in wanted})


@validate_call
def load_program_state(model_path: Path, var_list: Sequence[Tensor] | None = None) -> dict[str, Any]:
    """The arrays that :func:`save` wrote, by name. Raises FileNotFoundError where there are none."""
    base = os.fspath(model_path)
    found: dict[str, Any] = load_states(base + ".pdparams", return_numpy=True)
    if os.path.exists(loadable_path(base + ".pdopt")):
        found |= load_states(base + ".pdopt", return_numpy=True)
    names = None if var_list is None else {x.name for x in var_list}
    return {name: value for name, value in found.items() if names is None or name in names}


@validate_call
def set_program_state(program: Program, state_dict: Mapping[str, Any]) -> None:
    """Give the program's tensors the values of these names."""
    program.set_state_dict(state_dict)


@validate_call
def normalize_program(program: Program, feed_vars: Any, fetch_vars: Any, **kwargs: Any) -> Program:
    """A copy for evaluation that has what ``fetch_vars`` need of ``feed_vars``, and nothing else.

    Raises ValueError where they need other data.
    """
    ended = _with_suffix(program, feed_vars, fetch_vars)
    return _program(ended, program.tracer.tensors())[0]


@validate_call
def serialize_program(feed_vars: Any, fetch_vars: Any, **kwargs: Any) -> bytes:
    """The program from ``feed_vars`` to ``fetch_vars`` as bytes; ``program``: instead of the main one."""
    return to_bytes(_with_suffix(kwargs.get("program") or default_main_program(), feed_vars, fetch_vars))


def deserialize_program(data: bytes) -> Program:
    """What :func:`serialize_program` gave; its parameters are zeros. Nothing is executed.

    Raises ValueError for bytes that are none, or whose parameters are larger than memory.
    """
    ended = from_bytes(data)
    made = {state.name: _zeros(state.name, state.type) for state in ended.states}
    return _program(ended, _tensors(LoadedProgram(ended, made)))[0]


def _zeros(name: str, type_: Any) -> np.ndarray:
    try:  # pages that nobody has written take no memory
        return np.zeros(type_.shape, as_dtype(type_.dtype).numpy)
    except MemoryError:
        raise ValueError(f"deserialize_program(): parameter {name} is {type_}, more than memory holds") from None


@validate_call
def serialize_persistables(feed_vars: Any, fetch_vars: Any, executor: Executor, **kwargs: Any) -> bytes:
    """The tensors that the program from ``feed_vars`` to ``fetch_vars`` reads, as bytes."""
    program = kwargs.get("program") or default_main_program()
    ended, tensors = _with_suffix(program, feed_vars, fetch_vars), program.tracer.tensors()
    return pickled.dumps({state.name: tensors[state.name].numpy() for state in ended.states}, 4)


def deserialize_persistables(program: Program, data: bytes, executor: Executor) -> Program:
    """Give ``program`` the tensors that :func:`serialize_persistables` gave."""
    program.set_state_dict(pickled.loads(data, "deserialize_persistables", lambda array, name: array))
    return program


def save_to_file(path: Path, content: bytes) -> None:
    """Write bytes, atomically."""
    if not isinstance(content, bytes):
        raise ValueError("'content' type should be bytes.")
    replace_file(path, content)


def load_from_file(path: Path) -> bytes:
    """The bytes of a file."""
    with open(path, "rb") as file:
        return file.read()


@validate_call
def save_inference_model(path_prefix: Path, feed_vars: Any, fetch_vars: Any, executor: Executor, **kwargs: Any) -> None:
    """Write the program from ``feed_vars`` to ``fetch_vars``, for evaluation, as ``jit.save`` does: to
    ``<path_prefix>.pir`` and ``.safetensors``, which ``jit.load`` and ``argosy_infer`` read, too.

    program: instead of the main one. Raises ValueError where other data are needed.
    """
    program = kwargs.get("program") or default_main_program()
    ended, tensors = _with_suffix(program, feed_vars, fetch_vars), program.tracer.tensors()
    os.makedirs(os.path.dirname(os.fspath(path_prefix)) or ".", exist_ok=True)
    save_program(ended, {state.name: tensors[state.name].numpy() for state in ended.states}, path_prefix)


@validate_call
def load_inference_model(path_prefix: Path, executor: Executor, **kwargs: Any) -> list[Any]:
    """What :func:`save_inference_model` wrote, or Paddle 3 (``.json`` and ``.pdiparams``): the program, the names of
    its data, and the variables to fetch."""
    base = os.fspath(path_prefix)
    paddles = os.path.exists(base + ".json") and not os.path.exists(base + ".pir")
    loaded = load_paddle_program(base) if paddles else load_program(base)
    program, results = _program(loaded.program, _tensors(loaded))
    return [program, [x.name for x in program.tracer.inputs], results]


def _with_suffix(program: Program, feed_vars: Any, fetch_vars: Any) -> Captured:
    feeds, fetches = (list(x) if isinstance(x, (list, tuple)) else [x] for x in (feed_vars, fetch_vars))
    test = program.clone(for_test=True)
    ended = test.tracer.close_program([test.value_of(x) for x in fetches], frozen=True)
    names = [x.name for x in feeds]
    needed = [x.name_hint or "" for x in ended.inputs]
    if missing := sorted(set(needed) - set(names)):
        raise ValueError(f"fetch_vars need {missing}, which feed_vars ({names}) lack")
    return ended


def _tensors(loaded: LoadedProgram) -> dict[str, Tensor]:
    made = {}
    for name, array in loaded.states.items():
        x = made[name] = Tensor._wrap(StridedArray.from_array(np.ascontiguousarray(array)))
        x.name, x.persistable, x.is_parameter = name, True, True
    return made


def _program(ended: Captured, tensors: Mapping[str, Tensor]) -> tuple[Program, list[Tensor]]:
    """A program that does what a captured one does, and its results."""
    made = Program()
    made.frozen = True
    results = made.tracer.adopt(ended, tensors)
    for x in made.tracer.inputs:
        made.name_variable(x.name, x)
    return made, results
