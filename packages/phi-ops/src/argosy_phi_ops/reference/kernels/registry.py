"""The table of reference kernels, and what every kernel shares: quiet IEEE arithmetic and one rounding.

A kernel takes ndarrays and the primitive's attributes as keywords, and returns one ndarray or a tuple of
them. It never writes its operands; its result may be a view of one.
"""

import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from argosy_tensorcore.dtype import as_dtype

Array = np.ndarray[Any, Any]
Kernel = Callable[..., Any]
F = TypeVar("F", bound=Kernel)

KERNELS: dict[str, Kernel] = {}


def kernel(*names: str) -> Callable[[F], F]:
    """Register the decorated function as the reference kernel of the primitives `names`.

    Raises:
        ValueError: if one of them has a kernel already.
    """

    def register(function: F) -> F:
        for name in names:
            if name in KERNELS:
                raise ValueError(f"primitive {name!r} already has a reference kernel, {KERNELS[name]!r}; one is enough")
            KERNELS[name] = function
        return function

    return register


def kernel_for(name: str) -> Kernel:
    """The reference kernel of primitive `name` (with or without the prefix ``prim.``).

    Raises:
        NotImplementedError: if there is none.
    """
    found = KERNELS.get(name.removeprefix("prim."))
    if found is None:
        raise NotImplementedError(
            f"primitive {name!r} has no reference kernel; those that have one: {', '.join(sorted(KERNELS))}"
        )
    return found


_INTO: dict[str, Kernel] = {}


def kernel_into(name: str) -> Callable[[F], F]:
    """Register a second form of the kernel of primitive `name`, which writes its one tensor to a C-contiguous array,
    its several to a sequence of such.

    What it writes to comes first and overlaps no operand; that of an ``all_reduce`` may be its operand, those of
    a ``reduce_scatter_coalesced`` may begin where theirs do. For kernels whose
    library can write where it is told: compiled programs have a place for every result, and a fresh array would cost
    its page faults and a copy.
    """

    def register(function: F) -> F:
        _INTO[name] = function
        return function

    return register


def kernel_into_for(name: str) -> Kernel | None:
    """The form of the kernel of primitive `name` (with or without ``prim.``) that writes to an array, if any."""
    return _INTO.get(name.removeprefix("prim."))


class _WarningFreeContext(threading.local):
    """`quiet.run(f, *args)` calls a numpy function without floating-point warnings, as IEEE 754 results are
    intended.

    numpy keeps its error state in a context variable, so a context that holds the quiet state costs 25 ns to
    enter where `np.errstate` costs 700. A context can be entered once at a time: hence one per thread, and
    only for leaf functions.
    """

    def __init__(self) -> None:
        if np.lib.NumpyVersion(np.__version__) < "2.0.0":  # there the state is the thread's, not the context's
            self.run: Callable[..., Any] = _run_with_errstate
            return
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


def _run_with_errstate(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*arguments, **keywords)


quiet = _WarningFreeContext()
shared_run: Callable[..., Any] = _WarningFreeContext().run
"""``quiet.run`` without the look-up of the thread's own context, which costs more than entering it. Raises RuntimeError
while another thread is in it: call ``quiet.run`` then."""
ieee = np.errstate(all="ignore")  # decorator of kernels of several steps


def as_array(result: Any) -> Array:
    """numpy answers scalars where an operand has no axes; a kernel answers 0-D arrays."""
    return result if type(result) is np.ndarray else np.asarray(result)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype of an attribute like ``"bfloat16"``."""
    return as_dtype(name).numpy


def is_narrow_float(dtype: np.dtype[Any]) -> bool:
    """Whether arithmetic on `dtype` is done in float32 and rounded once: float16, bfloat16 and the float8
    formats.

    To numpy, most of ml_dtypes' formats are of kind 'V'.
    """
    return dtype.kind == "V" or (dtype.kind == "f" and dtype.itemsize <= 2)


def widen(x: Array) -> Array:
    """`x`, in float32 where its format is narrower; the caller rounds the result back once, by `round_narrow`."""
    return x.astype(np.float32) if is_narrow_float(x.dtype) else x


def round_narrow(result: Any, dtype: np.dtype[Any]) -> Array:
    """`result` as an array of `dtype`: the one rounding; overflow gives an infinity quietly."""
    array = as_array(result)
    return array if array.dtype == dtype else quiet.run(array.astype, dtype)
