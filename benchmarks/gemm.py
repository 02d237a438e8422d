"""Matrix products of cinn beside numpy's in one process, one thread, interleaved medians of CPU time.

``python benchmarks/gemm.py [name ...] [--element bfloat] [--repeats 9] [--core 0]`` prints one JSON line a
product: GFLOP/s (GB/s read for thin ones), the ratio to numpy, and the share of this core's peak of fused
multiply-adds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

#: name: (m, n, k, layout of A and B: n row-major, t transposed)
PRODUCTS = {
    "square 512": (512, 512, 512, "nn"),
    "square 1024": (1024, 1024, 1024, "nn"),
    "square 2048": (2048, 2048, 2048, "nn"),
    "4096x4096x64": (4096, 4096, 64, "nn"),
    "gpt qkv": (2048, 1152, 384, "nn"),
    "gpt o": (2048, 384, 384, "nn"),
    "gpt f1": (2048, 1536, 384, "nn"),
    "gpt f2": (2048, 384, 1536, "nn"),
    "gpt head": (2048, 4096, 384, "nn"),
    "gpt qkv dx": (2048, 384, 1152, "nt"),
    "gpt f1 dx": (2048, 384, 1536, "nt"),
    "gpt f2 dx": (2048, 1536, 384, "nt"),
    "gpt head dx": (2048, 384, 4096, "nt"),
    "gpt qkv dw": (384, 1152, 2048, "tn"),
    "gpt f1 dw": (384, 1536, 2048, "tn"),
    "gpt f2 dw": (1536, 384, 2048, "tn"),
    "gpt head dw": (384, 4096, 2048, "tn"),
    "mlp hidden": (64, 256, 784, "nn"),
    "mlp hidden dw": (784, 256, 64, "tn"),
    "mlp logits": (64, 10, 256, "nn"),
    "thin 8": (8, 4096, 4096, "nn"),
    "thin 8 transposed": (8, 4096, 4096, "nt"),
    "thin 32": (32, 1024, 1024, "nn"),
    "vector-matrix": (1, 4096, 4096, "nn"),
    "matrix-vector": (4096, 1, 4096, "nn"),
}


def compiled(m: int, n: int, k: int, layout: str, element: str) -> Callable[[int, int], None]:
    """Our product as a callable of (address of three addresses, 0)."""
    from argosy_cinn.contraction import Contraction, Matrix, emit, grid, store_rows
    from argosy_cinn.printers.llvm import Function, Module
    from argosy_cinn.printers.types import PTR, Value
    from argosy_cinn.runtime import entry, load, parallel_for
    from argosy_cinn.target import Target

    def problem(b: Function, table: Value) -> Contraction:
        a, w, c = (b.load(PTR, b.at(table, i, PTR)) for i in range(3))
        left = Matrix(a, k, 1, element) if layout[0] == "n" else Matrix(a, 1, m, element)
        right = Matrix(w, n, 1, element) if layout[1] == "n" else Matrix(w, 1, k, element)
        return Contraction(m, n, k, left, right, store_rows(c, n))

    module = Module(Target.host())
    with module.function("product", [("ptr", "table"), ("i64", "chunk"), ("i64", "chunks")], export=False) as b:
        emit(b, problem(b, b.arguments[0]), *b.arguments[1:])
    with module.function("run", [("ptr", "addresses"), ("ptr", "dims")]) as b:
        parallel_for(b, "product", b.arguments[0], grid(b, problem(b, b.arguments[0])))
    return entry(load(module.text(), module.exports, module.target))


def peak_gflops() -> float:
    """Fused multiply-adds of this core at their best: independent chains in registers."""
    import ctypes

    import numpy as np

    from argosy_cinn.printers.llvm import Module
    from argosy_cinn.printers.types import vector
    from argosy_cinn.runtime import load
    from argosy_cinn.target import Target

    target = Target.host()
    lanes, chains, steps = target.lanes("float"), target.registers * 3 // 4, 1 << 18
    module = Module(target)
    with module.function("run", [("ptr", "out")]) as b:
        with b.loop(0, steps, 1, [b.zero(vector("float", lanes))] * chains) as loop:
            loop.next(*(b.fma(x, 0.999, 0.001) for x in loop.carry))
        for x in loop.results:
            b.store(x, b.arguments[0])
    library = load(module.text(), module.exports)
    run, out = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("run")), np.zeros(lanes, np.float32)
    best = min(clocked(lambda: run(out.ctypes.data), 1) for _ in range(20))
    return 2 * lanes * chains * steps / best


def clocked(run: Callable[[], Any], inner: int) -> float:
    """Nanoseconds of CPU time of one call."""
    start = time.thread_time_ns()
    for _ in range(inner):
        run()
    return (time.thread_time_ns() - start) / inner


def measure(name: str, element: str, repeats: int, peak: float) -> dict[str, Any]:
    """Both products on the same operands (numpy's always float32), in turn."""
    import numpy as np

    m, n, k, layout = PRODUCTS[name]
    rng = np.random.default_rng(0)
    a, w = (rng.standard_normal(s, dtype=np.float32) for s in ((m, k), (k, n)))
    a = np.asfortranarray(a) if layout[0] == "t" else a
    w = np.asfortranarray(w) if layout[1] == "t" else w
    ours, theirs = (np.zeros((m, n), np.float32) for _ in range(2))
    operands = [x.view(np.uint32) >> 16 for x in (a, w)] if element == "bfloat" else [a, w]
    operands = [x.astype(np.uint16) for x in operands] if element == "bfloat" else operands
    table = np.array([x.ctypes.data for x in (*operands, ours)], np.int64)
    call = compiled(m, n, k, layout, element)
    runs = [lambda: call(table.ctypes.data, 0), lambda: np.matmul(a, w, out=theirs)]
    inner = max(1, int(2e8 / (2 * m * n * k)))
    samples: list[list[float]] = [[], []]
    for _ in range(repeats + 1):
        for run, sample in zip(runs, samples, strict=True):
            sample.append(clocked(run, inner))
    error = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    cinn, numpy = (statistics.median(s[1:]) for s in samples)
    result = {"product": name, "shape": [m, n, k], "layout": layout, "element": element, "relative_error": error}
    result |= {"gflops": round(2 * m * n * k / cinn, 1), "numpy_gflops": round(2 * m * n * k / numpy, 1)}
    result |= {"ratio": round(numpy / cinn, 2), "share_of_peak": round(2 * m * n * k / cinn / peak, 2)}
    if min(m, n) <= 8:
        read = max(m, n) * k * operands[0].itemsize
        result |= {"read_gb_per_s": round(read / cinn, 1)}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(PRODUCTS))
    parser.add_argument("--element", choices=("float", "bfloat"), default="float")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--core", type=int, default=0)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {options.core})
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARGOSY_NUM_THREADS"):
        os.environ[name] = "1"
    peak = peak_gflops()
    print(json.dumps({"peak_gflops": round(peak, 1)}))
    for name in options.names or PRODUCTS:
        print(json.dumps(measure(name, options.element, options.repeats, peak)), flush=True)


if __name__ == "__main__":
    main()
