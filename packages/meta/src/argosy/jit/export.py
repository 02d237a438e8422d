"""Writing what a layer computes as programs with weights, for ``argosy_infer`` to load and serve."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from inspect import getattr_static
from traceback import walk_tb
from typing import Any

from argosy.argument_checks import validate_call
from argosy.jit.assignments import Assignments
from argosy.jit.conversion.source import convert_function, converted_callee
from argosy.jit.guards import watch
from argosy.jit.input_spec import InputSpec
from argosy.jit.properties import PROPERTIES, property_values
from argosy.jit.specs import equal_size_positions, solved_size, spec_types, with_sizes
from argosy.jit.static_function import StaticFunction
from argosy.jit.structure import leaves, map_items
from argosy.jit.tracing import explain_break
from argosy.jit.translated import METHODS
from argosy.nn.layer import Layer
from argosy_infer.export import LoadedProgram, save_program
from argosy_infer.predictor import SIZES
from argosy_phi_ops.capture.tracer import CapturedProgram, Tracer
from argosy_phi_ops.context import set_grad_enabled
from argosy_phi_ops.errors import GraphBreak, ShapeError
from argosy_pir.passes import PassManager
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor
from argosy_tensorcore.wait_notice import announce_wait

__all__ = ["export_program", "save"]

_PIPELINE = "cse,dce"


@announce_wait("exporting a program")
@validate_call
def save(layer: Any, path: str | os.PathLike[str], input_spec: Sequence[Any] | None = None, **configs: Any) -> None:
    """Write the forward function of ``layer`` (or a function) as ``<path>.pir`` and ``<path>.safetensors``, and its
    other methods that ``to_static`` decorates as ``<path>.<method>.pir`` and ``.safetensors``, each complete in itself.
    All are replaced at once: when this is interrupted, ``jit.load`` gives the old export or the new one.

    They are captured in evaluation mode without gradients. input_spec: an InputSpec or a tensor (or lists and
    dictionaries of them) for each argument. The inputs and outputs of the program are the tensors in order, those of
    dictionaries by their sorted keys; what else is returned is left out, as in Paddle. Sizes given as None stay open,
    so that the program runs for any; without input_spec, those of the newest call to what ``to_static`` made, a common
    first axis open. States are named as in the layer's ``state_dict``, for a method given as the function, too.
    Operators stay whole, so that later passes know attention when they see it.

    Raises ValueError without either, and for an input_spec of a layer that has such methods: it cannot be that of all.
    """
    if configs:
        raise NotImplementedError(f"jit.save() has no option {sorted(configs)}")
    if not callable(layer):
        raise TypeError(f"jit.save(): argument 'layer' must be a Layer or a function, got {layer!r:.60}")
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"jit.save(): argument 'path' must be a path, got {path!r:.60}")
    methods = _methods(layer)
    if methods and input_spec is not None:
        raise ValueError(
            f"jit.save(): argument 'input_spec' should be None for a layer with the captured methods {methods}; say it "
            "in to_static(input_spec=...) of each, forward among them"
        )
    owner, forward = _owner(layer)
    programs = {"forward": _capture(owner, forward, _specs(forward, input_spec))}
    for method in methods:
        function = getattr(layer, method)
        programs[method] = _capture(owner, function, _specs(function, None, method))
    programs["forward"].program.attributes[METHODS] = tuple(methods)
    if properties := property_values(layer):
        programs["forward"].program.attributes[PROPERTIES] = properties
    os.makedirs(os.path.dirname(os.fspath(path)) or ".", exist_ok=True)
    names = _structured_names(owner)
    forward, *others = (_simplify(captured, names) for captured in programs.values())
    save_program(forward.program, forward.states, path, dict(zip(methods, others, strict=True)))


def export_program(layer: Any, input_spec: Sequence[Any] | None = None) -> LoadedProgram:
    """The forward function of ``layer`` (or a function) as the program that :func:`save` writes and
    ``argosy_infer.load_program`` reads, sharing the layer's memory. Raises as :func:`save`."""
    owner, forward = _owner(layer)
    return _simplify(_capture(owner, forward, _specs(forward, input_spec)), _structured_names(owner))


def _methods(layer: Any) -> list[str]:
    """The methods besides ``forward`` that ``to_static`` decorates, properties aside."""
    if not isinstance(layer, Layer):
        return []
    found = (name for name in dir(type(layer)) if isinstance(getattr_static(layer, name, None), StaticFunction))
    return sorted(name for name in found if name != "forward")


def _owner(layer: Any) -> tuple[Any, Any]:
    """The layer whose states a function reads (None where there is none), and the function."""
    if isinstance(layer, Layer):
        return layer, layer.forward
    plain = layer.rollback() if isinstance(layer, StaticFunction) else layer
    owner = getattr(plain, "__self__", None)
    return owner if isinstance(owner, Layer) else None, layer


def _simplify(captured: CapturedProgram, names: dict[int, str]) -> LoadedProgram:
    """The program with the values of its states, which have the layer's names."""
    program = captured.program
    for state, tensor in zip(program.states, captured.states, strict=True):
        state.name = names.get(id(tensor.payload.storage), state.name)
        if not tensor.stop_gradient:
            state.attributes["trainable"] = True
    PassManager(_PIPELINE).run(program)
    arrays = {s.name: to_numpy(t) for s, t in zip(program.states, captured.states, strict=True)}
    return LoadedProgram(program, arrays)


def _specs(function: Any, given: Sequence[Any] | None, name: str = "forward") -> list[Any]:
    """An InputSpec, or a nest of them, for each argument."""
    if given is None and isinstance(function, StaticFunction):
        given = function._spec or function.newest_specs()
    if given is None:
        raise ValueError(
            f"jit.save() needs input_spec, an InputSpec (or a tensor) for each input of {name}(), or a call before it"
        )
    return [_copy_spec(spec) for spec in given]


def _copy_spec(spec: Any) -> Any:
    """A specification with an InputSpec of its own for each input: users may give one twice."""
    if isinstance(spec, Tensor):
        return InputSpec.from_tensor(spec)
    return copy(spec) if isinstance(spec, InputSpec) else map_items(spec, _copy_spec)


def _capture(owner: Any, function: Any, specs: list[Any]) -> CapturedProgram:
    plain: Any = function.rollback() if isinstance(function, StaticFunction) else function
    modes = [] if owner is None else [(sub, sub.training) for sub in owner.sublayers(include_self=True)]
    for sub, _ in modes:
        sub.training = False
    recording = set_grad_enabled(False)
    assignments = Assignments(watch(plain, ()), ())
    try:
        return _trace_sharing(plain, specs)
    except GraphBreak as error:
        raise explain_break(getattr(plain, "__qualname__", "forward"), error) from error
    finally:
        assignments.restore()
        set_grad_enabled(recording)
        for sub, mode in modes:
            sub.training = mode


def _trace_sharing(function: Any, specs: list[Any]) -> CapturedProgram:
    """The capture with as many open sizes as the function can do with: all, or one for the first axis of all inputs.
    Sizes that operators need to be certain numbers are these, which calls are held against."""
    flat = leaves(specs, InputSpec)
    choices = [equal_size_positions(flat, axes) for axes in (0, 1, max((len(s.shape) for s in flat), default=0))]
    for symbols in dict.fromkeys(choices):
        try:
            return _trace_solving(function, specs, symbols)
        except ShapeError:
            if symbols == choices[-1]:
                raise
    raise AssertionError("one of the choices was the last")


def _trace_solving(function: Any, specs: list[Any], symbols: Sequence[int]) -> CapturedProgram:
    known: dict[str, int] = {}
    reasons: dict[str, str] = {}
    while True:
        try:
            captured = _trace(function, specs, symbols, known)
        except ShapeError as error:
            found = solved_size(error)
            if found is None or found[0] in known:
                raise
            known[found[0]] = found[1]
            reasons[found[0]] = f"{found[0]} is {found[1]}: {str(error).partition(' [given')[0]}{_line_of(error)}"
            continue
        if reasons:
            captured.program.attributes[SIZES] = tuple(reasons.values())
        return captured


def _line_of(error: BaseException) -> str:
    """Where in the user's code ``error`` came from."""
    frames = [(f, line) for f, line in walk_tb(error.__traceback__) if not f.f_globals["__name__"].startswith("argosy")]
    return f" ({frames[-1][0].f_code.co_filename}:{frames[-1][1]})" if frames else ""


def _trace(function: Any, specs: list[Any], symbols: Sequence[int], known: dict[str, int]) -> CapturedProgram:
    tracer = Tracer("forward")
    tracer.callee = converted_callee
    function = convert_function(function, True)
    flat: list[InputSpec] = leaves(specs, InputSpec)
    with tracer:
        types = [with_sizes(type, known) for type in spec_types(flat, symbols)]
        inputs = {
            id(s): tracer.input(type, s.name or f"x{i}") for i, (s, type) in enumerate(zip(flat, types, strict=True))
        }
        results = function(*(_example_argument(spec, inputs) for spec in specs))
        return tracer.finish(leaves(results, Tensor))


def _example_argument(spec: Any, inputs: dict[int, Tensor]) -> Any:
    """What stands for an argument of that specification."""
    return (
        inputs[id(spec)]
        if isinstance(spec, InputSpec)
        else map_items(spec, lambda item: _example_argument(item, inputs))
    )


def _structured_names(layer: Layer | None) -> dict[int, str]:
    if layer is None:
        return {}
    return {id(tensor.payload.storage): name for name, tensor in layer.state_dict(use_hook=False).items()}
