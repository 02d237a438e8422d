"""Programs with symbolic sizes: one executable for each combination of sizes, made at its first call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from argosy_phi_ops.reference.symbols import bind_symbols, evaluate_attribute, evaluate_shape
from argosy_pir.attributes import Attributes, Dense
from argosy_pir.program import Program
from argosy_pir.types import TensorType, Type
from argosy_tensorcore.storage import Strided

if TYPE_CHECKING:
    from argosy_cinn.executable import Executable
    from argosy_cinn.fallback import InterpretedExecutable


class SpecialisingExecutable:
    """An executable of a program with symbolic sizes. Kernels are shared with equal ones of other sizes by the object
    cache only; ``report()["specialisations"]`` counts the combinations met."""

    def __init__(self, program: Program, compile: Callable[[Program], Executable | InterpretedExecutable]) -> None:
        self.program = program
        self._compile = compile
        self._made: dict[tuple[int, ...], Executable | InterpretedExecutable] = {}

    def run(self, inputs: Sequence[Strided], states: Sequence[Strided] = ()) -> list[Strided]:
        """Execute once. Raises ``ShapeError`` naming the argument that does not fit."""
        return self.bind(states)(inputs)

    def bind(self, states: Sequence[Strided]) -> Callable[[Sequence[Strided]], list[Strided]]:
        """A callable for repeated execution on the same states."""
        held = list(states)
        bound: dict[tuple[Any, ...], Callable[[Sequence[Strided]], list[Strided]]] = {}

        def call(inputs: Sequence[Strided]) -> list[Strided]:
            shapes = tuple([p.shape for p in inputs])
            found = bound.get(shapes)
            if found is None:
                found = bound[shapes] = self.for_sizes(inputs, held).bind(held)
            return found(inputs)

        return call

    def for_sizes(self, inputs: Sequence[Strided], states: Sequence[Strided]) -> Executable | InterpretedExecutable:
        """The executable for the sizes of these arguments, compiled at the first question."""
        program = self.program
        labels = [f"input {i}" for i in range(len(program.inputs))] + [f"state {s.name!r}" for s in program.states]
        payloads = [*inputs, *states]
        if len(payloads) != len(labels):
            raise ValueError(f"program '{program.name}' takes {len(labels)} inputs and states, got {len(payloads)}")
        arguments = zip(labels, program.block.arguments, [p.array() for p in payloads], strict=True)
        symbols = bind_symbols(arguments)
        key = tuple(symbols[name] for name in program.symbols())
        if key not in self._made:
            self._made[key] = self._compile(specialise(program, symbols))
        return self._made[key]

    def report(self) -> dict[str, Any]:
        """The figures of the latest specialisation, and how many there are."""
        made = list(self._made.values())
        latest = made[-1].report() if made else {
            "kernels": 0, "kernel_calls": 0, "host_calls": {},
            "arena_bytes": 0, "compile_seconds": 0.0, "cache_hit": False
        }  # fmt: skip
        return {**latest, "specialisations": len(made)}

    def describe(self) -> str:
        """What `explain` shows: every specialisation."""
        return "\n".join(f"sizes {key}:\n{made.describe()}" for key, made in self._made.items())


def specialise(program: Program, symbols: dict[str, int]) -> Program:
    """A copy of the program with numbers for symbols."""
    static = program.clone()
    for block in [static.block, *(f.block for f in static.functions.values())]:
        for argument in block.arguments:
            argument.type = _type(argument.type, symbols)
    for op in static.walk():
        for result in op.results:
            result.type = _type(result.type, symbols)
        op.attributes = Attributes({k: _attribute(v, symbols) for k, v in op.attributes.items()})
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.type = _type(argument.type, symbols)
    return static


def _type(type: Type, symbols: dict[str, int]) -> Type:
    if not isinstance(type, TensorType) or type.is_static:
        return type
    return TensorType(evaluate_shape(type.shape, symbols), type.dtype)


def _attribute(value: Any, symbols: dict[str, int]) -> Any:
    if isinstance(value, Dense):
        return Dense(_type(value.type, symbols), value.data)  # type: ignore[arg-type]
    return evaluate_attribute(value, symbols)
