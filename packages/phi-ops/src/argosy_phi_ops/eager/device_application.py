"""Applications to tensors whose memory the host cannot see: the operator's program, compiled for their device.

They are in the same tables as those to arrays, found by the same keys, for the types of such tensors name the device.
Gradients need nothing of their own: the tape records the operator, and the derivative's program is an operator, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from argosy_hwadapt import Device
from argosy_phi_ops.bounded_cache import BoundedCache
from argosy_phi_ops.checks.index_checks import checked_program
from argosy_phi_ops.checks.value_checks import look_at
from argosy_phi_ops.compiler import available_compilers, get_compiler
from argosy_phi_ops.context import set_grad_enabled
from argosy_phi_ops.declare import promotion
from argosy_phi_ops.eager.application import Application, kernel_of
from argosy_phi_ops.eager.fallback import note_fallback
from argosy_phi_ops.eager.placement import device_of, send
from argosy_phi_ops.eager.recording import record_results
from argosy_phi_ops.eager.shared_programs import shared_run
from argosy_phi_ops.eager.vendor_operator import vendor_operator
from argosy_phi_ops.errors import CompileError
from argosy_phi_ops.primitives.checks import REAL_OF
from argosy_phi_ops.reference.interpreter import prepare
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import as_dtype, default_listeners
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["DeviceApplication"]

Run = Callable[[Sequence[StridedArray]], Sequence[StridedArray]]
_numbers: BoundedCache = BoundedCache(256)
"""Numbers in the memory of devices, by device, dtype and value."""
default_listeners.append(_numbers.clear)


class DeviceApplication:
    """``op`` on ``operands`` like these with ``attributes``, on ``device``."""

    __slots__ = ("attributes", "bare", "device", "dtypes", "kernel", "numbers", "op", "reason", "run_program")
    fixed = True
    constants = None

    def __init__(self, op: Any, operands: Sequence[Any], attributes: dict[str, Any], device: Device) -> None:
        self.op, self.attributes, self.device = op, attributes, device
        described = [promotion.describe(x.payload if type(x) is Tensor else x) for x in operands]
        self.dtypes = targets = promotion.promote(op.promote, op.name, described)
        self.numbers = [None if type(x) is Tensor else d for x, d in zip(operands, targets, strict=True)]
        self.reason = "it has no program of primitives" if op.opaque else ""
        self.kernel: Callable[..., Any] | None = None
        self.run_program: Run | None = None
        self.bare = True
        if not self.reason:
            self._compile([_type_of(x, d) for x, d in zip(operands, targets, strict=True)])

    @property
    def draws(self) -> bool:
        """Whether the last operand is the state of a random draw, which callers do not give."""
        return bool(self.op.random)

    def _compile(self, types: list[TensorType]) -> None:
        op, attributes, device = self.op, self.attributes, self.device
        expansion = op.expand(types, attributes)
        self.bare = expansion.bare
        if op.view and len(types) == 1:
            run = prepare(expansion.runs)
            self.kernel = kernel_of(op, attributes) if op.kernel is not None else lambda x: tuple(run([x]))
        self.run_program = vendor_operator(op.name, expansion.runs, attributes, device)
        if self.run_program is not None:
            return
        program = checked_program(op, expansion.runs, attributes)
        values = [v for each in program.walk() for v in (*each.operands, *each.results)]
        dtypes = {v.type.dtype for v in values if isinstance(v.type, TensorType)}
        missing = {REAL_OF.get(dtype, dtype) for dtype in dtypes} - device.info.dtypes  # complex numbers are pairs
        if missing:
            self.reason = f"the device does not compute with {', '.join(sorted(missing))}"
        elif available_compilers()[0] == "reference":
            self.reason = "no compiler is installed that makes code for it"
        else:
            try:
                self.run_program = None if op.view else shared_run(op, types, attributes, device)
                if self.run_program is not None:
                    return
                made: Any = get_compiler().compile(program, device)
                self.reason = getattr(made, "reason", "")
                self.run_program = None if self.reason else made.bind(())
            except CompileError as error:
                self.reason = str(error)

    def run(self, operands: Sequence[Any], silent: bool, kernel: None = None) -> Any:
        """The results for operands of these types, recorded where one wants gradients, unless ``silent``."""
        if self.op.random:
            device_of(self.op.name, operands[:-1])
        made: Sequence[StridedArray]
        views = None if self.kernel is None else self._payload(operands[0], None).views_by(self.kernel)
        if views is not None:  # no code runs, so that none has to be there
            made, bare = views, self.bare
        elif self.run_program is None:
            made, bare = self._on_host(operands)
        else:
            payloads = [self._payload(x, number) for x, number in zip(operands, self.numbers, strict=True)]
            made, bare = self.run_program(payloads), self.bare
            if self.op.refusal is not None:
                self._look(operands, made)
        results = tuple([Tensor._wrap(payload) for payload in made])
        record_results(self.op, operands, self.attributes, results)
        for result in results:
            if result._node is not None:
                result._node.on_tensors = self.device
        return results[0] if bare else results

    run_first = run

    def explain(self, operands: Sequence[Any], error: Exception) -> None:
        """Do nothing: expanding the operator has refused what it does not take."""

    def _payload(self, x: Any, number: str | None) -> StridedArray:
        if number is not None:
            return _number_on(self.device, x, number)
        payload: StridedArray = x.payload
        return payload if payload.array_type.device is self.device else send(payload, self.device)

    def _look(self, operands: Sequence[Any], made: Sequence[StridedArray]) -> None:
        """Let the operator refuse values, which come to the host for that."""
        given = [partial(_array_of, x, dtype) for x, dtype in zip(operands, self.dtypes, strict=True)]
        result = made[0].to_host if self.bare else lambda: tuple([payload.to_host() for payload in made])
        look_at(self.op, given, self.attributes, result, lambda x: x() if callable(x) else x)

    def _on_host(self, operands: Sequence[Any]) -> tuple[list[StridedArray], bool]:
        """The results by the host's kernels, back on the device."""
        held = [x.payload for x in operands if type(x) is Tensor]
        note_fallback(self.op.name, self.device, self.reason, sum(p.nbytes for p in held))
        copies = [
            Tensor._wrap(StridedArray.from_array(x.payload.to_host())) if type(x) is Tensor else x for x in operands
        ]
        previous = set_grad_enabled(False)
        try:
            made = Application(self.op, copies, self.attributes, None).run_first(copies, True)
        finally:
            set_grad_enabled(previous)
        results = made if type(made) is tuple else (made,)
        return [send(result.payload, self.device) for result in results], type(made) is not tuple


def _number_on(device: Device, value: Any, dtype: str) -> StridedArray:
    key = device, dtype, type(value), repr(value)  # the zeros are equal, but differ by sign
    found: StridedArray | None = _numbers.get(key)
    if found is None:
        found = _numbers[key] = send(StridedArray(np.array(value, as_dtype(dtype).numpy)), device)
    return found


def _array_of(x: Any, dtype: str) -> np.ndarray[Any, Any]:
    return np.asarray(x.payload.to_host() if type(x) is Tensor else x, as_dtype(dtype).numpy)


def _type_of(x: Any, dtype: str) -> TensorType:
    if type(x) is not Tensor:
        return TensorType((), dtype)
    return TensorType(tuple(x.payload.shape), x.payload.dtype.name)
