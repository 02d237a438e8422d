"""Writing a layer's forward function as a program with weights, for ``argosy_infer`` to load and serve."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from typing import Any

from argosy.checked import checked
from argosy.jit.conversion.source import converted, converted_callee
from argosy.jit.input_spec import InputSpec
from argosy.jit.specs import alike, spec_types
from argosy.jit.static_function import StaticFunction
from argosy.jit.structure import leaves, map_items
from argosy.jit.tracing import explain_break
from argosy.nn.layer import Layer
from argosy_infer import save_program
from argosy_phi_ops.capture import Captured, Tracer
from argosy_phi_ops.context import set_grad_enabled
from argosy_phi_ops.errors import GraphBreak, ShapeError
from argosy_pir.passes import PassManager
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = ["save"]

_PIPELINE = "cse,dce"


@checked
def save(layer: Any, path: str | os.PathLike[str], input_spec: Sequence[Any] | None = None, **configs: Any) -> None:
    """Write the forward function of ``layer`` (or a function) as ``<path>.pir`` and ``<path>.safetensors``.

    It is captured in evaluation mode without gradients. input_spec: an InputSpec or a tensor (or lists and
    dictionaries of them) for each argument. The inputs and outputs of the program are the tensors in order, those of
    dictionaries by their sorted keys; what else is returned is left out, as in Paddle. Sizes given as None stay open,
    so that the program runs for any; without input_spec, those of the newest call to what ``to_static`` made, a common
    first axis open. States are named as in the layer's ``state_dict``. Operators stay whole, so that later passes know
    attention when they see it. Raises ValueError without either.
    """
    if configs:
        raise NotImplementedError(f"jit.save() has no option {sorted(configs)}")
    specs = _specs(layer, input_spec)
    captured = _capture(layer, specs)
    names = _structured_names(layer)
    program = captured.program
    for state, tensor in zip(program.states, captured.states, strict=True):
        state.name = names.get(id(tensor.payload.storage), state.name)
        if not tensor.stop_gradient:
            state.attributes["trainable"] = True
    PassManager(_PIPELINE).run(program)
    os.makedirs(os.path.dirname(os.fspath(path)) or ".", exist_ok=True)
    arrays = {s.name: to_numpy(t) for s, t in zip(program.states, captured.states, strict=True)}
    save_program(program, arrays, path)  # type: ignore[operator]


def _specs(layer: Any, given: Sequence[Any] | None) -> list[Any]:
    """An InputSpec, or a nest of them, for each argument."""
    forward: Any = layer.forward if isinstance(layer, Layer) else layer
    if given is None and isinstance(forward, StaticFunction):
        given = forward._spec or forward.newest_specs()
    if given is None:
        raise ValueError(
            "jit.save() needs input_spec, an InputSpec (or a tensor) for each input of forward(), or a call before it"
        )
    return [_own(spec) for spec in given]


def _own(spec: Any) -> Any:
    """A specification with an InputSpec of its own for each input: users may give one twice."""
    if isinstance(spec, Tensor):
        return InputSpec.from_tensor(spec)
    return copy(spec) if isinstance(spec, InputSpec) else map_items(spec, _own)


def _capture(layer: Any, specs: list[Any]) -> Captured:
    function: Any = layer.forward if isinstance(layer, Layer) else layer
    plain: Any = function.rollback() if isinstance(function, StaticFunction) else function
    modes = [(sub, sub.training) for sub in layer.sublayers(include_self=True)] if isinstance(layer, Layer) else []
    for sub, _ in modes:
        sub.training = False
    recording = set_grad_enabled(False)
    try:
        return _trace_sharing(plain, specs)
    except GraphBreak as error:
        raise explain_break(getattr(plain, "__qualname__", "forward"), error) from error
    finally:
        set_grad_enabled(recording)
        for sub, mode in modes:
            sub.training = mode


def _trace_sharing(function: Any, specs: list[Any]) -> Captured:
    """The capture with as many open sizes as the function can do with: all, or one for the first axis of all inputs."""
    flat = leaves(specs, InputSpec)
    choices = [alike(flat, axes) for axes in (0, 1, max((len(s.shape) for s in flat), default=0))]
    for symbols in dict.fromkeys(choices):
        try:
            return _trace(function, specs, symbols)
        except ShapeError:
            if symbols == choices[-1]:
                raise
    raise AssertionError("one of the choices was the last")


def _trace(function: Any, specs: list[Any], symbols: Sequence[int]) -> Captured:
    tracer = Tracer("forward")
    tracer.callee = converted_callee
    function = converted(function, True)
    flat: list[InputSpec] = leaves(specs, InputSpec)
    with tracer:
        types = spec_types(flat, symbols)
        inputs = {
            id(s): tracer.input(type, s.name or f"x{i}") for i, (s, type) in enumerate(zip(flat, types, strict=True))
        }
        results = function(*(_given(spec, inputs) for spec in specs))
        return tracer.finish(leaves(results, Tensor))


def _given(spec: Any, inputs: dict[int, Tensor]) -> Any:
    """What stands for an argument of that specification."""
    return inputs[id(spec)] if isinstance(spec, InputSpec) else map_items(spec, lambda item: _given(item, inputs))


def _structured_names(layer: Any) -> dict[int, str]:
    if not isinstance(layer, Layer):
        return {}
    return {id(tensor.payload.storage): name for name, tensor in layer.state_dict(use_hook=False).items()}
