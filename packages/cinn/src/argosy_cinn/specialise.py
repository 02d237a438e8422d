"""Programs with symbolic sizes: compiled once for all sizes, or, where that cannot be, for each combination met.

The code of a program for all sizes takes its sizes from a table, and the places of intermediate values with them (see
`argosy_cinn.plan.sizes`). Sizes of zero, tensors too large for 32-bit indices
and programs with host calls are compiled for their sizes, in numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy_cinn.executable import BoundExecutable, Executable
from argosy_phi_ops.checks.index_errors import checks_size, size_error_of
from argosy_phi_ops.errors import UnsupportedSizes
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_phi_ops.reference.symbols import bind_symbols, evaluate_attribute, evaluate_shape
from argosy_pir.attributes import Dense
from argosy_pir.core import Operation
from argosy_pir.dialect import get_definition
from argosy_pir.dims import Dim, dim_bounds, is_static, minimum
from argosy_pir.errors import VerifyError
from argosy_pir.passes.bind_sizes import BindSizes
from argosy_pir.program import Program
from argosy_pir.types import TensorType, Type
from argosy_tensorcore.storage import StridedArray

if TYPE_CHECKING:
    from argosy_cinn.fallback import InterpretedExecutable

#: Combinations of sizes whose executables are kept: of code for all sizes, and of code of their own, which is large.
_KEPT = 256
_KEPT_SPECIALISED = 64

_SLICE = "prim.slice"
_CHECKED = {"check_index": True}
"""The option under which nothing is left out that could refuse sizes."""

Call = Callable[[Sequence[StridedArray]], list[StridedArray]]


@dataclass(frozen=True, slots=True)
class CodeForSizes:
    """Code for all sizes: ``executable`` makes the executable of given sizes, or gives None for those that it does not
    serve. ``folder``: where it was dumped."""

    executable: Callable[[Mapping[str, int]], Any]
    folder: Path | None = None


class SpecialisingExecutable:
    """An executable of a program with symbolic sizes.

    ``shared`` is its code for all sizes, if it has such; ``reason`` says why not. ``compile`` makes the executable of
    a program in numbers.
    """

    def __init__(
        self,
        program: Program,
        shared: CodeForSizes | None,
        reason: str,
        compile: Callable[[Program], Executable | InterpretedExecutable],
    ) -> None:
        self.program = program
        self._shared, self._reason, self._compile = shared, reason, compile
        self._made: dict[tuple[int, ...], Executable | InterpretedExecutable] = {}
        self._specialised: dict[tuple[int, ...], Executable | InterpretedExecutable] = {}
        self._latest: Executable | InterpretedExecutable | None = None
        self._met = self._compiled = 0
        self._symbols = program.symbols()
        self._at_risk: list[Operation] | None = None  # of the program in primitives, which is made when sizes are met
        self._labels = [f"input {i}" for i in range(len(program.inputs))]
        self._labels += [f"state {state.name!r}" for state in program.states]
        shapes = [argument.shape for argument in program.block.arguments]
        inputs = len(program.inputs)
        self._telling = [i for i, shape in enumerate(shapes) if i < inputs or not is_static(shape)]

    def run(self, inputs: Sequence[StridedArray], states: Sequence[StridedArray] = ()) -> list[StridedArray]:
        """Execute once. Raises ``ShapeError`` naming the argument that does not fit."""
        return self.bind(states)(inputs)

    def bind(self, states: Sequence[StridedArray]) -> Call:
        """A callable for repeated execution on the same states."""
        held = list(states)
        bound: dict[tuple[Any, ...], Call] = {}
        most = _KEPT_SPECIALISED if self._shared is None else _KEPT
        first: list[BoundExecutable] = []  # what was bound to the states by code for all sizes

        def call(inputs: Sequence[StridedArray]) -> list[StridedArray]:
            shapes = tuple([p.shape for p in inputs])
            found = bound.get(shapes)
            if found is None:
                made = self.for_sizes(inputs, held, known=bool(bound))
                if type(made) is not Executable or made.sizes.symbols is None:
                    found = made.bind(held)
                else:
                    found = made.bind(held, first[0] if first else None)
                    first[:] = [found]
                _keep(bound, shapes, found, most)
            return found(inputs)

        return call

    def for_sizes(
        self, inputs: Sequence[StridedArray], states: Sequence[StridedArray], known: bool = False
    ) -> Executable | InterpretedExecutable:
        """The executable for the sizes of these arguments; ``known``: for states that were checked before. Raises
        ``UnsupportedSizes`` where an operation has no meaning at these sizes, or another shape than its formula tells
        (`check_types`)."""
        symbols = self.sizes_of(inputs, states, known)
        key = tuple([symbols[name] for name in self._symbols])
        found = self._made.get(key) or self._reuse(key)
        if found is None:
            check_types(self.program, self._primitives_to_check(0 in key), symbols)
            made = None if self._shared is None else self._shared.executable(symbols)
            if made is not None:
                found = _keep(self._made, key, made, _KEPT)
            else:
                compiled = self._compile(bind_sizes(self.program, symbols))
                found = _keep(self._specialised, key, compiled, _KEPT_SPECIALISED)
                self._compiled += 1
            self._met += 1
        self._latest = found
        return found

    def _primitives_to_check(self, without_elements: bool) -> Iterable[Operation]:
        """The primitives to check at sizes that are new: all where one is zero, else those at risk."""
        if without_elements:
            return filter(_is_checked, to_primitives(self.program, _CHECKED).walk())
        if self._at_risk is None:
            self._at_risk = at_risk(to_primitives(self.program, _CHECKED))
        return self._at_risk

    def _reuse(self, key: tuple[int, ...]) -> Executable | InterpretedExecutable | None:
        """The specialisation for these sizes, which is then the latest used: the last to be dropped."""
        found = self._specialised.pop(key, None)
        if found is not None:
            self._specialised[key] = found
        return found

    def sizes_of(
        self, inputs: Sequence[StridedArray], states: Sequence[StridedArray], known: bool = False
    ) -> dict[str, int]:
        """The numbers that arguments give for symbols. Raises ``ShapeError`` naming the one that does not fit."""
        payloads = [*inputs, *states]
        if len(payloads) != len(self._labels):
            name, count = self.program.name, len(self._labels)
            raise ValueError(f"program '{name}' takes {count} inputs and states, got {len(payloads)}")
        chosen = self._telling if known else range(len(payloads))
        arguments = self.program.block.arguments
        return bind_symbols([(self._labels[i], arguments[i], payloads[i]) for i in chosen])

    def report(self) -> dict[str, Any]:
        """The figures of the latest sizes, and: ``compilations``, how often code was generated (one for all sizes, one
        for each specialisation); ``specialisations``, how often in numbers; ``sizes``, the combinations met, those met
        again after they were dropped; ``not_symbolic``, why there is no code for all sizes (empty if there is)."""
        latest = self._latest.report() if self._latest is not None else {
            "kernels": 0, "kernel_calls": 0, "host_calls": {},
            "arena_bytes": 0, "compile_seconds": 0.0, "cache_hit": False,
            "unfused_attention": [], "weights_read_again": [],
        }  # fmt: skip
        return {
            **latest,
            "compilations": int(self._shared is not None) + self._compiled,
            "specialisations": self._compiled,
            "sizes": self._met,
            "not_symbolic": self._reason,
        }

    def describe(self) -> str:
        """What `explain` shows: the code for all sizes, and every specialisation."""
        lines = [f"not for all sizes: {self._reason}"] if self._reason else []
        for made in list(self._made.values())[-1:]:
            lines.append(f"all sizes:\n{made.describe()}")
        lines += [f"sizes {key}:\n{made.describe()}" for key, made in self._specialised.items()]
        return "\n".join(lines)


def _keep(held: dict[tuple[Any, ...], Any], key: tuple[Any, ...], made: Any, most: int) -> Any:
    """Add to what is held, at the price of the oldest where there are ``most``."""
    while len(held) >= most:
        held.pop(next(iter(held)), None)
    held[key] = made
    return made


def bind_sizes(program: Program, symbols: Mapping[str, int]) -> Program:
    """A copy of the program with numbers for symbols."""
    bound = program.clone()
    BindSizes.from_sizes(symbols).run(bound)
    return bound


def at_risk(program: Program) -> list[Operation]:
    """The primitives that may have no meaning at some sizes, as far as bounds of sizes tell: parts that may reach
    beyond an axis, and sizes that may be negative, such as those of windows that do not fit."""
    risks = (_may_reach_out, _may_be_negative, checks_size)
    return [op for op in program.walk() if _is_checked(op) and any(risk(op) for risk in risks)]


def _is_checked(op: Operation) -> bool:
    held = [argument.type for region in op.regions for block in region.blocks for argument in block.arguments]
    return op.dialect == "prim" and all(isinstance(type, TensorType) and type.is_static for type in held)


def _may_reach_out(op: Operation) -> bool:
    if op.name != _SLICE:
        return False
    starts, limits = op.attributes["start"], op.attributes["limit"]
    return not all(
        size == limit or minimum(limit, size) == limit or _least_size(size - limit) >= 0
        for limit, size in zip(limits, op.operand(0).shape, strict=True)
    ) or any(
        _least_size(start) < 0 or _least_size(limit - start) < 0 for start, limit in zip(starts, limits, strict=True)
    )


def _may_be_negative(op: Operation) -> bool:
    met = {size for value in op.operands for size in getattr(value.type, "shape", ())}
    sizes = {size for result in op.results for size in getattr(result.type, "shape", ())} - met
    return any(_least_size(size) < 0 for size in sizes)


def _least_size(size: Dim) -> float:
    least = dim_bounds(size)[0]
    return -inf if least is None else least


def check_types(program: Program, operations: Iterable[Operation], symbols: dict[str, int]) -> None:
    """Whether ``operations`` of the program have a meaning at these sizes: no size is negative, parts lie within their
    axes, and at a size of zero every type is the one that the operation's rule gives: formulas of sizes are those of
    axes with elements, but gaps between none are none, not one less, and no window fits into nothing.

    Raises ``UnsupportedSizes`` naming the operation, its line and the sizes."""
    by_rule = 0 in symbols.values()
    for op in operations:
        if checks_size(op) and (size := evaluate_attribute(op.attributes["size"], symbols)) < 1:
            raise size_error_of(op, size)
        try:
            _check_type(op, symbols, by_rule or op.name == _SLICE)
        except VerifyError as error:
            sizes = ", ".join(f"{name} = {number}" for name, number in symbols.items())
            raise UnsupportedSizes(f"program '{program.name}' has no meaning at the sizes {sizes}: {error}") from error


def _check_type(op: Operation, symbols: dict[str, int], by_rule: bool) -> None:
    try:
        given = [_type(result.type, symbols) for result in op.results]
        expected = given
        if by_rule:
            operands = [_type(value.type, symbols) for value in op.operands]
            attributes = {name: _attribute(value, symbols) for name, value in op.attributes.items()}
            definition = get_definition(op.name)
            expected = given if definition is None else definition.infer_types(operands, attributes, op.regions)
    except (ValueError, TypeError) as error:
        raise VerifyError(str(error), op) from error
    if expected != given:
        raise VerifyError(f"gives ({', '.join(map(str, given))}), expected ({', '.join(map(str, expected))})", op)


def _type(type: Type, symbols: dict[str, int]) -> Type:
    if not isinstance(type, TensorType) or type.is_static:
        return type
    return TensorType(evaluate_shape(type.shape, symbols), type.dtype)


def _attribute(value: Any, symbols: dict[str, int]) -> Any:
    if isinstance(value, Dense):
        return Dense(_type(value.type, symbols), value.data)  # type: ignore[arg-type]
    return evaluate_attribute(value, symbols)
