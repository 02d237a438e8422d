"""One case in one framework: its results and first gradients as numpy arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parity import scripts
from parity.case import Case
from parity.inputs import NARROW, Input, base_array

__all__ = ["QUANTILES", "Outcome", "attribute", "run_case"]

STEPS = 6
"""How many steps an optimizer takes."""

QUANTILES = np.linspace(0.0, 1.0, 257)
"""Which quantiles of a random sample are compared."""

EPOCHS = 14
"""How many rates of a schedule are read."""


@dataclass
class Outcome:
    """What a case gave: arrays (or plain data where the result was no tensor), or the class of the error raised.

    ``gradients`` has one entry for each float input, None where nothing reached it; ``gradient_error`` names the error
    when the backward pass raised.
    """

    outputs: list[Any] = field(default_factory=list)
    gradients: list[Any] = field(default_factory=list)
    error: str = ""
    gradient_error: str = ""
    message: str = ""


def run_case(framework: Any, case: Case, gradients: bool = True) -> Outcome:
    """Run ``case`` in ``framework`` (a module like ``paddle``); errors of the framework are outcomes too."""
    run = _Run(framework)
    try:
        results = getattr(run, case.kind)(case)
        outcome = Outcome([plain for r in results for plain in _widened(framework, r)])
    except Exception as error:  # noqa: BLE001 (whatever the framework raises is its answer)
        return Outcome(error=_builtin_name(error), message=f"{type(error).__name__}: {error}")
    if gradients and case.gradients and run.leaves:
        try:
            outcome.gradients = run.backward(results)
        except Exception as error:  # noqa: BLE001 (as above)
            outcome.gradient_error = _builtin_name(error)
            outcome.message = f"{type(error).__name__}: {error}"
    return outcome


def _builtin_name(error: Exception) -> str:
    """The nearest builtin class of ``error``, which is what users catch."""
    return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")


def weights(shape: tuple[int, ...], position: int) -> np.ndarray:
    """The fixed weighting of output number ``position`` in the scalar whose gradient is compared."""
    count = int(np.prod(shape, dtype=np.int64))
    return np.cos(np.arange(count) * 1.7 + position + 0.3).reshape(shape)


class _Run:
    """The tensors of one run: ``leaves`` are those whose gradients are asked for."""

    def __init__(self, framework: Any) -> None:
        self.framework = framework
        self.leaves: list[Any] = []
        self.drawn = 0

    # -- arguments

    def build(self, value: Any) -> Any:
        """``value`` with tensors in place of every :class:`Input`."""
        if isinstance(value, Input):
            return self.tensor(value)
        if isinstance(value, list):
            return [self.build(v) for v in value]
        if isinstance(value, tuple):
            return tuple(self.build(v) for v in value)
        return value

    def tensor(self, spec: Input) -> Any:
        array = base_array(spec, self.drawn)
        self.drawn += 1
        base = self.framework.to_tensor(array)
        if spec.grad and spec.dtype.startswith(("float", "bfloat", "complex")):
            base.stop_gradient = False
            self.leaves.append(base)
        return self.laid_out(base if spec.dtype not in NARROW else base.astype(spec.dtype), spec)

    def laid_out(self, base: Any, spec: Input) -> Any:
        if spec.layout == "T":
            return self.framework.transpose(base, list(range(len(spec.shape)))[::-1])
        if spec.layout == "step":
            return base[..., ::2]
        if spec.layout == "offset":
            return base[1:]
        return base

    # -- kinds of cases

    def call(self, case: Case) -> list[Any]:
        args = self.build(case.args)
        kwargs = {name: self.build(value) for name, value in case.kwargs.items()}
        if case.mutates:  # a leaf must not be written in place
            args = (self.framework.assign(args[0]), *args[1:])
        result = attribute(self.framework, case.target)(*args, **kwargs)
        return _flat(result) + ([args[0]] if case.mutates else [])

    def shape_of(self, case: Case) -> list[Any]:
        return [f"{_dtype(r)}{list(r.shape)}" for r in self.call(case)]

    def layer(self, case: Case) -> list[Any]:
        kwargs = {name: _built(self.framework, self.build(value)) for name, value in case.kwargs.items()}
        built = attribute(self.framework, case.target)(**kwargs)
        state = {}
        for name, entry in sorted(built.state_dict().items()):
            low, high = (0.5, 1.5) if "variance" in name else (-1.0, 1.0)
            spec = Input(tuple(entry.shape), str(entry.dtype).rpartition(".")[2], low, high)
            state[name] = self.framework.to_tensor(base_array(spec, self.drawn))
            self.drawn += 1
        built.set_state_dict(state)
        (built.train if case.training else built.eval)()
        self.leaves += [p for _, p in sorted(built.named_parameters()) if not p.stop_gradient]
        inputs = self.build(case.inputs)
        results = _flat(built(*inputs))
        parameters = dict(built.named_parameters())
        return results + [b for n, b in sorted(built.state_dict().items()) if n not in parameters]

    def script(self, case: Case) -> list[Any]:
        script = scripts.find_script(case.target.partition(".")[2])
        return _flat(script(self.framework, *self.build(case.args), **case.kwargs))

    def distribution(self, case: Case) -> list[Any]:
        self.framework.seed(2024)
        (sample,) = self.script(case)
        return [np.quantile(_array(sample).astype("float64").ravel(), QUANTILES).astype("float32")]

    def optimizer(self, case: Case) -> list[Any]:
        steps: list[Any] = []
        self.optimized(case, STEPS, steps)
        return steps

    def optimized(self, case: Case, count: int, results: list[Any] | None = None) -> tuple[Any, list[Any]]:
        """The optimizer and its parameters after ``count`` steps, whose values go to ``results``."""
        paddle = self.framework
        parameters = [_parameter(paddle, base_array(Input(shape), i)) for i, shape in enumerate([(2, 3), (3,)])]
        kwargs = {name: _built(paddle, value) for name, value in case.kwargs.items()}
        built = attribute(paddle, case.target)(parameters=parameters, **kwargs)
        for step in range(count):
            for i, parameter in enumerate(parameters):
                drawn = base_array(Input(tuple(parameter.shape)), 100 + 10 * step + i)
                parameter.grad = paddle.to_tensor(drawn)
            built.step()
            built.clear_grad()
            if results is not None:
                results += [paddle.to_tensor(np.array(p.numpy())) for p in parameters]
        return built, parameters

    def attribute_of(self, case: Case) -> list[Any]:
        return _flat(getattr(self.build(case.args)[0], case.target.rpartition(".")[2]))

    def layer_state(self, case: Case) -> list[Any]:
        built = attribute(self.framework, case.target)(**case.kwargs)
        return [f"{name}: {_dtype(entry)}{list(entry.shape)}" for name, entry in built.state_dict().items()]

    def optimizer_state(self, case: Case) -> list[Any]:
        built, parameters = self.optimized(case, 2)
        found = built.state_dict()
        for i, parameter in enumerate(parameters):  # automatic names count what was made before
            found = {key.replace(parameter.name, f"parameter {i}"): value for key, value in found.items()}
        return [f"{key}: {self.saved(value)}" for key, value in sorted(found.items())]

    def saved(self, value: Any) -> str:
        if isinstance(value, self.framework.Tensor):
            return f"{_dtype(value)}{list(value.shape)}"
        return f"{sorted(value)}" if isinstance(value, dict) else repr(value)

    def schedule(self, case: Case) -> list[Any]:
        args = [_built(self.framework, value) for value in case.args]
        kwargs = {name: _built(self.framework, value) for name, value in case.kwargs.items()}
        built = attribute(self.framework, case.target)(*args, **kwargs)
        rates = []
        for epoch in range(EPOCHS):
            rates.append(float(built()))
            built.step(*([1.0 / (1 + min(epoch, 4))] if case.target.endswith("Plateau") else []))
        return [np.asarray(rates)]

    # -- gradients

    def backward(self, results: list[Any]) -> list[Any]:
        """Gradients of the weighted sum of all float results (and parts of complex ones) with respect to the leaves."""
        total = None
        for position, result in enumerate(results):
            if not _differentiable(self.framework, result):
                continue
            for part in _real_parts(self.framework, result):
                weight = self.framework.to_tensor(weights(tuple(part.shape), position).astype(_dtype(part)))
                term = (part * weight).sum().astype("float64")
                total = term if total is None else total + term
        if total is None:
            return []
        total.backward()
        return [None if leaf.grad is None else _array(leaf.grad) for leaf in self.leaves]


def attribute(framework: Any, dotted: str) -> Any:
    """What a dotted name means under ``framework``. Raises AttributeError where there is nothing."""
    found = framework
    for name in dotted.split("."):
        found = getattr(found, name)
    return found


def _built(framework: Any, value: Any) -> Any:
    """``value``, where ("make", target, kwargs) stands for an object of the framework."""
    if isinstance(value, tuple) and value[:1] == ("make",):
        return attribute(framework, value[1])(**{k: _built(framework, v) for k, v in value[2].items()})
    return value


def _parameter(framework: Any, array: np.ndarray) -> Any:
    made = framework.create_parameter(list(array.shape), str(array.dtype))
    made.set_value(framework.to_tensor(array))
    return made


def _flat(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)) and not (result and all(isinstance(r, int) for r in result)):
        return [leaf for part in result for leaf in _flat(part)]
    return [] if result is None else [result]


def _differentiable(framework: Any, result: Any) -> bool:
    kinds = ("float", "bfloat", "complex")
    return isinstance(result, framework.Tensor) and not result.stop_gradient and _dtype(result).startswith(kinds)


def _real_parts(framework: Any, result: Any) -> list[Any]:
    if _dtype(result) in NARROW:
        return [result.astype("float32")]
    if _dtype(result).startswith("float"):
        return [result]
    return [framework.real(result), framework.imag(result) * 0.5]


def _dtype(result: Any) -> str:
    return str(result.dtype).rpartition(".")[2]


def _array(result: Any) -> np.ndarray:
    return np.array(result.numpy())


def _widened(framework: Any, result: Any) -> list[Any]:
    """The result as plain data; a tensor of a narrow dtype is the name of that and the values in float32."""
    if isinstance(result, framework.Tensor) and _dtype(result) in NARROW:
        return [_dtype(result), _array(result.astype("float32"))]
    return [_plain(framework, result)]


def _plain(framework: Any, result: Any) -> Any:
    """A tensor as an array, shapes as lists, other results as they are."""
    if isinstance(result, framework.Tensor):
        array = _array(result)
        if str(array.dtype) != _dtype(result):
            raise AssertionError(f"a tensor of {_dtype(result)} gives an array of {array.dtype}")
        return array
    if isinstance(result, (list, tuple)):
        return [int(r) for r in result]
    if isinstance(result, int) and not isinstance(result, bool):
        return int(result)  # some are of a class of the framework
    if isinstance(result, np.ndarray) or result is None or isinstance(result, (bool, float)):
        return result
    return str.__str__(result) if isinstance(result, str) else str(result)  # some are of a class of the framework
