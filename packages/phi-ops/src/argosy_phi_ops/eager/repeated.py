"""The short way of operators with several results, and what it shares with the routes of those with one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops.checks.memory_limits import UNASKED
from argosy_phi_ops.context import context
from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.eager import dispatch, native
from argosy_phi_ops.eager.gradient_blockers import note_walls, silenced, walls_of
from argosy_phi_ops.eager.kernel_choice import computed_results, given_results, may_be_compiled, on_arrays
from argosy_phi_ops.eager.tiering import Counted, NativeKernel, computes_nothing
from argosy_phi_ops.errors import CaptureError, OperatorError
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.storage import ArrayType, Strided
from argosy_tensorcore.tensor import Tensor

__all__ = ["Repeated", "any_state", "is_repeatable", "type_of"]

_new = object.__new__
_ndarray = np.ndarray


def type_of(x: Any) -> Any:
    """What a route tells operands apart by; AttributeError for tensors that are no plain arrays."""
    return x.payload.array_type if type(x) is Tensor else type(x)


def is_repeatable(op: Operator, operands: Sequence[Any], results: Sequence[Any]) -> bool:
    """Whether there is a short way from these operands to these results: arrays of this machine, none of them too large
    to be made without a look at what memory there is."""
    if any(type(x) is Tensor and type(x.payload) is not Strided for x in (*operands, *results)):
        return False
    if not any(type(x) is Tensor for x in operands):
        return (op.random or not operands) and all(x.payload.ndarray.nbytes <= UNASKED for x in results)
    return True


def any_state() -> Tensor:
    """A state of random draws, for what depends on its type alone."""
    return Tensor._wrap(Strided(np.zeros(2, np.uint64)))


class Repeated:
    """How an operator with several results is applied to operands of certain types.

    ``kernel`` takes arrays and attributes; ``views`` says where in the memory of the only operand the results are, if
    they are views or copies of parts of it: for each its type, the strides and the distance from the start in bytes.
    ``recipes`` belongs to the recorder. ``reading`` is how native code tells its calls, None where it cannot; ``calls``
    are its native plans. ``fresh`` tells that no result is an operand.
    """

    __slots__ = (
        "attributes", "bound", "calls", "fresh", "kernel", "op", "plan", "reading", "recipes", "result", "results",
        "shown", "types", "views",
    )  # fmt: skip

    def __init__(
        self,
        op: Operator,
        operands: Sequence[Any],
        attributes: dict[str, Any],
        results: Sequence[Tensor],
        reading: native.Reading | None = None,
    ) -> None:
        self.op = op
        self.reading = reading
        self.calls: list[Any] = []
        self.fresh = False
        self.recipes: dict[Any, Any] = {}
        self.bound = attributes
        if op.random:
            operands, attributes = (*operands, any_state()), dispatch.drawing(attributes, 0)
        self.attributes = attributes
        self.plan = plan = (dispatch.new_plan if op.random else dispatch.plan_for)(op, operands, attributes)
        self.kernel = plan.kernel
        self.types = [type_of(x) for x in operands]
        self.results = [x.payload.array_type for x in results]
        self.result = next((t for t in self.results if t.differentiable), self.results[0]) if results else None
        unlooked = op.bounds is None and op.refusal is None
        self.views = self._views() if len(operands) == 1 and plan.plain and unlooked and not op.random else None
        if plan.plain and unlooked and may_be_compiled(op, self.types):
            self.kernel = Counted(plan.kernel, self._made, self._of_arrays, self._replace)
        self.shown: Callable[[Strided], tuple[Tensor, ...]] = self._shown
        if self.views is not None and reading is not None:
            self.shown = self._hot_views()

    def __call__(self, operands: Sequence[Any], silent: bool) -> Any:
        """The results for operands of these types. Raises what the operator does."""
        op = self.op
        if self.views is not None and operands[0].payload.ndarray.flags.c_contiguous:
            given: Sequence[Any] = operands
            results = self.shown(operands[0].payload)
        else:
            given = (*operands, dispatch.fresh_draw(context().generator)) if op.random else operands
            others = () if self.fresh else given  # before the kernel: it may be replaced now
            try:
                made = self.kernel(self._arrays(given), self.attributes)
            except (ValueError, TypeError, IndexError):
                return op.applied(operands, self.bound)  # explains it
            results = tuple([self._wrapped(others, *each) for each in zip(made, self.results, strict=True)])
        walls = walls_of(operands)
        wanted = not all([type(x) is not Tensor or x.stop_gradient for x in operands])
        if wanted and silent:
            walls = silenced(walls)
        if walls is not None:
            for result in results:
                result._walls = walls
        if wanted and not silent:
            self._record(given, results)
        return results

    def _record(self, operands: Sequence[Any], results: Sequence[Tensor]) -> None:
        for result, kind in zip(results, self.results, strict=True):
            result.stop_gradient = self.op.constant or not kind.differentiable
        note_walls(self.op, operands, results)
        if self.op.constant:
            return
        recorder = dispatch.active_recorder()
        if recorder is not None:
            recorder.record_repeated(self, operands, results)

    def _arrays(self, operands: Sequence[Any]) -> list[Any]:
        arrays = [x.payload.ndarray if type(x) is Tensor else x for x in operands]
        if self.plan.plain:
            return arrays
        return [a if d is None else np.asarray(a, d) for a, d in zip(arrays, self.plan.dtypes, strict=True)]

    def _wrapped(self, operands: Sequence[Any], array: Any, known: ArrayType) -> Tensor:
        if type(array) is not _ndarray or array.base is not None or any([x.payload.ndarray is array for x in operands]):
            return Tensor._wrap(dispatch.payload_of(self.op, operands, array))
        return Tensor._wrap(_payload(array, known))

    def _shown(self, base: Strided) -> tuple[Tensor, ...]:
        memory, view = base.ndarray, self.op.view
        storage = base.storage if view else None
        results = []
        for known, strides, distance in self.views or ():
            array = _ndarray(known.shape, known.dtype.numpy, memory, distance, strides)
            payload = _payload(array if view else array.copy(), known)
            payload._storage = storage
            results.append(Tensor._wrap(payload))
        return tuple(results)

    def _views(self) -> list[tuple[ArrayType, tuple[int, ...], int]] | None:
        if not self.op.view and not self._moves():
            return None
        sample = np.zeros(self.types[0].shape, self.types[0].dtype.numpy)
        made = self.kernel([sample], self.attributes)
        if not all(type(a) is _ndarray and a.size and np.may_share_memory(a, sample) for a in made):
            return None
        if any(a.dtype != t.dtype.numpy or a.shape != t.shape for a, t in zip(made, self.results, strict=True)):
            return None
        places = [a.ctypes.data - sample.ctypes.data for a in made]
        return [(t, a.strides, place) for t, a, place in zip(self.results, made, places, strict=True)]

    def _moves(self) -> bool:
        try:
            return computes_nothing(self._program())
        except (NotImplementedError, OperatorError, CaptureError):  # it has no program
            return False

    def _program(self) -> Program:
        return self.op.expand([TensorType(t.shape, t.dtype.name) for t in self.types], self.attributes).program

    def _made(self) -> Program | None:
        return computed_results(self._program())

    def _of_arrays(self, compiled: NativeKernel) -> Callable[..., Any]:
        program = self._program()
        if not given_results(program):
            self.fresh = True
            self._let_native_run(compiled)
        return on_arrays(program, compiled, True)

    def _let_native_run(self, compiled: NativeKernel) -> None:
        if compiled.code is not None and self.plan.plain and not self.op.random and self.reading is not None:
            native.learn_several(self, compiled.code)

    def _hot_views(self) -> Callable[[Strided], tuple[Tensor, ...]]:
        """What shows the results until native code does: views, or copies, which a program makes."""
        if self.op.view:
            return Counted(self._shown, lambda: None, lambda kernel: kernel, self._let_native_show)
        return Counted(self._shown, self._made, self._let_native_move, self._stay, lambda: 1)

    def _let_native_move(self, compiled: NativeKernel) -> Callable[[Strided], tuple[Tensor, ...]]:
        self._let_native_run(compiled)
        return self._shown

    def _stay(self, shown: Callable[[Strided], tuple[Tensor, ...]]) -> None:
        self.shown = shown

    def _let_native_show(self, kernel: Callable[..., Any]) -> None:
        self.shown = self._shown
        native.learn_views(self)

    def _replace(self, kernel: Callable[..., Any]) -> None:
        self.kernel = kernel


def _payload(array: Any, known: ArrayType) -> Strided:
    payload = _new(Strided)
    payload.ndarray = array
    payload._storage = None
    payload.array_type = known
    payload.dtype = known.dtype
    payload.shape = known.shape
    payload.ndim = known.ndim
    return payload
