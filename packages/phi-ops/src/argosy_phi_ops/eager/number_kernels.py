"""Kernels for numbers that come again and again, as in ``x ** 2`` and ``x > 0``: compiled with the numbers as constants
where that is exact. Numbers that keep changing are left to numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.expansion import inline_body
from argosy_phi_ops.eager import native
from argosy_phi_ops.eager.tiering import NativeKernel, TieredKernel
from argosy_pir.builder import Builder
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.storage import ArrayType
from argosy_tensorcore.tensor import Tensor

__all__ = ["NumberKernels", "number_kernels"]

Kernel = Callable[..., Any]

_MOST = 4  # values of one application that are counted
_NUMBERS = frozenset({int, float})


def number_kernels(application: Any) -> NumberKernels | None:
    """Those of an application to tensors of one floating dtype, perhaps masks, and numbers; None of any other."""
    types, dtypes, draws = application.types, application.dtypes, application.draws
    tensors = [t for t in types if type(t) is ArrayType]
    numbers = [t for t in types if type(t) is not ArrayType]
    if not numbers or dtypes is None or not _NUMBERS.issuperset(numbers):
        return None
    unconverted = all(d is None for t, d in zip(types, dtypes, strict=True) if type(t) is ArrayType)
    kinds = {t.dtype for t in (tensors[:-1] if draws else tensors) if t.dtype.name != "bool"}
    one = kinds.pop().kind in "fc" if len(kinds) == 1 else draws and not kinds
    return NumberKernels(application) if unconverted and one and not application.op.view else None


class NumberKernels:
    """Kernels of an application by the values of its numbers, each counted by itself."""

    __slots__ = ("application", "found", "kernel")

    def __init__(self, application: Any) -> None:
        self.application = application
        self.kernel: Kernel = application.ufunc or application.kernel
        self.found: dict[tuple[Any, ...], Kernel] = {}

    def kernel_for(self, operands: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Kernel:
        """What computes a call in the place of ``kernel``: compiled, when its numbers have come often."""
        key: tuple[Any, ...] = tuple(
            [(type(x), x or repr(x)) for x in operands if type(x) is not Tensor]
        )  # zeros differ by sign
        if kwargs:
            key += tuple(kwargs)  # another way to write the call, which native code reads otherwise
        kernel = self.found.get(key)
        if kernel is None:
            reading = native.read(args, kwargs)
            numbers = tuple([None if type(x) is Tensor else x for x in operands])
            if reading is None or len(self.found) == _MOST or any(x is not None and x != x for x in numbers):
                self.application.constants = None
                return self.kernel
            kernel = self.found[key] = TieredKernel(
                self.kernel, partial(self._program, numbers), partial(self._compiled_kernel, numbers, reading),
                partial(self.found.__setitem__, key), partial(native.least_steps, self.application), from_first=False,
            )  # fmt: skip
        return kernel

    def _program(self, numbers: Sequence[Any]) -> Program:
        application = self.application
        program = Program(application.op.name)
        given = [
            program.add_input(TensorType(t.shape, t.dtype.name)) if x is None else x
            for t, x in zip(application.types, numbers, strict=True)
        ]
        with emit_at(Builder.at_end(program.block)):
            result = inline_body(application.op, given, application.attributes)
        program.set_outputs([result])
        return program

    def _compiled_kernel(self, numbers: Sequence[Any], reading: native.CallSignature, compiled: NativeKernel) -> Kernel:
        """A kernel for calls with these numbers, which are constants of it."""
        if compiled.code is not None:
            native.learn_program(self.application, compiled.code, reading, numbers)
        tensors = [i for i, x in enumerate(numbers) if x is None]
        guarded: Kernel = self.application.guard_kernel(
            lambda *arrays: compiled([arrays[i] for i in tensors])[0], numbers
        )
        return guarded
