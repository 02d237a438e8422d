"""Graph breaks: when Python needs a value in the middle of a capture, what was captured is executed and Python goes on.

The operations so far are executed, every traced tensor that is still alive becomes the concrete tensor it stands for,
and the rest of this call runs eagerly: nothing of the function runs twice. Later calls have compiled parts around the
place, see `parts`. Where possible the operations are replayed
one by one, so that the tape is what eager execution leaves; gradients asked for in the captured part, control flow,
open sizes and communication are compiled instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from argosy.jit.arguments import Call
from argosy.jit.compiled import CompiledCall, Effects, OutputTree
from argosy.jit.partitioned_program import communicates
from argosy.jit.reporting import Break, note
from argosy_autograd.modes import enable_grad, no_grad
from argosy_phi_ops.capture.boolean_masking import is_plain
from argosy_phi_ops.capture.live_tensors import are_all_known, live_tensors
from argosy_phi_ops.capture.tracer import TracedPayload, Tracer, block_of
from argosy_phi_ops.declare.operator import Operator, get_operator
from argosy_phi_ops.eager.dispatch import bind, suspend_layers, write
from argosy_phi_ops.errors import CaptureError, GraphBreak
from argosy_phi_ops.reference.constants import constant_array
from argosy_phi_ops.user_line import user_location
from argosy_pir.garbage import collect_now
from argosy_pir.values import Value
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["BreakingTracer"]

_REPLAYED = ("builtin.constant", "prim.stop_gradient", "builtin.return")


class BreakingTracer(Tracer):
    """A tracer that hands out values. ``compile`` makes a compiled call of the captured part, when it must be."""

    breaks = True

    def __init__(self, name: str, call: Call, compile: Callable[..., CompiledCall]) -> None:
        super().__init__(name)
        self.call = call
        self.compile = compile
        self.broken = False
        self.float_needed = False
        """Whether Python wanted the number of a float that is an input; it had better be part of the program."""
        self.code: CodeType | None = None  # of the function that is captured
        self.line: int | None = None  # where it was at the break
        self.noted: Break | None = None
        self._made: dict[Value, Tensor] = {}

    def need(self, payload: TracedPayload, why: str) -> Any:
        """The array behind ``payload``; ends the capture. Raises GraphBreak within a region."""
        if payload.value not in self._made:
            self.float_needed = payload.value in self.program.inputs[len(self.call.tensors) :]
            self._break(why)
        return self._made[payload.value].payload.to_host()

    def process(
        self, op: Operator, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]
    ) -> Any:
        """Record, or execute where the operator cannot be captured."""
        try:
            return super().process(op, operands, attributes, below)
        except (CaptureError, NotImplementedError) as error:
            if self.journals or isinstance(error, GraphBreak):
                raise
            self._break(str(error))
            return below(op, operands, attributes)

    def write(self, target: Tensor, value: Tensor, below: Callable[..., None]) -> None:
        """Record, or execute where the write cannot be captured: through a view, whose memory parts do not share."""
        payload = target.payload
        if payload.is_traced and payload.view_of is not None and not self.journals:
            self._break(f"{payload.view_of.op.name} gave a view, which is written")
            below(target, value)
            return
        try:
            super().write(target, value, below)
        except (CaptureError, NotImplementedError) as error:
            if self.journals or isinstance(error, GraphBreak):
                raise
            self._break(str(error))
            below(target, value)

    def settle(self, why: str) -> None:
        """End the capture: what masks select becomes ordinary tensors."""
        self._break(why)

    def give_up(self, why: str) -> None:
        """End the capture: from here on Python runs eagerly."""
        self._break(why)

    def kept_elsewhere(self, result: Any) -> bool:
        """Whether Python still holds a computed tensor when the function has returned, but for its ``result``: in a
        list of features, say, where the calls to come would have to put theirs."""
        slots = (*self.inputs, *(tensor for tensor, _ in self._slots.values()))
        known = [*self.inputs, *OutputTree(result).traced, *(x._grad for x in slots if type(x._grad) is Tensor)]
        if are_all_known(self, known):
            return False
        collect_now()  # perhaps they only wait for it
        return not are_all_known(self, known)

    def _break(self, why: str) -> None:
        """The break itself; see the module's docstring."""
        if self.journals or self.finished:
            raise GraphBreak(why)
        self.noted = note(user_location(), why)
        self.broken = True
        self.line = _line_of(self.code)
        alive = live_tensors(self)
        live = [x for x in alive if is_plain(x) and self._is_outside(x)]
        chosen = [x for x in alive if not is_plain(x) and all(map(self._is_outside, (x.payload.whole, x.payload.mask)))]
        # the others belong to regions that were given up: nothing but the exception holds them
        names = {op.name for op in self.program.block}
        plain = all(name.startswith("phi.") or name in _REPLAYED for name in names)
        symbolic = any(not isinstance(n, int) for value in self.program.inputs for n in value.shape)
        if plain and not symbolic and not communicates(names):
            self._replay(live)
        else:
            self._execute(live)
        _settle(chosen)

    def _is_outside(self, x: Tensor) -> bool:
        """Whether ``x`` is of no region."""
        return block_of(x.payload.value) is self.program.block

    # Operation by operation

    def _replay(self, live: list[Tensor]) -> None:
        draws, generator = self._draws, self._generator
        finals = [(x.payload.value, real) for x, real in zip(self.inputs, self.call.tensors, strict=False)]
        arguments = list(self.program.inputs)
        slots = [(tensor, tensor._grad) for tensor, _ in self._slots.values()]
        self.__exit__(None, None, None)
        with suspend_layers(), enable_grad():
            made = self._made = self._starts(arguments)
            for op in self.program.block:
                if op.name == "builtin.constant":
                    made[op.result] = Tensor._wrap(StridedArray(np.array(constant_array(op.attributes["value"], {}))))
                elif op.name == "prim.stop_gradient":
                    made[op.result] = made[op.operand(0)].detach()
                elif op.name != "builtin.return":
                    results = bind(get_operator(op.kind), [made[v] for v in op.operands], dict(op.attributes))
                    made.update(zip(op.results, results if type(results) is tuple else (results,), strict=True))
            self._write_back(arguments, finals)
        if draws:
            generator.advance(draws)
        written = {}
        for x, argument, (final, real) in zip(self.inputs, arguments, finals, strict=False):
            if final is not argument:
                written[id(x)] = real
        for x in live:
            _become(x, written[id(x)] if id(x) in written else made[x.payload.value])
        for tensor, grad in slots:  # as the captured part left them: what it put there is concrete now
            tensor._grad = grad

    def _starts(self, arguments: Sequence[Value]) -> dict[Value, Tensor]:
        made = {}
        inputs = [*self.call.tensors, *self._float_tensors(len(arguments) - len(self.call.tensors))]
        for value, real in zip(arguments, inputs, strict=True):
            made[value] = _link(real)
        for entry in self._states.values():
            made[entry.state.argument] = entry.tensor
            if self._generator is not None and entry.tensor is self._generator.state:  # it moves on; the tape keeps it
                made[entry.state.argument] = Tensor._wrap(StridedArray(entry.tensor.payload.ndarray.copy()))
        return made

    def _float_tensors(self, count: int) -> list[Tensor]:
        if not count:
            return []
        dtype = default_dtype().numpy
        return [Tensor._wrap(StridedArray(np.array(self.call.floats[i], dtype))) for i in self.runtime]

    def _write_back(self, arguments: Sequence[Value], finals: Sequence[tuple[Value, Tensor]]) -> None:
        for entry in self._states.values():
            if entry.current is not entry.state.argument:
                with no_grad():
                    write(entry.tensor, self._made[entry.current].detach())
        for argument, (final, real) in zip(arguments, finals, strict=False):
            if final is not argument:
                write(real, self._made[final])

    runtime: Sequence[int] = ()
    """Positions of the call's floats that are inputs."""

    # As one compiled program

    def _execute(self, live: list[Tensor]) -> None:
        inputs = {id(x) for x in self.inputs}
        before = [v for v in self.program.inputs]
        wanted = [x for x in live if id(x) not in inputs]
        values = [x.payload.value for x in wanted]
        tree = OutputTree(wanted)
        effects = Effects(
            [i for i, x in enumerate(self.inputs) if x.payload.value is not before[i]],
            [i for i, x in enumerate(self.inputs) if type(x._grad) is Tensor and x._grad.payload.is_traced],
        )
        more: list[Any] = [self.inputs[i] for i in effects.written] + [self.inputs[i]._grad for i in effects.graded]
        captured = self.finish([*tree.traced, *more])
        self.__exit__(None, None, None)
        with suspend_layers():
            compiled = self.compile(captured, tree, effects)
            results = compiled(self.call)
        for value, x, result in zip(values, wanted, results, strict=True):
            self._made[value] = result
            _become(x, result)
        with suspend_layers(), enable_grad():
            given = [_link(real) for real in self.call.tensors]
        for x, real in zip(self.inputs, given, strict=False):
            self._made[x.payload.value] = real
            _become(x, real)


def _settle(chosen: Sequence[Tensor]) -> None:
    """Select by masks, whose values are known now."""
    with suspend_layers(), enable_grad():
        made = [(x, x.payload, x.payload.whole[x.payload.mask]) for x in chosen]
    for x, payload, result in made:
        payload.settled = result.payload
        _become(x, result)


def _line_of(code: CodeType | None) -> int | None:
    """Where a function is that runs now, by its code."""
    frame = sys._getframe(1) if code is not None else None
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return None if frame is None else frame.f_lineno


def _link(real: Tensor) -> Tensor:
    """A tensor that shows the memory of ``real``, and leads gradients to it."""
    if real.stop_gradient or real._node is not None:
        return real
    made = get_operator("assign")(real)
    made.payload = real.payload
    return made  # type: ignore[no-any-return]


def _become(traced: Tensor, made: Tensor) -> None:
    """Let ``traced``, which Python holds, be the concrete tensor ``made``."""
    traced.payload = made.payload
    if traced.stop_gradient or made.stop_gradient:
        traced.stop_gradient = True
    else:
        traced._node, traced._slot = made._node, made._slot
