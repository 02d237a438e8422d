"""An application: everything known about applying an operator to operands of certain types with certain attributes.

It is made once (*check*: promotion, conversions, the kernel, guards of indices and values), found again by those types
and attributes (`eager.table`), and then does three things: *run* the kernel, *wrap* what it gives (`eager.results`),
and have it *recorded* where an operand wants gradients (`eager.recording`). Its kernel is numpy's or, where that pays,
native code of its program (`eager.tiering`); native code that is entered before Python keeps plans of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from argosy_phi_ops.checks import value_checks
from argosy_phi_ops.checks.memory_limits import UNASKED, check_attributes, check_program
from argosy_phi_ops.declare import promotion
from argosy_phi_ops.declare.expansion import Expansion
from argosy_phi_ops.eager import native
from argosy_phi_ops.eager.gradient_blockers import blockers_of, join_blockers, note_blockers, silence_blockers
from argosy_phi_ops.eager.number_kernels import NumberKernels, number_kernels
from argosy_phi_ops.eager.recording import active_recorder, block_silently, record_results, recorder_for
from argosy_phi_ops.eager.results import Parts, fresh_tensor, result_of
from argosy_phi_ops.eager.tiering import NativeKernel, TieredKernel, computed_results, computes_nothing, given_results
from argosy_phi_ops.errors import CaptureError, OperatorError
from argosy_phi_ops.reference.kernels.registry import quiet, shared_run
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import ArrayType, StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["NUMBERS", "Application", "kernel_of"]

Kernel = Callable[..., Any]
NUMBERS = frozenset({int, float, bool, complex})
"""Classes of numbers that operands may be."""

_ndarray = np.ndarray
_MOST_READINGS = 8  # ways to write a call for which native code gets plans


class Application:
    """``op`` on operands of ``types`` (array types, classes of numbers) with ``attributes``.

    ``types`` given as None: it is for these operands alone, and nothing is kept of it.
    ``kernel`` takes the operands' arrays and numbers; ``ufunc``, of two operands of one dtype, is numpy's function (or
    what took its place) of operands that have ``dtypes`` already, for who calls it quietly.
    ``fixed`` tells that types and attributes decide on what comes out: ``results`` are the types, ``result`` that of
    the only one (or of the first that has a gradient). ``parts``: where in the only operand's memory several results
    are, which ``show`` makes. ``draws``: the last operand is the state of a random draw, which callers do not give.
    ``constants``: kernels for numbers that come again.
    ``record`` notes a result that wants gradients, ``recipes`` belong to the recorder: what it worked out, by which
    operands want them. ``readings`` are how native code tells the calls that come here, ``plans`` what it knows of
    them (None when it shall know nothing any more), ``code`` the compiled program; ``is_fresh``: no result of that
    is an operand.
    """

    __slots__ = (
        "attributes", "code", "constants", "draws", "dtypes", "fixed", "is_fresh", "kernel", "op", "parts", "plans",
        "readings", "recipes", "record", "result", "results", "show", "types", "ufunc",
    )  # fmt: skip

    def __init__(
        self, op: Any, operands: Sequence[Any], attributes: dict[str, Any], types: tuple[Any, ...] | None
    ) -> None:
        self.op, self.attributes = op, attributes
        self.types: tuple[Any, ...] = tuple([type(x) for x in operands]) if types is None else types
        arrays = any([type(t) is ArrayType for t in self.types])
        self.fixed = types is not None and not op.opaque and (op.random or arrays or not types)
        self.draws = op.random
        self.results: list[ArrayType] | None = None
        self.result: ArrayType | None = None
        self.record: Callable[[Application, Sequence[Any], Tensor], None] | None = None
        self.recipes: dict[Any, Any] = {}
        self.readings: list[native.CallSignature] = []
        self.plans: list[native.NativePlan] | None = []
        self.code: Any = None
        self.is_fresh = False
        self.parts: Parts | None = None
        self.show: Callable[[StridedArray], tuple[Tensor, ...]] | None = None
        self.constants: NumberKernels | None = None
        self.ufunc: Kernel | None = None
        targets, self.dtypes = promotion.conversions(op.promote, op.name, operands)
        self.kernel = self._chosen_kernel(operands, targets)

    # ---- check: what computes it

    def _chosen_kernel(self, operands: Sequence[Any], targets: Sequence[str]) -> Kernel:
        op, dtypes, types = self.op, self.dtypes, self.types
        own = op.kernel is not None
        kernel = kernel_of(op, self.attributes) if own else self._interpreted_kernel(operands, targets)
        if op.bounds is not None or op.refusal is not None:
            kernel = self._between_checks(kernel)
        if dtypes is None and op.choose is not None and all(type(t) is ArrayType for t in types):
            special = op.choose(types, self.attributes)
            kernel = kernel if special is None else self.guard_kernel(special)
        if self._is_elementwise():
            self.ufunc = kernel = _ufunc_of(op.kernel, max(getattr(t, "ndim", 0) for t in types))
        if dtypes is None and self.fixed and _may_be_compiled(op, types):
            least = partial(native.least_steps, self)
            kernel = TieredKernel(kernel, self.program, self._compiled_kernel, self._install, least)
        if self.ufunc is not None:
            self.ufunc, kernel = kernel, self._run_quietly
        return kernel if dtypes is None else _converting_kernel(kernel, dtypes)

    def _interpreted_kernel(self, operands: Sequence[Any], targets: Sequence[str]) -> Kernel:
        """The operator's program, interpreted."""
        from argosy_phi_ops.reference.interpreter import prepare
        from argosy_phi_ops.reference.straight_line import StraightLine

        shapes = [tuple(x.payload.shape) if type(x) is Tensor else np.shape(x) for x in operands]
        types = [TensorType(shape, dtype) for shape, dtype in zip(shapes, targets, strict=True)]
        expansion = self.op.expand(types, self.attributes)
        if not self.op.view:
            check_program(self.op.name, expansion.program)
        run = prepare(expansion.runs)
        line = getattr(run, "__self__", None)
        if not expansion.bare:
            return lambda *arrays: tuple(run(arrays))
        single = line.single_kernel if type(line) is StraightLine else None
        return single or (lambda *arrays: run(arrays)[0])

    def _is_elementwise(self) -> bool:
        """Whether numpy's function takes the operands: a tensor, and what is of its dtype or becomes so."""
        if getattr(self.op.kernel, "ufunc", None) is None or len(self.types) != 2 or self.attributes:
            return False
        x, y = self.types
        if type(x) is not ArrayType or (self.dtypes is not None and self.dtypes[0] is not None):
            return False
        return x.dtype is y.dtype and self.dtypes is None if type(y) is ArrayType else y in NUMBERS

    def _run_quietly(self, x: Any, y: Any) -> Any:
        try:
            return shared_run(self.ufunc, x, y)
        except RuntimeError:  # another thread is in it
            return quiet.run(self.ufunc, x, y)

    def _between_checks(self, kernel: Kernel) -> Kernel:
        """``kernel`` between looks at its indices and its values."""
        run, attributes = value_checks.guard_values(self.op, lambda arrays, _: kernel(*arrays)), self.attributes
        return lambda *arrays: run(arrays, attributes)

    def guard_kernel(self, kernel: Kernel, numbers: Sequence[Any] | None = None) -> Kernel:
        """The same, where there is anything to look at; numbers among the operands (None stands for a tensor) are not
        looked at again."""
        op = self.op
        if op.bounds is None and op.own_bounds is None:
            given = numbers or (None,) * len(self.types)
            if op.refusal is None or value_checks.looks_at_constants(op, given, self.attributes):
                return kernel
        return self._between_checks(kernel)

    # ---- its program, compiled

    def expansion(self) -> Expansion:
        """The decomposition. Raises what :meth:`Operator.expand` does."""
        types = [TensorType(t.shape, t.dtype.name) for t in self.types]
        found: Expansion = self.op.expand(types, self.attributes)
        return found

    def program(self) -> Program | None:
        """What native code would compute, of primitives; None where that is nothing."""
        expansion = self.expansion()
        if expansion.bare:
            return expansion.program
        looked_at = self.op.bounds is not None or self.op.refusal is not None
        return None if looked_at else computed_results(expansion.program)

    def _compiled_kernel(self, compiled: NativeKernel) -> Kernel:
        """``compiled`` in the place of the kernel."""
        expansion = self.expansion()
        given = given_results(expansion.program)
        if expansion.bare or not given:
            self.code, self.is_fresh = compiled.code, not given
            for reading in self.readings:
                self._learn_program(reading)
        if expansion.bare:
            return self.guard_kernel(lambda *arrays: compiled(arrays)[0])
        return _multiple_result_kernel(expansion.program, compiled)

    def _learn_program(self, reading: native.CallSignature) -> None:
        if self.code is None or self.results is None:
            return
        if self.is_single:
            native.learn_program(self, self.code, reading)
        elif not self.op.random:
            native.learn_several(self, self.code, reading)

    def _install(self, kernel: Kernel) -> None:
        if self.ufunc is not None:
            self.ufunc = kernel
        else:
            self.kernel = kernel

    # ---- native code that is entered before Python

    def read_as(self, reading: native.CallSignature | None) -> None:
        """Calls that native code reads so come here, too: it may do them itself."""
        if reading is None or reading in self.readings or len(self.readings) == _MOST_READINGS:
            return
        self.readings.append(reading)
        if self.parts is not None:
            self.show = self._counted_parts(self.parts)
        if self.is_single:
            if len(self.readings) == 1 and (self.ufunc is None or self.op.name not in native.KERNELS):
                self.constants = number_kernels(self)  # of those, numbers are data
            if self.dtypes is None and _is_view(self.op, self.types):
                native.learn_view(self)
            native.learn(self, reading)
        self._learn_program(reading)

    def _counted_parts(self, parts: Parts) -> Callable[[StridedArray], tuple[Tensor, ...]]:
        """What shows the results until native code does: views, or copies, which a program makes."""

        def show_natively(_: Any) -> None:
            self.show = parts.show
            for reading in self.readings:
                native.learn_parts(self, parts, reading)

        def copy_natively(compiled: NativeKernel) -> Callable[[StridedArray], tuple[Tensor, ...]]:
            self.code = compiled.code
            for reading in self.readings:
                self._learn_program(reading)
            return parts.show

        def stay(show: Callable[[StridedArray], tuple[Tensor, ...]]) -> None:
            self.show = show

        if parts.are_views:
            return TieredKernel(parts.show, lambda: None, lambda kernel: kernel, show_natively)
        return TieredKernel(parts.show, self.program, copy_natively, stay, lambda: 1)

    # ---- run, wrap, record

    def run(self, operands: Sequence[Any], silent: bool, kernel: Kernel | None = None) -> Any:
        """The results for operands of these types, by ``kernel`` if given. Raises what that does."""
        if self.show is not None and operands[0].payload.ndarray.flags.c_contiguous:
            return self._record_results(operands, self.show(operands[0].payload), silent)
        arrays = [x.payload.ndarray if type(x) is Tensor else x for x in operands]
        made = (kernel or self.kernel)(*arrays)
        if type(made) is tuple:
            return self._record_results(operands, self._wrap_results(operands, made), silent)
        blockers, wanted = None, False
        for x in operands:
            if type(x) is Tensor:
                if x._gradient_blockers is not None:
                    blockers = join_blockers(blockers, x._gradient_blockers)
                if not x.stop_gradient:
                    wanted = True
        if type(made) is _ndarray and made.base is None and not any([made is a for a in arrays]):
            result = fresh_tensor(made, self.result, blockers)  # type: ignore[arg-type]
        else:
            result = result_of(self.op, operands, made)
            result._gradient_blockers = blockers
        if wanted:
            (block_silently if silent else self.record)(self, operands, result)  # type: ignore[misc]
        return result

    def run_first(self, operands: Sequence[Any], silent: bool) -> Any:
        """The same, looking at what must be looked at once, or each time where the types do not decide."""
        op = self.op
        arrays = [x.payload.ndarray if type(x) is Tensor else x for x in operands]
        if self.attributes and op.kernel is not None:
            check_attributes(op, self._convert_arrays(arrays), self.attributes)
        try:
            made = self.kernel(*arrays)
        except (ValueError, TypeError, IndexError) as error:
            self.explain(operands, error)
            raise
        results = self._wrap_results(operands, made if type(made) is tuple else (made,))
        if not self.fixed:
            record_results(op, operands, self.attributes, results)
            return results if type(made) is tuple else results[0]
        self._settle(results, type(made) is tuple)
        if type(made) is tuple:
            return self._record_results(operands, results, silent)
        results[0]._gradient_blockers = blockers_of(operands)
        if any([type(x) is Tensor and not x.stop_gradient for x in operands]):
            (block_silently if silent else self.record)(self, operands, results[0])  # type: ignore[misc]
        return results[0]

    def _wrap_results(self, operands: Sequence[Any], made: Sequence[Any]) -> tuple[Tensor, ...]:
        if self.results is None:
            return tuple([result_of(self.op, operands, array) for array in made])
        others = () if self.is_fresh else operands
        return tuple([result_of(self.op, others, a, t) for a, t in zip(made, self.results, strict=True)])

    def _record_results(self, operands: Sequence[Any], results: tuple[Tensor, ...], silent: bool) -> tuple[Tensor, ...]:
        """Several ``results``, recorded where an operand wants gradients."""
        blockers = blockers_of(operands)
        wanted = any([type(x) is Tensor and not x.stop_gradient for x in operands])
        if wanted and silent:
            blockers = silence_blockers(blockers)
        if blockers is not None:
            for result in results:
                result._gradient_blockers = blockers
        if wanted and not silent:
            for result in results:
                result.stop_gradient = self.op.constant or not result.payload.array_type.differentiable
            note_blockers(self.op, operands, results)
            recorder = None if self.op.constant else active_recorder()
            if recorder is not None:
                recorder.record_several(self, operands, results)
        return results

    @property
    def is_single(self) -> bool:
        """Whether there is one result, rather than a tuple of them."""
        return self.record is not None

    def _settle(self, results: Sequence[Tensor], several: bool) -> None:
        """Note what has come out, which does not change any more."""
        types = [x.payload.array_type for x in results]
        self.result = next((t for t in types if t.differentiable), types[0]) if types else None
        self.results = types
        if not several:
            self.record = recorder_for(self.op, self.types, types[0])
        elif len(self.types) == 1 and self.dtypes is None and not self.op.random:
            self._settle_parts(types)

    def _settle_parts(self, types: Sequence[ArrayType]) -> None:
        op = self.op
        if op.bounds is not None or op.refusal is not None or not (op.view or self._moves()):
            return
        self.parts = Parts.from_kernel(self.kernel, self.types[0], types, op.view)
        if self.parts is not None:
            self.show = self.parts.show

    def _moves(self) -> bool:
        try:
            return computes_nothing(self.expansion().program)
        except (NotImplementedError, OperatorError, CaptureError):  # it has no program
            return False

    def may_be_kept(self) -> bool:
        """Whether another application to operands like these may go without a look at what memory there is."""
        given = self.types[: len(self.types) - self.draws]
        if not self.fixed or any([type(t) is ArrayType for t in given]):
            return True
        return all([t.dtype.itemsize * int(np.prod(t.shape)) <= UNASKED for t in self.results or ()])

    def explain(self, operands: Sequence[Any], error: Exception) -> None:
        """Raise what the operator's body says of these operands, when it refuses them: it names them and what it
        expects."""
        if isinstance(error, OperatorError) or self.op.opaque:
            return
        arrays = [x.payload.ndarray if type(x) is Tensor else x for x in operands]
        given = [np.asarray(a) for a in self._convert_arrays(arrays)]
        try:
            self.op.expand([TensorType(a.shape, as_dtype(a.dtype).name) for a in given], self.attributes)
        except OperatorError as better:
            raise better from None

    def _convert_arrays(self, arrays: Sequence[Any]) -> Sequence[Any]:
        if self.dtypes is None:
            return arrays
        return [a if d is None else np.asarray(a, d) for a, d in zip(arrays, self.dtypes, strict=True)]


def kernel_of(op: Any, attributes: dict[str, Any]) -> Kernel:
    """The operator's own numpy kernel as a function of operands."""
    signature = op.signature
    names = tuple([p.name for p in signature.operands])
    body = op.body.__code__
    if signature.segmented or body.co_kwonlyargcount or body.co_varnames[: len(names)] != names:
        return lambda *arrays: op.kernel(**signature.regroup(arrays, attributes))
    return partial(op.kernel, **attributes) if attributes else op.kernel


def _may_be_compiled(op: Any, types: Sequence[Any]) -> bool:
    """Whether the decomposition is all that there is to an application, but for bounds of indices: a view shares
    memory, and a kernel of its own may look at integers and refuse them."""
    if op.interpreted or _is_view(op, types) or not all(type(t) is ArrayType for t in types):
        return False
    looked_at = op.bounds is not None or op.own_bounds is not None
    return op.kernel is None or op.random or looked_at or all(t.differentiable for t in types)


def _is_view(op: Any, types: Sequence[Any]) -> bool:
    """Whether the result may share the first operand's memory: elements at indices that tensors hold are copies."""
    return bool(op.view and (op.own_bounds is None or len(types) == 1))


def _ufunc_of(kernel: Any, ndim: int) -> Kernel:
    """The numpy function of a kernel; where there are no axes numpy gives scalars."""
    function: Kernel = kernel.ufunc
    return function if ndim else (lambda x, y: np.asarray(function(x, y)))


def _converting_kernel(kernel: Kernel, dtypes: Sequence[Any]) -> Kernel:
    return lambda *given: kernel(*[a if d is None else np.asarray(a, d) for a, d in zip(given, dtypes, strict=True)])


def _multiple_result_kernel(program: Program, native: NativeKernel) -> Kernel:
    """Native code of the computed results of ``program`` as a kernel that gives all of them."""
    given, count = given_results(program), len(program.outputs)
    if not given:
        return lambda *arrays: tuple(native(arrays))

    def run(*arrays: Any) -> tuple[Any, ...]:
        made = iter(native(arrays))
        return tuple([arrays[given[i]] if i in given else next(made) for i in range(count)])

    return run
