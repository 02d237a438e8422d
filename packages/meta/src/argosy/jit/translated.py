"""Exported programs as layers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from operator import is_not
from pathlib import Path
from typing import Any, Self

from argosy.jit.paddle_format.program import read_paddle_program
from argosy.jit.paddle_format.stepwise import StepwiseProgram
from argosy.jit.properties import PROPERTIES, property_methods
from argosy.jit.replay import check_replayable, is_replayable, replay
from argosy.nn.layer import Layer
from argosy_autograd.modes import is_grad_enabled, set_grad_enabled
from argosy_infer.errors import ProgramFileError
from argosy_infer.export import LoadedProgram, load_methods, load_program
from argosy_infer.predictor import Predictor
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.eager.placement import device_of
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.storage import StridedArray, host_device
from argosy_tensorcore.tensor import Tensor
from argosy_tensorcore.wait_notice import announce_wait

__all__ = ["METHODS", "TranslatedLayer", "load"]

METHODS = "argosy.methods"
"""The attribute of the program of ``forward`` that names the methods written beside it."""


class TranslatedLayer(Layer):
    """A layer whose forward runs an exported program, and whose other methods run those exported with it. Its weights
    have the names they were exported with: parameters where they were trained, else buffers.

    In evaluation mode, in which it comes, the program is compiled, and no gradients flow. In training mode it runs
    operator by operator, as a program of Paddle's whose sizes depend on data always does (boxes that are kept, a list
    that a loop fills); what it does is that of evaluation (it was exported so): nothing is dropped, and statistics
    stay. ``jit.load`` makes it: of ``programs``, predictors by the name of the method, and ``persistable_vars``, the
    states that they share. It runs where its weights are: ``to`` moves it.
    """

    def __init__(
        self, programs: Mapping[str, Predictor | StepwiseProgram], persistable_vars: Mapping[str, StridedArray]
    ) -> None:
        super().__init__()
        self.__dict__["_programs"] = dict(programs)
        self.__dict__["training"] = False
        trained = {name for p in programs.values() for name in _trainable_names(p)}
        for name, payload in persistable_vars.items():
            tensor = Tensor._wrap(payload, name not in trained)
            tensor.name, tensor.persistable, tensor.is_parameter = name, True, name in trained
            (self._parameters if name in trained else self._buffers)[name] = tensor
        for name in programs:
            if name != "forward":
                self.__dict__[name] = partial(self._run, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> TranslatedLayer:
        """A layer of the same programs with weights of its own."""
        held = {**self._parameters, **self._buffers}
        values = {name: tensor.numpy().copy() for name, tensor in held.items() if tensor is not None}
        copy = _layer_of({name: _with_weights(p, values) for name, p in self._programs.items()})
        memo[id(self)] = copy
        for name, tensor in {**copy._parameters, **copy._buffers}.items():
            tensor.payload = tensor.to(held[name].place).payload
            tensor.stop_gradient = held[name].stop_gradient
            memo[id(held[name])] = tensor
        own = {"_programs", *self._programs}
        copy.__dict__.update({name: deepcopy(x, memo) for name, x in self.__dict__.items() if name not in own})
        return copy

    def forward(self, *inputs: Any) -> Any:
        """The program's outputs: one tensor, or a list of them. Raises InputError for inputs that do not fit."""
        return self._run("forward", *inputs)

    def _run(self, method: str, *inputs: Any) -> Any:
        predictor = self._programs[method]
        if isinstance(predictor, StepwiseProgram):
            return self._stepwise(predictor, inputs)
        if self.training:
            check_replayable(predictor.program)
        if self.training or (active_tracer() is not None and is_replayable(predictor.program)):
            tensors = [x if type(x) is Tensor else Tensor(x) for x in inputs]
            results = replay(predictor.program, tensors, {**self._parameters, **self._buffers})
            return results[0] if len(results) == 1 else results
        self._follow(method, predictor, inputs)
        if predictor.device.is_host:
            arrays = [to_numpy(x) if type(x) is Tensor else x for x in inputs]
            made = [StridedArray.from_array(a) for a in predictor.run(*arrays)]
        else:
            made = predictor.call([x.payload if type(x) is Tensor else StridedArray.from_array(x) for x in inputs])
        outputs = [Tensor._wrap(payload) for payload in made]
        return outputs[0] if len(outputs) == 1 else outputs

    def _follow(self, method: str, predictor: Predictor, inputs: Sequence[Any]) -> None:
        """Let ``predictor`` run where the weights and the ``inputs`` are, with the weights as they are. Raises
        DeviceMismatch where they are on two devices."""
        held = {**self._parameters, **self._buffers}
        weights = [held[name] for name in predictor.states]
        device = device_of(method, [*weights, *inputs]) or host_device()
        payloads = [weight.payload for weight in weights]
        if device is not predictor.device or any(map(is_not, payloads, predictor.states.values())):
            predictor.move(device, dict(zip(predictor.states, payloads, strict=True)))

    def _stepwise(self, program: StepwiseProgram, inputs: Sequence[Any]) -> Any:
        with set_grad_enabled(self.training and is_grad_enabled()):
            results = program.run_tensors(inputs, {**self._parameters, **self._buffers})
        return results[0] if len(results) == 1 else results

    def program(self, method_name: str = "forward") -> Any:
        """The program of a method. Raises ValueError for one that was not exported."""
        if method_name not in self._programs:
            raise ValueError(f"program: no method {method_name!r} was exported; there are {sorted(self._programs)}")
        return self._programs[method_name].program

    def train(self, mode: bool = True) -> Self:
        """Training mode, or evaluation. Raises NotImplementedError for training a program with loops or branches."""
        if mode:
            for predictor in self._programs.values():
                if isinstance(predictor, Predictor):
                    check_replayable(predictor.program)
        self.__dict__["training"] = mode
        return self

    def eval(self) -> Self:
        """Evaluation mode: the program runs compiled."""
        return self.train(False)


def load(path: str | os.PathLike[str], **configs: Any) -> TranslatedLayer:
    """The layer of what :func:`argosy.jit.save` wrote to ``path``, or Paddle 3 (``.json`` and ``.pdiparams``), with the
    methods that were written beside it. States of the same name are one state of all.

    Raises ProgramFileError naming the file that is missing, damaged, or of another export, NotImplementedError naming
    an operator of Paddle's that is not known here.
    """
    if configs:
        raise NotImplementedError(f"jit.load() has no option {sorted(configs)}")
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"jit.load(): argument 'path' must be a path, got {path!r:.60}")
    return _load(os.fspath(path))


def _load(base: str) -> TranslatedLayer:
    if os.path.exists(base + ".json") and not os.path.exists(base + ".pir"):
        files = {"forward": base, **{method: f"{base}.{method}" for method in _saved_methods(base)}}
        with announce_wait(f"loading {base}"):
            return _layer_of({name: read_paddle_program(file) for name, file in files.items()})
    forward = load_program(base)
    methods = _method_names(forward.program.attributes.get(METHODS, ()), base)
    made = _layer_of({"forward": forward, **load_methods(base, forward, methods)})
    try:
        vars(made).update(property_methods(forward.program.attributes.get(PROPERTIES, {}), _is_method))
    except ValueError as error:
        raise ProgramFileError(f"{base}.pir: {error}") from None
    return made


def _layer_of(methods: Mapping[str, LoadedProgram | StepwiseProgram]) -> TranslatedLayer:
    """The layer of the programs of methods. States of the same name are one state of all."""
    programs: dict[str, Predictor | StepwiseProgram] = {}
    states: dict[str, StridedArray] = {}
    for method, loaded in methods.items():
        own = loaded.arrays if isinstance(loaded, StepwiseProgram) else loaded.states
        shared = {name: states[name].array() if name in states else a for name, a in own.items()}
        bound = _with_weights(loaded, shared)
        programs[method] = bound if isinstance(bound, StepwiseProgram) else Predictor(bound)
        states = {**programs[method].states, **states}
    return TranslatedLayer(programs, states)


def _trainable_names(program: Predictor | StepwiseProgram) -> list[str]:
    """The names of the states that were trained."""
    if isinstance(program, StepwiseProgram):
        return program.trainable
    return [s.name for s in program.program.states if s.attributes.get("trainable")]


def _with_weights(
    program: Predictor | LoadedProgram | StepwiseProgram, arrays: dict[str, Any]
) -> LoadedProgram | StepwiseProgram:
    """The program with other weights."""
    if isinstance(program, StepwiseProgram):
        return program.with_weights(arrays)
    return LoadedProgram(program.program, arrays)


def _method_names(names: Any, base: str) -> list[str]:
    """The methods that a program names. Raises ProgramFileError for what are no names of methods."""
    if not isinstance(names, tuple) or not all(isinstance(n, str) and _is_method(n) for n in names):
        raise ProgramFileError(f"{base}.pir names methods {names!r:.80}, which are none of a layer")
    return list(names)


def _is_method(name: str) -> bool:
    """Whether a file's name may become an attribute: a name that no layer has."""
    return name.isidentifier() and not hasattr(Layer, name)


def _saved_methods(base: str) -> list[str]:
    """The methods that Paddle wrote beside ``forward``, by their files."""
    pattern = re.compile(re.escape(Path(base).name) + r"\.(\w+)\.json")
    found = (pattern.fullmatch(file.name) for file in Path(base).parent.iterdir())
    return sorted(match[1] for match in found if match and _is_method(match[1]))
