"""Kernels of eager applications: native code in the place of numpy's, without a change of any bit on the way.

An application (an operator on operands of some types, or its derivative) has one arithmetic. Where its program is
exact, numpy and native code give the same bits: it first runs by numpy and is counted, and when what its calls have
cost, by an estimate, is about what compiling takes, it is compiled and the kernel replaced. Any other program is native
code from its first call on, where a compiler offers that and it does more at once than numpy would, or numpy's for
ever. Sizes that change with every call must not be compiled each time: of one operator, no more than ``SHAPES`` cheap
programs are. All of this depends on the calls that a script makes: it computes the same bits each time it runs.

``ARGOSY_EAGER=plain`` leaves everything to numpy; :func:`set_deterministic` (``FLAGS_cudnn_deterministic``) whatever is
not exact, so that nothing depends on which calls were made before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from sys import maxsize
from typing import Any

import numpy as np

from argosy_phi_ops.bounded_cache import BoundedCache
from argosy_phi_ops.compiler import NativeCode, available_compilers, get_compiler
from argosy_phi_ops.eager.exactness import is_exact
from argosy_phi_ops.errors import CaptureError, CompileError, OperatorError
from argosy_phi_ops.primitives import PRIMITIVES, Primitive
from argosy_phi_ops.settings import DETERMINISTIC, EAGER
from argosy_pir.core import Block, Operation
from argosy_pir.program import Program
from argosy_pir.values import OpResult, Value
from argosy_tensorcore.dtype import default_listeners
from argosy_tensorcore.storage import StridedArray, host_device

__all__ = [
    "BUDGET",
    "SHAPES",
    "NativeKernel",
    "TieredKernel",
    "computed_results",
    "computes_nothing",
    "first_kernel",
    "forget",
    "given_results",
    "is_deterministic",
    "native_kernel",
    "set_deterministic",
]  # fmt: skip

BUDGET = 10_000_000
"""Nanoseconds that calls may cost, by the estimate, before the compiler is asked."""
SHAPES = 32
"""Inexact programs of one name that are compiled although a call of them costs less than a quarter of that."""

_FIRST_LOOK = 4  # calls before the program is looked at: most applications are never seen again
_LONGEST = 400  # operations of a program worth compiling for one operator
_SMALL = 1 << 14  # elements of arrays that native code takes itself
_INTERPRETED = 5  # times what steps of a loop cost more, which the general interpreter runs
_CALLS = {"conv": 40_000, "rng_bits": 200_000}  # nanoseconds of numpy's calls for one, about
_CALL = 1000  # ... and for any other
_BYTE = 0.012  # nanoseconds of numpy, about, for a byte and for an operation
_OPERATION = {"elementwise": 0.1, "contraction": 0.0125, "transform": 0.2, "random": 0.6}
_ALONE = 4.0  # ... of another category, which numpy does one by one
_NARROW = 10  # times what an element costs more that numpy converts to float32 and back
_WOKEN = (
    2**19,
    100_000,
)  # operations from which numpy's library wakes threads, and nanoseconds they keep cores from ours
_WINDOW = 2  # nanoseconds of numpy for an element of all windows of a convolution
_FREE = frozenset(name for name, each in PRIMITIVES.items() if each.is_free) | {"constant"}
_LIGHT = frozenset({  # what numpy does in one pass at the speed of memory
    "neg", "abs", "add", "sub", "mul", "div", "maximum", "minimum", "select", "cast", "copy", "stop_gradient", "eq",
    "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "sqrt", "pad", "concat", "gather",
    "reduce_sum", "reduce_max", "reduce_min",
})  # fmt: skip
_NATIVE = frozenset({  # categories with lowerings, of transforms most
    "elementwise", "contraction", "layout", "reduction", "indexing", "transform", "random",
})  # fmt: skip


class NativeKernel:
    """Native code of a program: takes arrays of the types of its inputs, of any strides, and gives new arrays.
    ``code`` is it for other native code, where it can be called so."""

    __slots__ = ("bound", "code", "on_arrays")

    def __init__(self, bound: Any) -> None:
        self.bound = bound
        self.on_arrays: Callable[[Sequence[Any]], list[Any] | None] = getattr(bound, "on_arrays", None) or _not_shortly
        self.code: NativeCode | None = bound.native_code() if hasattr(bound, "native_code") else None

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The results."""
        made = self.on_arrays(arrays)
        if made is None:
            arrays = [a if type(a) is np.ndarray and a.flags.c_contiguous else np.array(a, order="C") for a in arrays]
            made = self.on_arrays(arrays)
        return made if made is not None else [p.ndarray for p in self.bound([StridedArray(a) for a in arrays])]


class TieredKernel:
    """A kernel that counts its calls and, when it is hot, is replaced by native code.

    ``program()`` is what it computes, of primitives, None where that is not known; ``adapt`` makes a function that is
    called like ``kernel`` of a :class:`NativeKernel`; ``install`` takes what shall be called from now on. ``least()``
    is how many light steps of an exact program native code gains something for. ``from_first``: one that is not exact
    may be native code from its first call on; else it is left to ``kernel``.
    """

    __slots__ = (
        "adapt", "calls", "decided", "exact", "from_first", "install", "kernel", "least", "limit", "program",
    )  # fmt: skip

    def __init__(
        self,
        kernel: Callable[..., Any],
        program: Callable[[], Program | None],
        adapt: Callable[[NativeKernel], Callable[..., Any]],
        install: Callable[[Callable[..., Any]], None],
        least: Callable[[], int] = lambda: 2,
        from_first: bool = True,
    ) -> None:
        self.least = least
        self.from_first = from_first
        self.decided = self.exact = False
        self.kernel = kernel
        self.program = program
        self.adapt = adapt
        self.install = install
        self.calls = 0
        self.limit = _FIRST_LOOK

    def __call__(self, *arguments: Any) -> Any:
        """What the kernel gives. A call that it refuses does not count: compiled code may not look at its numbers."""
        if not self.decided:
            self._decide()
        result = self.kernel(*arguments)
        self.calls += 1
        if self.calls >= self.limit:  # past it where several threads count
            self._look()
        return result

    def _decide(self) -> None:
        """At the first call: what computes this one and all others, unless the program is exact."""
        program = None if _left_to_numpy() else self._decompose()
        self.exact = program is not None and is_exact(program)
        if program is not None and not self.exact:
            native = first_kernel(program) if self.from_first else None
            if native is not None:
                self.kernel = self.adapt(native)
            self.limit = maxsize
            self.install(self.kernel)
        self.decided = True

    def _decompose(self) -> Program | None:
        """The program; None also where there is none for what the kernel does all the same."""
        try:
            return self.program()
        except (NotImplementedError, OperatorError, CaptureError):
            return None

    def _look(self) -> None:
        """Decide how many calls to wait, or what is called from now on."""
        self.limit = maxsize  # nobody else looks meanwhile
        program = self._decompose() if self.exact and not _left_to_numpy() else None
        cost = 0 if program is None else _cost(program, self.least())
        if cost and self.calls * cost < BUDGET:
            self.limit = -(-BUDGET // cost)
            return
        native = native_kernel(program) if program is not None and cost else None
        if native is not None:
            self.kernel = self.adapt(native)
        self.install(self.kernel)


def native_kernel(program: Program) -> NativeKernel | None:
    """Native code of a program of primitives of static shapes; None where no compiler makes any for all of it."""
    if available_compilers()[0] == "reference":
        return None
    try:
        executable = get_compiler().compile(program, host_device())
    except CompileError:
        return None
    facts = executable.report()
    if facts["host_calls"] or facts.get("fallback"):
        return None
    return NativeKernel(executable.bind([]))


_deterministic = DETERMINISTIC.read()
_first: BoundedCache = BoundedCache(1024)
"""Kernels of inexact programs by their text, None where numpy computes them: an application is reached in
several ways, with and without layers, and has one arithmetic on all of them."""
_shapes: dict[str, set[int]] = {}
"""Cheap programs that are compiled, by name: hashes of their texts, which stay when the kernels are forgotten."""


def is_deterministic() -> bool:
    """Whether what is not exact is left to numpy."""
    return _deterministic


def set_deterministic(on: bool) -> None:
    """Leave what is not exact to numpy from now on, or no longer. Drops what was decided before."""
    global _deterministic
    if on != _deterministic:
        _deterministic = on
        for listener in default_listeners:
            listener()


def forget() -> None:
    """Drop kernels of inexact programs; which sizes are compiled stays decided."""
    _first.clear()


def _left_to_numpy() -> bool:
    return EAGER.read() == "plain"


def first_kernel(program: Program) -> NativeKernel | None:
    """What computes an inexact program from its first call on; None for numpy. Asked again, it answers the same."""
    if _deterministic or _left_to_numpy():
        return None
    text = str(program)
    if text not in _first:
        _first[text] = native_kernel(program) if _is_worth_it(program, hash(text)) else None
    found: NativeKernel | None = _first[text]
    return found


def _is_worth_it(program: Program, key: int) -> bool:
    """Whether native code gains something, and not too many other sizes were compiled before."""
    cost = _cost(program, 1 if all(_is_small(v) for v in (*program.inputs, *program.outputs)) else 2)
    if not cost or 4 * cost >= BUDGET:
        return cost > 0
    known = _shapes.setdefault(program.name, set())
    if key not in known and len(known) < SHAPES:
        known.add(key)
    return key in known


def _is_small(value: Value) -> bool:
    """Whether a call that enters native code might hold or make a value."""
    return prod(value.type.shape) <= _SMALL  # type: ignore[attr-defined]


def _not_shortly(arrays: Sequence[Any]) -> None:
    """The short way of a program that has none."""


def _cost(program: Program, least: int = 2) -> int:
    """Nanoseconds that numpy takes for a program, about; 0 where native code would gain nothing: fewer than ``least``
    light steps, or results that are operands as they are. Who gains from one step does from copying alone, and of what
    numpy has no arithmetic for, one step is enough."""
    if any(is_narrow(op) for op in list(program.block)[:-1]):
        least = 1
    given = any(_is_given(value) for value in program.outputs)
    if (given and least > 1) or sum(1 for _ in program.walk()) > _LONGEST:
        return 0
    measured = _measure(program.block)
    if measured is None:
        return 0
    steps, total = measured[0] + given, measured[1] + given * _CALL
    return round(total) if steps >= least else 0


def computes_nothing(program: Program) -> bool:
    """Whether the results are elements of the inputs, in other places."""
    return all(op.kind in _FREE for op in list(program.block)[:-1])


def computed_results(program: Program) -> Program | None:
    """The program of the results that are no operands as they are (statistics that nothing moves, say), which need not
    be computed; None where that is none of them."""
    if not given_results(program):
        return program
    made = program.clone()
    outputs = [value for value in made.outputs if value not in made.inputs]
    made.set_outputs(outputs)
    return made if outputs else None


def given_results(program: Program) -> dict[int, int]:
    """Which results are which operands as they are."""
    return {i: program.inputs.index(v) for i, v in enumerate(program.outputs) if v in program.inputs}


def _measure(block: Block) -> tuple[int, float] | None:
    """Light steps of a block and the nanoseconds that numpy takes; None where something in it has no native code, or
    sizes are not known."""
    from argosy_phi_ops.reference.straight_line import is_plain

    steps, total = 0, 0.0
    for op in list(block)[:-1]:
        name = op.kind
        if op.name == "control.scan":
            within, length = _measure(op.regions[0].blocks[0]), _length(op)
            if within is None or not isinstance(length, int):
                return None
            steps, total = steps + 2 * within[0], total + _INTERPRETED * length * within[1]
        elif not is_plain(op) or (name in PRIMITIVES and PRIMITIVES[name].category not in _NATIVE):
            return None
        elif name in PRIMITIVES and name not in _FREE:
            steps += 1 if name in _LIGHT else 2
            total += _CALLS.get(name, _CALL) + _time_of(op, PRIMITIVES[name])
    return steps, total


def _length(scan: Operation) -> Any:
    """How many steps a scan makes."""
    return scan.operands[0].shape[0] if scan.attributes["inputs"] else scan.attributes["length"]


def _is_given(value: Value) -> bool:
    """Whether a value is an input or constant, perhaps in another layout: what numpy makes a view of."""
    while isinstance(value, OpResult):
        op = value.owner
        if op.kind not in _FREE or not op.operands:
            return op.name in ("builtin.constant", "prim.iota")
        value = op.operands[0]
    return True


def _time_of(op: Operation, primitive: Primitive) -> float:
    """Nanoseconds of numpy for an operation, without those of its calls, about."""
    attributes = {name: op.attributes[name] for name in primitive.attributes if name in op.attributes}
    cost = primitive.cost([v.type for v in op.operands], attributes, [v.type for v in op.results])
    slow = primitive.name not in _LIGHT and primitive.category
    time = _BYTE * (cost.read + cost.written) + cost.operations * _OPERATION.get(slow or "elementwise", _ALONE)
    if primitive.category == "contraction":
        return time + _time_besides(op, cost.operations)
    return time * _NARROW if is_narrow(op) else time


def is_narrow(op: Operation) -> bool:
    """Whether numpy has no arithmetic for a dtype of an operation."""
    return any(v.type.dtype in ("float16", "bfloat16") for v in (*op.operands, *op.results))  # type: ignore[attr-defined]


def _time_besides(op: Operation, operations: float) -> float:
    """Nanoseconds of what a contraction takes beside its arithmetic: numpy copies a convolution's windows, and a large
    product wakes threads of its library, which look for more work for long after it: kernels of ours that follow share
    the cores with them."""
    left, right = (value.type.shape for value in op.operands)  # type: ignore[attr-defined]
    if op.kind == "conv":
        groups: int = op.attributes.get("groups", 1)
        return _WINDOW * operations / 2 / max(1, int(right[0])) * groups
    least, woken = _WOKEN
    return woken if operations > least * max(1, prod(left[i] for i in op.attributes.get("lhs_batch", ()))) else 0
