"""The kit's own kernels, in the forms it can write: C for ``native-object``, numpy callbacks for ``address``,
OpenCL C for ``opencl-c``, what LLVM makes of ``kit.ll`` for ``spirv``, text for ``nest``.

Every kernel takes buffers first, then scalars, the element count (int64) last.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from argosy_hwadapt.blob_cache import BlobCache
from argosy_hwadapt.contract import Kernel
from argosy_hwadapt.cpu.c_bindings import ffi
from argosy_hwadapt.device import Device, LaunchArgument
from argosy_hwadapt.kernel import Scalar
from argosy_hwadapt.testing.nest_kernels import ENTRIES, nest_source
from argosy_hwadapt.testing.opencl_kernels import SOURCE as OPENCL_SOURCE
from argosy_hwadapt.testing.suite import CheckSkipped

#: dtype -> struct letter of its scalars.
DTYPES = {"float32": "f", "float64": "d", "int32": "i", "int64": "q"}
NEST = "nest"
#: What checks of sources put into those of form ``nest``.
_SCALARS = {"relu": (Scalar("q", 100),), "axpby": (Scalar("f", 1), Scalar("f", 1), Scalar("q", 100)),
            "affine_float32": (Scalar("f", 3), Scalar("f", -7), Scalar("q", 100))}  # fmt: skip

_C_SOURCE = r"""
#include <stdint.h>
#define KERNEL(name) void name(void **arguments, const int64_t *extents)
#define ARG(i, T) (*(T *)arguments[i])
#define AFFINE(NAME, T) KERNEL(affine_##NAME) { \
    const T *x = ARG(0, const T *); T *y = ARG(1, T *); T a = ARG(2, T), b = ARG(3, T); \
    for (int64_t i = 0; i < ARG(4, int64_t); i++) y[i] = a * x[i] + b; }
AFFINE(float32, float) AFFINE(float64, double) AFFINE(int32, int32_t) AFFINE(int64, int64_t)
KERNEL(count_items) {
    int64_t items = extents[0] * extents[1] * extents[2] * extents[3] * extents[4] * extents[5];
    int32_t *out = ARG(0, int32_t *);
    for (int64_t i = 0; i < items && i < ARG(1, int64_t); i++) out[i] += 1; }
KERNEL(scalars) {
    double *out = ARG(0, double *);
    out[0] = ARG(1, int8_t); out[1] = ARG(2, uint16_t); out[2] = ARG(3, int32_t); out[3] = ARG(4, float);
    out[4] = ARG(5, uint8_t); out[5] = ARG(6, double); out[6] = (double)ARG(7, int64_t); }
KERNEL(matmul) {
    const float *a = ARG(0, const float *), *b = ARG(1, const float *); float *c = ARG(2, float *);
    int32_t m = ARG(3, int32_t), n = ARG(4, int32_t), k = ARG(5, int32_t), ta = ARG(6, int32_t), tb = ARG(7, int32_t);
    for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) {
        float sum = 0;
        for (int l = 0; l < k; l++) sum += (ta ? a[l * m + i] : a[i * k + l]) * (tb ? b[j * k + l] : b[l * n + j]);
        c[i * n + j] = sum; } }
KERNEL(relu) {
    const float *x = ARG(0, const float *); float *y = ARG(1, float *);
    for (int64_t i = 0; i < ARG(2, int64_t); i++) y[i] = x[i] > 0 ? x[i] : 0; }
KERNEL(relu_backward) {
    const float *y = ARG(0, const float *), *g = ARG(1, const float *); float *out = ARG(2, float *);
    for (int64_t i = 0; i < ARG(3, int64_t); i++) out[i] = y[i] > 0 ? g[i] : 0; }
KERNEL(axpby) {
    const float *x = ARG(0, const float *), *y = ARG(1, const float *); float *out = ARG(2, float *);
    float a = ARG(3, float), b = ARG(4, float);
    for (int64_t i = 0; i < ARG(5, int64_t); i++) out[i] = a * x[i] + b * y[i]; }
KERNEL(sum_squares) {
    const float *x = ARG(0, const float *); float sum = 0;
    for (int64_t i = 0; i < ARG(2, int64_t); i++) sum += x[i] * x[i];
    *ARG(1, float *) = sum; }
"""


class KitKernel:
    """One of the kit's kernels on a device. Raises CheckSkipped where the kit cannot write this form here."""

    def __init__(self, device: Device, form: str, entry: str, cache: BlobCache | None = None) -> None:
        self._device, self._form, self._entry, self._cache = device, form, entry, cache
        self._made: dict[tuple[Scalar, ...], Kernel] = {}
        if form == NEST and entry not in ENTRIES:
            raise CheckSkipped(f"kernels of form {form!r} see no {'grid' if entry == 'count_items' else 'scalars'}")
        if form != NEST:
            self._made[()] = load_kernel(device, kit_source(form, entry), form, entry, cache)

    def launch(
        self, grid: Sequence[int], arguments: Sequence[LaunchArgument], block: Sequence[int] = (1,), stream: Any = None
    ) -> None:
        """Launch it; in form ``nest`` the kernel that has these scalars in its text."""
        if self._form != NEST:
            self._device.launch(self._made[()], tuple(grid), tuple(block), arguments, stream=stream)
            return
        scalars = tuple([a for a in arguments if isinstance(a, Scalar)])
        if scalars not in self._made:
            source = nest_source(self._entry, scalars)
            self._made[scalars] = load_kernel(self._device, source, NEST, self._entry, self._cache)
        buffers = [a for a in arguments if not isinstance(a, Scalar)]
        self._device.launch(self._made[scalars], (1,), (1,), buffers, stream=stream)


def load_kernel(device: Device, source: bytes, form: str, entry: str, cache: BlobCache | None = None) -> Kernel:
    """Build and load a kernel."""
    return device.load(device.build(form, source, cache=cache), entry)


def usable_form(device: Device) -> str:
    """Return the device's most preferred form that the kit can write. Raises CheckSkipped if there is none."""
    for form in ("address", "native-object", "opencl-c", "spirv", NEST):
        if form in device.info.kernel_forms:
            return form
    raise CheckSkipped(f"the kit has no kernels in the forms {', '.join(device.info.kernel_forms) or '(none)'}")


def kit_source(form: str, entry: str) -> bytes:
    """Return the source of a kernel in a form. Raises CheckSkipped for a form the kit does not write."""
    if form == "address":
        return int(ffi.cast("uintptr_t", _CALLBACKS[entry])).to_bytes(8, "little")
    if form == "native-object":
        return _compile_kit()
    if form == "opencl-c":
        return OPENCL_SOURCE
    if form == "spirv":
        return files(__package__).joinpath("kit.spv").read_bytes()
    if form == NEST:
        return nest_source(entry, _SCALARS[entry])
    raise CheckSkipped(f"the kit has no kernels in form {form!r}")


@lru_cache(maxsize=1)
def _compile_kit() -> bytes:
    compiler = shutil.which("cc")
    if compiler is None:
        raise CheckSkipped("no C compiler on this machine to write kernels of form 'native-object'")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "kit.c"), Path(folder, "kit.so")
        source.write_text(_C_SOURCE, encoding="utf-8")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", target, source], check=True, capture_output=True)
        return target.read_bytes()


class _Arguments:
    """The argument cells of a launch, read by type."""

    def __init__(self, cells: Any) -> None:
        self._cells = cells

    def scalar(self, index: int, dtype: str) -> Any:
        size = np.dtype(dtype).itemsize
        return np.frombuffer(ffi.buffer(ffi.cast("char *", self._cells[index]), size), dtype)[0]

    def array(self, index: int, count: int, dtype: str = "float32") -> Any:
        address = ffi.cast("char **", self._cells[index])[0]
        return np.frombuffer(ffi.buffer(address, count * np.dtype(dtype).itemsize), dtype)


def _affine(dtype: str) -> Callable[[_Arguments, list[int]], None]:
    def affine(args: _Arguments, extents: list[int]) -> None:
        n = args.scalar(4, "int64")
        args.array(1, n, dtype)[:] = args.scalar(2, dtype) * args.array(0, n, dtype) + args.scalar(3, dtype)

    return affine


def _count_items(args: _Arguments, extents: list[int]) -> None:
    items = min(int(np.prod(extents)), int(args.scalar(1, "int64")))
    args.array(0, items, "int32")[:] += 1


def _scalars(args: _Arguments, extents: list[int]) -> None:
    kinds = ("int8", "uint16", "int32", "float32", "uint8", "float64", "int64")
    args.array(0, len(kinds), "float64")[:] = [float(args.scalar(i + 1, kind)) for i, kind in enumerate(kinds)]


def _matmul(args: _Arguments, extents: list[int]) -> None:
    m, n, k, ta, tb = (int(args.scalar(i, "int32")) for i in range(3, 8))
    a = args.array(0, m * k).reshape((k, m) if ta else (m, k))
    b = args.array(1, k * n).reshape((n, k) if tb else (k, n))
    args.array(2, m * n).reshape(m, n)[:] = (a.T if ta else a) @ (b.T if tb else b)


def _relu(args: _Arguments, extents: list[int]) -> None:
    n = args.scalar(2, "int64")
    np.maximum(args.array(0, n), 0, out=args.array(1, n))


def _relu_backward(args: _Arguments, extents: list[int]) -> None:
    n = args.scalar(3, "int64")
    args.array(2, n)[:] = np.where(args.array(0, n) > 0, args.array(1, n), 0)


def _axpby(args: _Arguments, extents: list[int]) -> None:
    n = args.scalar(5, "int64")
    args.array(2, n)[:] = args.scalar(3, "float32") * args.array(0, n) + args.scalar(4, "float32") * args.array(1, n)


def _sum_squares(args: _Arguments, extents: list[int]) -> None:
    args.array(1, 1)[0] = np.square(args.array(0, args.scalar(2, "int64"))).sum()


def _as_callback(function: Callable[[_Arguments, list[int]], None]) -> Any:
    def call(cells: Any, extents: Any) -> None:
        function(_Arguments(cells), [extents[i] for i in range(6)])

    return ffi.callback("void(void **, int64_t *)", call)


_CALLBACKS = {
    name: _as_callback(function)
    for name, function in {
        **{f"affine_{dtype}": _affine(dtype) for dtype in DTYPES},
        "count_items": _count_items,
        "scalars": _scalars,
        "matmul": _matmul,
        "relu": _relu,
        "relu_backward": _relu_backward,
        "axpby": _axpby,
        "sum_squares": _sum_squares,
    }.items()
}
