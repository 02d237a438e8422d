"""The captures of a function: how a program for each kind of call is captured, compiled, kept and forgotten."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any, ClassVar, Protocol

from argosy.amp.casting import current
from argosy.jit import lowering
from argosy.jit.arguments import Call
from argosy.jit.assignments import Assignments, NeedsCarried
from argosy.jit.automatic_sizes import AutomaticSizes
from argosy.jit.compiled import CompiledCall, Effects, OutputTree
from argosy.jit.counting import note_compile
from argosy.jit.graph_breaks import BreakingTracer
from argosy.jit.guards import Guards, watch
from argosy.jit.open_sizes import OpenSizes, SizeBounds
from argosy.jit.partitioned_program import kept_layouts, layouts_of, lower_partitioned, makes_distributed
from argosy.jit.places import Place
from argosy.jit.tracing import FinishedCall, explain_break, trace
from argosy.jit.training import (
    DifferentiableCall,
    differentiable_form,
    is_differentiable_forward,
    writes_what_it_leaves,
)
from argosy.jit.value_sizes import MeasuringTracer, payloads_of
from argosy.settings import log
from argosy_phi_ops.capture.tracer import CapturedProgram
from argosy_phi_ops.compiler import Executable
from argosy_phi_ops.context import AMBIENT, context, grad_enabled
from argosy_phi_ops.errors import FOREIGN, GraphBreak
from argosy_phi_ops.user_line import warn_user
from argosy_pir import Program
from argosy_tensorcore.dtype import default_dtype, float32

__all__ = ["MANY", "WRITES", "CaptureRefusal", "FunctionCaptures", "SplitFunction"]

MANY = 64  # captures of one kind of call that are kept
_KINDS = 1024  # kinds of calls of one function that are known: the one that was used longest ago makes room
_NOTHING_AROUND = (True, None, 0, None)
WRITES = "its arguments or parameters (or, of tensors on a mesh, draws random numbers or updates statistics)"
_OFTEN = 8  # captures of one kind of call after which a user should know


class CaptureRefusal(Exception):
    """This kind of call has to run as plain Python."""


class _NeedsNumbers(Exception):
    """With symbols for ``sizes`` there is no program for this kind of call, because of ``error``."""

    def __init__(self, sizes: OpenSizes, error: Exception) -> None:
        super().__init__(str(error))
        self.sizes, self.error = sizes, error


class _NeedsCounts(Exception):
    """There is no program with symbols for the sizes that values tell."""


class SplitFunction(Protocol):
    """A function whose graph broke, cut there: ``run`` is called like it; ``compiled`` are its parts' programs."""

    run: Callable[..., Any]

    @property
    def compiled(self) -> list[CompiledCall]: ...


class FunctionCaptures:
    """The programs of one function, by kinds of calls."""

    overlap = False
    """Whether collectives of a program on a mesh are on their way while other things are computed."""
    reshard_after_use = False
    """Whether states of a program on a mesh that are split are gathered again wherever they are used."""
    patience: ClassVar[int] = 2
    """So many captures that change Python's state are no matter of the first call, which fills caches."""

    def __init__(
        self, function: Callable[..., Any], spec: list[Any] | None, backend: lowering.Backend, full_graph: bool | None
    ) -> None:
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self._function = function
        self._spec = spec
        self._sizes = None if spec is None else OpenSizes(spec, self.__name__)
        self._backend = backend
        self._full_graph = full_graph
        self._known: OrderedDict[Any, None] = OrderedDict()  # keys of calls, the latest used last once there are many
        self._by_key: dict[Any, list[CompiledCall]] = {}
        self._floats: dict[Any, list[float]] = {}  # by key: the values of floats when it was first seen
        self._runtime: dict[Any, frozenset[int]] = {}  # by key: which floats became inputs
        self._plain: set[Any] = set()  # keys of calls that run as plain Python
        self._impure: dict[Any, int] = {}  # by key: captures that changed Python's numbers
        self._changed = False  # whether the last capture did
        self._lines: set[int] = set()  # of the function, where its graph broke
        self._pieces: SplitFunction | None = None  # what runs since
        self._by_value: set[Any] = set()  # keys of calls whose floats cannot be inputs
        self._by_number: set[Any] = set()  # keys of calls whose sizes that values tell cannot be symbols
        self._carried: list[Place] = []  # places that calls read and replace

    @property
    def compiled(self) -> list[CompiledCall]:
        """The captures so far."""
        return [call for calls in self._by_key.values() for call in calls]

    def _key(self, call: Call) -> Any:
        """The kind of a call, with what is around it."""
        key = call.key if self._sizes is None else self._sizes.key(call)
        default = default_dtype()
        if default is not float32:
            key = key, default
        if AMBIENT.word:
            cast = current()
            around = (grad_enabled(), cast and cast.key, context().rank, layouts_of(call.tensors))
            if around != _NOTHING_AROUND:  # a profiler is a layer, too, and changes no program
                return (key, *around)
        return key

    def _use(self, key: Any) -> None:
        """Let a kind of call be the last to make room, where it is known."""
        with suppress(KeyError):
            self._known.move_to_end(key)

    def _know(self, key: Any) -> None:
        """Note a kind of call. What is forgotten for it is captured again when it is met again, and the compiler's
        cache on disk has its code."""
        self._known[key] = None
        if len(self._known) <= _KINDS:
            return
        oldest, _ = self._known.popitem(last=False)
        for table in (self._by_key, self._floats, self._runtime, self._impure):
            table.pop(oldest, None)
        for keys in (self._plain, self._by_value, self._by_number):
            keys.discard(oldest)

    def _capture(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        call: Call,
        key: Any,
        whole: bool = False,
        sizes: AutomaticSizes | None = None,
    ) -> CompiledCall | FinishedCall:
        self._know(key)
        runtime = self._changing_positions(key, call.floats)
        whole, numbers = whole or bool(self._full_graph), key in self._by_number
        try:
            compiled = self._compile(
                args, kwargs, call, runtime, self._reason(key), whole, numbers, sizes or self._sizes
            )
        except GraphBreak as error:
            if not runtime:
                raise explain_break(self.__name__, error) from error
            self._by_value.add(key)  # Python needs these floats as numbers
            return self._capture(args, kwargs, call, key, whole, sizes)
        except NeedsCarried as needed:
            self._carried += needed.places
            return self._capture(args, kwargs, call, key, whole, sizes)
        except _NeedsCounts as needed:
            self._by_number.add(key)
            made = self._capture(args, kwargs, call, key, whole, sizes)
            warn_user(
                f"{self.__name__} is captured and compiled for each number that values give as a size, since one "
                f"program cannot serve all of them: {needed}"
            )
            return made
        except _NeedsNumbers as needed:
            made = self._capture(args, kwargs, call, self._key(call), whole)
            needed.sizes.need_numbers(call, needed.error)
            return made
        if isinstance(compiled, FinishedCall) and compiled.carried:
            self._carried += compiled.carried
            return compiled
        if isinstance(compiled, FinishedCall):
            (self._by_value if compiled.by_value else self._plain).add(key)
            if compiled.line is not None and compiled.line not in self._lines:
                self._lines.add(compiled.line)
                self._pieces = None
            if compiled.noted is not None:
                compiled.noted.of(self)
            return compiled
        self._keep(key, compiled)
        return compiled

    def _keep(self, key: Any, compiled: CompiledCall) -> None:
        """Have a program for the next call of this kind, unless each call changes Python's state."""
        if self._changed:
            self._impure[key] = self._impure.get(key, 0) + 1
            if self._impure[key] == self.patience:
                self._run_around(key)
            return
        kept = self._by_key.setdefault(key, [])
        if len(kept) == _OFTEN:
            self._warn_of_captures(kept[-1])
        kept.append(compiled)
        del kept[:-MANY]

    def _run_plain(self, key: Any) -> None:
        if not self._plain:
            warn_user(
                f"{self.__name__} is trained from outside and writes to {WRITES}, which cannot be repeated for its "
                "gradient: it runs operator by operator. Capture the whole training step instead"
            )
        self._plain.add(key)

    def _run_around(self, key: Any) -> None:
        """Let Python run what changes its state, with compiled parts around."""
        warn_user(
            f"{self.__name__} changes a number that it reads with each call: the statement runs as Python, with "
            "compiled parts around it. Make it a tensor of the layer (register_buffer), or pass it as an argument"
        )
        self._plain.add(key)
        self._lines.add(0)  # of no statement: those that change attributes are cut out anyway
        self._pieces = None

    def _warn_of_captures(self, last: CompiledCall) -> None:
        warn_user(
            f"{self.__name__} was captured and compiled {_OFTEN} times for calls of one kind, because what it reads "
            f"changes: {last.why_not() or 'floats, which it uses as Python numbers'}. Pass what changes as a tensor"
        )

    def _has_changed(self, guards: Guards) -> bool:
        """Whether a capture changed what a program could not change with each call: without ``full_graph=True`` users
        may count calls."""
        return guards.has_counter()

    def _accept(self, captured: CapturedProgram, tree: OutputTree, effects: Effects, guards: Guards) -> None:
        """Raise :class:`CaptureRefusal` for what had better not run as a program."""

    def _reason(self, key: Any) -> str:
        """Why there is no program yet for this call."""
        kept = self._by_key.get(key)
        if kept:
            return kept[-1].why_not() or "another value of a float"
        return "other shapes, dtypes or arguments" if self._by_key else "first call"

    def _changing_positions(self, key: Any, floats: list[float]) -> frozenset[int]:
        """Positions of floats that are inputs of the program: those that differ from the first call of this kind."""
        if key in self._by_value:
            return frozenset()
        first = self._floats.setdefault(key, list(floats))
        changed = {i for i, (a, b) in enumerate(zip(first, floats, strict=True)) if a != b}
        self._runtime[key] = self._runtime.get(key, frozenset()) | changed
        return self._runtime[key]

    def _compile(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        call: Call,
        runtime: frozenset[int],
        reason: str,
        whole: bool,
        numbers: bool,
        sizes: OpenSizes | AutomaticSizes | None,
    ) -> CompiledCall | FinishedCall:
        guards = watch(self._function, (*args, *kwargs.values()))
        assignments = Assignments(guards, self._carried)
        extended = Call([*call.tensors, *assignments.values], call.key, call.floats)
        started = perf_counter()

        def executable(captured: CapturedProgram, tree: OutputTree, effects: Effects) -> CompiledCall:
            return self._lower(captured, tree, effects, extended, runtime, guards)

        tracer: BreakingTracer | MeasuringTracer
        if whole:
            given = partial(payloads_of, extended, sorted(runtime))
            tracer = MeasuringTracer(self.__name__, given, self._backend, numbers)
        else:
            tracer = BreakingTracer(self.__name__, extended, executable)
            tracer.runtime = sorted(runtime)
        try:
            made = trace(self._function, self.__name__, args, kwargs, call, sizes, runtime, assignments, tracer)
            if isinstance(made, FinishedCall):
                return made
            captured, tree, effects = made
            guards.note_read(tracer.read)
            self._accept(captured, tree, effects, guards)
            self._changed = not whole and self._has_changed(guards)
            guards.keep_unchanged()
            traced = perf_counter()
            operations = sum(1 for _ in captured.program.block)
            bounds = None if sizes is None else SizeBounds(captured.program, len(extended.tensors))
            compiled = executable(captured, tree, effects)
        except FOREIGN as error:
            if isinstance(tracer, MeasuringTracer) and tracer.has_symbols:
                raise _NeedsCounts(str(error)) from error
            has_executed = isinstance(tracer, BreakingTracer) and tracer.broken
            if not isinstance(sizes, OpenSizes) or has_executed or not sizes.note_refusal(call, error):
                raise
            raise _NeedsNumbers(sizes, error) from error
        compiled.carried = assignments.carried
        compiled.sizes = bounds
        if isinstance(tracer, MeasuringTracer):
            compiled.value_sizes = tracer.sizes
        log(
            "compile",
            f"{self.__name__}, {reason}: {operations} operations captured in {traced - started:.2f} s, compiled in "
            f"{perf_counter() - traced:.2f} s; {compiled.executable.report()}",
        )
        return compiled

    def _finish(self, executable: Executable, program: Program) -> Executable:
        """What runs the captured ``program``, of which ``executable`` was made."""
        return executable

    def _lower(
        self,
        captured: CapturedProgram,
        tree: OutputTree,
        effects: Effects,
        call: Call,
        runtime: frozenset[int],
        guards: Guards,
    ) -> CompiledCall:
        differentiable = is_differentiable_forward(captured, tree)
        placed = layouts_of(call.tensors), layouts_of(captured.states)
        distributed = placed != (None, None) or makes_distributed(captured.program)
        if differentiable and (effects or (distributed and captured.written)):
            raise CaptureRefusal
        if writes_what_it_leaves(captured, tree):
            raise CaptureRefusal
        lowered = differentiable_form(captured.program) if differentiable else captured.program
        device = lowering.device_of([*call.tensors, *captured.states])
        executable: Executable
        if distributed and len(captured.program.inputs) > len(call.tensors) + len(runtime):
            raise NotImplementedError(f"{self.__name__}: sizes that values tell, of distributed tensors")
        if distributed:
            wanted = kept_layouts(captured)
            executable = lower_partitioned(
                captured.program, self._backend, device, *placed, wanted, self.overlap, self.reshard_after_use,
                reduce_scalars=not differentiable,
            )  # fmt: skip
        else:
            executable = lowering.lower(captured.program, self._backend, device, at_once=differentiable)
        executable = self._finish(executable, captured.program)
        note_compile(self.__name__)
        fixed = [(i, x) for i, x in enumerate(call.floats) if i not in runtime]
        parts = (captured, executable, tree, effects, guards, fixed, sorted(runtime))
        return (
            DifferentiableCall(*parts, backend=self._backend, device=device, lowered=lowered)
            if differentiable
            else CompiledCall(*parts)
        )
