"""Capture: run Python under a tracer and keep what it did as a program.

The tracer is one layer of the interpreter stack. Inputs are traced tensors; concrete tensors that are read become
states of the program (by storage), and writes to either become new SSA versions, written back when the program ends.
Gradients asked for while capturing are recorded by autograd as operations of its own dialect; capture knows nothing of
them but the slots (``Tensor._grad``) that it is told were touched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any
from weakref import ref

from argosy_phi_ops.capture.boolean_masking import is_plain, overlaid, positions, same_mask, selection
from argosy_phi_ops.capture.boolean_masking_rules import apply_to_selections
from argosy_phi_ops.capture.live_tensors import live_tensors
from argosy_phi_ops.capture.payloads import SelectedPayload, TracedPayload
from argosy_phi_ops.capture.views import link, refresh, write_through
from argosy_phi_ops.context import AMBIENT, Context, context, emit_at
from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.declare.promotion import describe, promote
from argosy_phi_ops.eager.dispatch import Interpreter, layer
from argosy_phi_ops.errors import CaptureError, GraphBreak
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.primitives.binding import constant
from argosy_phi_ops.user_line import user_location
from argosy_pir.attributes import Dense
from argosy_pir.builder import Builder
from argosy_pir.core import Block
from argosy_pir.location import Location
from argosy_pir.program import Program, State
from argosy_pir.types import TensorType, Type
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.rng import Generator
from argosy_tensorcore.tensor import Tensor

__all__ = ["CapturedProgram", "TracedPayload", "Tracer", "active_tracer", "block_of"]


class _StateEntry:
    __slots__ = ("current", "state", "tensor", "version", "versions", "view", "views", "written")

    def __init__(self, tensor: Tensor, state: State) -> None:
        payload = tensor.payload
        self.tensor = tensor
        self.state = state
        self.current: Value = state.argument
        self.versions: list[Value] = [state.argument]
        self.views: list[Any] = []
        self.written = False
        self.version = payload.version
        self.view = (payload.shape, payload.strides, payload.offset, payload.dtype)

    def snapshot(self) -> tuple[Any, ...]:
        """What a write in place changes."""
        return self.current, self.written, len(self.versions)


class CapturedProgram:
    """What a capture gives.

    ``program`` takes the inputs and returns ``outputs`` values, then one for each of ``grads``; ``states`` are the
    concrete tensors behind its states, ``written`` the positions of those it changes. ``grads`` lists (leaf, position
    of its new gradient among the program's outputs, or None where the slot is left empty, final slot value) of touched
    slots. ``draws`` tells whether random numbers are drawn.
    """

    __slots__ = ("draws", "grads", "outputs", "program", "states", "written")

    def __init__(
        self,
        program: Program,
        outputs: int,
        states: list[Tensor],
        written: list[int],
        grads: list[tuple[Tensor, int | None, Any]],
        draws: bool,
    ) -> None:
        self.program = program
        self.outputs = outputs
        self.states = states
        self.written = written
        self.grads = grads
        self.draws = draws


class Tracer(Interpreter):
    """Records operators into :attr:`program`.

    Use as a context manager; make inputs with :meth:`input`, run the code, then call :meth:`finish`.
    """

    breaks = False
    """Whether Python may get values during the capture (a graph break), see :meth:`need`."""
    stays_open = False
    """Whether Python goes on outside of what is captured while the tracer is active: a program is being built."""
    callee: Callable[[Any], Any] | None = None
    """What rewrites the functions that layers call, where there is a front end that does."""

    escaping: Exception | None = None
    """An exception on its way out of a region: whoever catches it within the capture has not seen its other side."""
    given: Sequence[Tensor] = ()
    """The tensors that the first inputs stand for, where the caller tells."""
    placing: Callable[[TracedPayload], Any] | None = None
    """What finds out how a traced tensor will lie on a mesh, where somebody can."""
    stage: int | None = None
    """The stage of a pipeline that operations belong to from here on, where the model is cut: their annotation."""
    recompute: int | None = None
    """The number of the region that is computed again in the backward pass, while one is captured: an annotation."""
    regions, recomputes = 0, False  # how many there were; whether they are computed again without a cut, too
    kept_regions: Collection[int] = ()  # those that are kept nevertheless, counted from 0

    def __init__(self, name: str = "main") -> None:
        self.program = Program(name)
        self.inputs: list[Tensor] = []
        self.payloads: list[ref[TracedPayload]] = []  # all that were made
        self.builder = Builder.at_end(self.program.block)
        self.finished = False
        self.journals: list[dict[int, tuple[Any, tuple[Any, ...]]]] = []  # of open regions: what they overwrote
        self.closed: set[Block] = set()  # regions that have ended: nobody outside sees their values
        self.placed: dict[Value, Any] = {}  # what `placing` has found
        self.starts: dict[Value, Value] = {}  # of arguments of loops that are being recorded: what they are at first
        self.loops: list[Any] = []  # of a front end: those whose body is being recorded
        self.derivatives: list[Any] = []  # of users, of whose derivatives the body is being recorded
        self._states: dict[int, _StateEntry] = {}
        self._names: dict[str, int] = {}
        self._slots: dict[int, tuple[Tensor, Any]] = {}
        self._draws, self._has_drawn = 0, False  # since the random state moved on
        self._generator: Any = None
        self._scopes: list[Any] = []
        self.read: list[tuple[Tensor, int]] = []  # tensors that gave attributes, and their versions then
        self._selects = False  # whether masks have selected anything

    def __enter__(self) -> Tracer:
        if active_tracer() is not None:
            raise CaptureError("a capture inside a capture: call the inner function directly")
        for scope in (layer(self), emit_at(self.builder)):
            scope.__enter__()
            self._scopes.append(scope)
        return self

    def __exit__(self, *error: Any) -> None:
        while self._scopes:
            self._scopes.pop().__exit__(*error)
        for tensor, original in self._slots.values():
            tensor._grad = original
        self._slots.clear()  # a capture that breaks ends before its block does
        self.finished = True

    def need(self, payload: TracedPayload, why: str) -> Any:
        """The array behind a traced payload, for Python that cannot go on without. Here: raises GraphBreak."""
        raise GraphBreak(why)

    def size_of(self, x: Tensor, why: str) -> Any:
        """The integer that the traced tensor ``x`` of one element is, as a size of what follows; ``why`` says whose.
        Here: as :meth:`need` gives values."""
        return int(x.payload.concretize(why))

    # What masks select

    def settle(self, why: str) -> None:
        """Python, or an operator, needs the size of what a mask selects. Here: raises GraphBreak."""
        raise GraphBreak(why)

    def select(self, whole: Tensor, mask: Tensor) -> Tensor:
        """What ``mask`` selects of ``whole``, which has its axes first."""
        self._selects = True
        now = self.wrap(self.value(mask))  # it may be overwritten
        return Tensor._wrap(SelectedPayload(whole, now, self, user_location()), whole.stop_gradient)

    def selection(self, x: Tensor, mask: Tensor) -> Tensor | None:
        """``x[mask]`` for a traced mask; None where it takes the mask's values."""
        return None if self.stays_open else selection(self, x, mask)

    def positions(self, x: Tensor) -> Tensor | None:
        """``nonzero(x)`` for a traced tensor; None where it takes its values."""
        return None if self.stays_open else positions(self, x)

    def overlaid(self, x: Tensor, mask: Tensor, value: Any) -> Tensor | None:
        """What ``x[mask] = value`` makes of ``x`` for a traced mask; None where it takes the mask's values."""
        return None if self.stays_open else overlaid(self, x, mask, value)

    # Values

    def input(self, type: Type, name: str | None = None, stop_gradient: bool = True) -> Tensor:
        """A traced input tensor of ``type``."""
        made = self.wrap(self.program.add_input(type, name), stop_gradient)
        self.inputs.append(made)
        return made

    def wrap(self, value: Value, stop_gradient: bool = True) -> Tensor:
        """The tensor of an IR value of this program."""
        return Tensor._wrap(TracedPayload(value, self, user_location(), not stop_gradient), stop_gradient)

    def value(self, x: Any) -> Value:
        """The current IR value of a tensor: traced, or concrete (which makes it a state)."""
        payload = x.payload
        if payload.is_traced:
            if payload.tracer is not self:
                payload.concretize("using it in another capture")
            current: Value = payload.value
            if self.closed and block_of(current) in self.closed:
                raise CaptureError(
                    f"a tensor made within a branch or a loop, at {payload.location}, is used outside of it; only "
                    "local variables are carried out of control flow that depends on tensors"
                )
            return current
        return self._entry(x).current

    def _entry(self, tensor: Tensor) -> _StateEntry:
        payload = tensor.payload
        key = id(payload.storage)
        entry = self._states.get(key)
        if entry is None:
            type = TensorType(payload.shape, payload.dtype.name)
            state = self.program.add_state(self._unique(tensor.name), type)
            entry = self._states[key] = _StateEntry(tensor, state)
            self.touch_grad(tensor)  # user code may set its gradient
        elif entry.view != (payload.shape, payload.strides, payload.offset, payload.dtype):
            raise NotImplementedError(
                "capturing code that uses two different views of one tensor's memory "
                f"({entry.tensor.name} {list(entry.view[0])} and {list(payload.shape)}) is not implemented"
            )
        elif entry.tensor.stop_gradient and not tensor.stop_gradient:
            self._found_leaf(entry, tensor)
        return entry

    def _found_leaf(self, entry: _StateEntry, leaf: Tensor) -> None:
        """What was read as a constant so far (``leaf.detach()``) is the memory of ``leaf``, which wants gradients:
        none of them go through what has read it."""
        argument = entry.state.argument
        readers = list(argument.uses)
        if readers:
            with emit_at(Builder.at_start(self.program.block)):
                blocker = PRIMITIVES["stop_gradient"](argument)
            for op, position in readers:
                op.set_operand(position, blocker)
        entry.tensor = leaf
        self.touch_grad(leaf)

    def _unique(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if not count else f"{name}.{count}"

    def states(self) -> list[Tensor]:
        """The concrete tensors behind the program's states so far, in their order."""
        return [entry.tensor for entry in self._states.values()]

    def leaves(self) -> list[tuple[Tensor, Value]]:
        """Concrete tensors read so far that want gradients, with each value they have had (in-place writes)."""
        entries = [entry for entry in self._states.values() if not entry.tensor.stop_gradient]
        return [(entry.tensor, value) for entry in entries for value in entry.versions]

    # The layer

    def process(
        self, op: Operator, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]
    ) -> Any:
        """Record ``phi.<op>``; its result types come from its expansion."""
        if self._selects and not all(map(is_plain, operands)):
            made = apply_to_selections(self, op, operands, attributes)
            if made is not NotImplemented:
                return made
            self.settle(f"{op.name} needs the size of what a mask selects, which depends on values")
            return below(op, operands, attributes)
        return self.record_operator(op, operands, attributes)

    def record_operator(self, op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
        """The results of ``phi.<op>``, put into the program."""
        ambient = context()
        location = user_location()
        recording = ambient.grad_enabled
        ambient.location = location
        values = self._operands(op, operands, recording)
        expansion = op.expand([v.type for v in values], attributes)
        made = self.builder.create(
            f"phi.{op.name}", values, attributes, expansion.result_types, location=location, inferred=True
        )
        if self.stage is not None:
            made.annotate(stage=self.stage)
        if self.recompute is not None:
            made.annotate(recompute=self.recompute)
        active = any(type(x) is Tensor and self._is_active(x) for x in operands)
        wants = recording and any(type(x) is Tensor and not x.stop_gradient for x in operands)
        results = tuple([self._result(value, location, active, wants) for value in made.results])
        if op.view:
            for i, result in enumerate(results):
                link(self, result, operands, op, attributes, i)
        return results[0] if expansion.bare else results

    def apply_primitive(self, name: str, x: Tensor, attributes: dict[str, Any]) -> Tensor:
        """The result of a primitive of one operand, put into the program."""
        recording, location = context().grad_enabled, user_location()
        value = self.value(x)
        if recording and self._is_constant(x):
            value = PRIMITIVES["stop_gradient"](value)
        made = self.builder.create(name, [value], attributes, location=location)
        return self._result(made.result, location, self._is_active(x), recording and not x.stop_gradient)

    def _result(self, value: Value, location: Location, active: bool, wants: bool) -> Tensor:
        payload = TracedPayload(value, self, location)
        differentiable = payload.dtype.kind in "fc"
        payload.active = active and differentiable
        return Tensor._wrap(payload, not (wants and differentiable))

    def _operands(self, op: Operator, operands: Sequence[Any], recording: bool) -> list[Value]:
        dtypes: Sequence[str] = ()
        if any(type(x) is not Tensor for x in operands):
            dtypes = promote(op.promote, op.name, [describe(x.payload if type(x) is Tensor else x) for x in operands])
        for x in operands:
            if type(x) is Tensor and not x.payload.is_traced:
                self._entry(x)  # all leaves are known before what was detached from one is read
        values = []
        for i, x in enumerate(operands):
            if type(x) is not Tensor:
                values.append(constant(x, dtypes[i]))
            elif recording and self._is_constant(x):
                values.append(PRIMITIVES["stop_gradient"](self.value(x)))
            else:
                values.append(self.value(x))
        return values

    def _is_constant(self, x: Tensor) -> bool:
        """Whether ``x`` was detached from what wants gradients, whose value it is."""
        payload = x.payload
        if not x.stop_gradient:
            return False
        if payload.is_traced:
            return bool(payload.active)
        entry = self._states.get(id(payload.storage))
        return entry is not None and not entry.tensor.stop_gradient

    def _is_active(self, x: Tensor) -> bool:
        return x.payload.active if x.payload.is_traced else not x.stop_gradient

    def write(self, target: Tensor, value: Tensor, below: Callable[..., None]) -> None:
        """Record an overwrite as a new version of ``target``, and of what shares its memory."""
        if self._selects and not (is_plain(target) and is_plain(value)):
            self._write_selected(target, value, below)
            return
        self.overwrite(target, value)

    def _write_selected(self, target: Tensor, value: Tensor, below: Callable[..., None]) -> None:
        alike = not is_plain(target) and not is_plain(value) and same_mask(target.payload.mask, value.payload.mask)
        if alike and not self.journals and target.payload.whole.shape == value.payload.whole.shape:
            target.payload.whole, target.payload.active = value.payload.whole, value.payload.active
            target.stop_gradient = target.stop_gradient and value.stop_gradient
            return
        self.settle("writing needs the size of what a mask selects, which depends on values")
        below(target, value)

    def overwrite(self, target: Tensor, value: Tensor) -> None:
        """See :meth:`write`."""
        payload = target.payload
        if payload.is_traced and payload.view_of is not None:
            base = write_through(self, target, value)
            for x in () if base.stop_gradient or not base.payload.is_traced else live_tensors(self):
                x.stop_gradient = x.stop_gradient and x.payload is not base.payload
            return
        new = self.value(value)
        if self._is_constant(value):
            new = PRIMITIVES["stop_gradient"](new)  # written without recording: a constant from here on
        if payload.is_traced:
            self._note(payload)
            payload.value = new
            payload.shape, payload.dtype = new.shape, as_dtype(new.dtype)
            payload.active = self._is_active(value) and not value.stop_gradient
            target.stop_gradient = target.stop_gradient and value.stop_gradient
            refresh(self, payload, new, payload.active)
            return
        if getattr(payload, "view_of", None) is not None:
            raise NotImplementedError(
                f"writing while capturing to {target.name}, a view of a distributed tensor that was made before, is "
                "not implemented; make the view in the captured function"
            )
        entry = self._entry(target)
        if new.type != entry.state.type:
            raise CaptureError(f"state {target.name} of type {entry.state.type} cannot become {new.type} in place")
        self._note(entry)
        entry.current = new
        entry.versions.append(new)
        entry.written = True
        refresh(self, entry, new, not target.stop_gradient)

    def _note(self, place: Any) -> None:
        if self.journals:
            self.journals[-1].setdefault(id(place), (place, place.snapshot()))

    def has_written(self, x: Tensor) -> bool:
        """Whether the concrete ``x`` is a state that has another value by now."""
        entry = self._states.get(id(getattr(x.payload, "storage", None)))
        return entry is not None and entry.written

    def has_read(self, x: Tensor) -> bool:
        """Whether the concrete ``x`` is a state of the program."""
        return id(getattr(x.payload, "storage", None)) in self._states

    def has_trained(self) -> bool:
        """Whether the capture has left gradients in slots or written tensors that want them: a training step does."""
        return any(tensor._grad is not original for tensor, original in self._slots.values()) or any(
            entry.written and not entry.tensor.stop_gradient for entry in self._states.values()
        )

    def reads(self, x: Tensor) -> None:
        """The program is for these values of ``x``: who keeps it looks at :attr:`read`."""
        if not x.payload.is_traced:
            self.read.append((x, x.payload.version))

    # What other packages tell the tracer

    def touch_grad(self, tensor: Tensor) -> None:
        """The gradient slot of the concrete ``tensor`` is about to change; it is restored when the capture ends."""
        if not tensor.payload.is_traced and id(tensor) not in self._slots:
            self._slots[id(tensor)] = (tensor, tensor._grad)

    def draw(self, generator: Generator) -> tuple[Tensor, int]:
        """The state of ``generator`` and the number of the next draw; numbers are assigned here and never changed."""
        if self._generator is None:
            self._generator = generator
        elif self._generator is not generator:
            raise CaptureError("a capture can draw from one random generator only")
        self._draws += 1
        self._has_drawn = True
        return generator.state, self._draws - 1

    def advance_generator(self) -> None:
        """Let the random state move on by the draws so far: further ones are numbered from the new state on. So do
        branches and loops when they end, since how often they draw is not known."""
        if not self._draws:
            return
        entry = self.random_state
        self._note(entry)
        entry.current = self.moved_on(entry.current, self._draws)
        entry.written = True
        self._draws = 0

    def moved_on(self, state: Value, draws: int) -> Value:
        """The random state ``draws`` draws after ``state``."""
        type = TensorType((2,), "uint64")
        step = self.builder.constant(type, Dense(type, (0).to_bytes(8, "little") + draws.to_bytes(8, "little")))
        made: Value = PRIMITIVES["add"](state, step)
        return made

    @property
    def random_state(self) -> Any:
        """The place of the random state; None where nothing was drawn yet."""
        return None if self._generator is None else self._entry(self._generator.state)

    # The end

    def finish(self, outputs: Sequence[Tensor]) -> CapturedProgram:
        """End the program with ``outputs``, the touched gradients and the states' new versions."""
        self.advance_generator()
        values = [self.value(x) for x in outputs]
        grads: list[tuple[Tensor, int | None, Any]] = []
        for tensor, original in self._slots.values():
            final = tensor._grad
            if final is original:
                continue
            if type(final) is Tensor and final.payload.is_traced:
                grads.append((tensor, len(values), None))
                values.append(self.value(final))
            else:
                grads.append((tensor, None, final))
        entries = list(self._states.values())
        for entry in entries:
            if entry.tensor.payload.version != entry.version:
                raise CaptureError(
                    f"{entry.tensor.name} was read by the capture and then changed outside of it (set_value, numpy); "
                    "change it before the capture, or with an operator"
                )
        self.program.set_outputs(values, [entry.current for entry in entries])
        return CapturedProgram(
            self.program,
            len(outputs),
            [entry.tensor for entry in entries],
            [i for i, entry in enumerate(entries) if entry.written],
            grads,
            self._has_drawn,
        )


def active_tracer() -> Tracer | None:
    """The tracer that records on this rank, or None."""
    if not AMBIENT.word:
        return None
    ambient: Context = context()
    for found in reversed(ambient.layers):
        if isinstance(found, Tracer):
            return found
    return None


def block_of(value: Value) -> Block | None:
    """The block that a value is made in."""
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.parent
