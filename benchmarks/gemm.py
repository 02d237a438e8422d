"""Matrix products of cinn beside numpy's (and torch's) and the processor's own peak, one thread, in turn.

``python benchmarks/gemm.py [name ...] [--element bfloat] [--repeats 9] [--core 0] [--peer-python PATH]`` prints a line
of JSON for each product: GFLOP/s (GB/s read for thin ones), the ratio to each peer, and the share of this core's peak.
The peak is that of the instruction which such products are made of (fused multiply-adds, pairs of bfloat16, bytes; in
tile registers where there are), from registers alone, and is measured around each run: a share is the median over the
rounds of what a run reached beside the peak of that moment. numpy multiplies float32 whatever the element is; PATH is
an interpreter that has torch, which multiplies the element itself.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
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
    "llama up": (512, 5632, 2048, "nn"),
    "llama down": (512, 2048, 5632, "nn"),
    "llama up dx": (512, 2048, 5632, "nt"),
    "llama up dw": (2048, 5632, 512, "tn"),
    "prefill q": (128, 2048, 2048, "nt"),
    "prefill up": (128, 5632, 2048, "nt"),
    "prefill down": (128, 2048, 5632, "nt"),
    "mlp hidden": (64, 256, 784, "nn"),
    "mlp hidden dw": (784, 256, 64, "tn"),
    "mlp logits": (64, 10, 256, "nn"),
    "thin 8": (8, 4096, 4096, "nn"),
    "thin 8 transposed": (8, 4096, 4096, "nt"),
    "thin 32": (32, 1024, 1024, "nn"),
    "vector-matrix": (1, 4096, 4096, "nn"),
    "matrix-vector": (4096, 1, 4096, "nn"),
}
#: Of an element type: that of the sums.
SUMS = {"float": "float", "bfloat": "float", "i8": "i32"}
RESULTS = {"float": "float", "bfloat": "bfloat", "i8": "i32"}
#: Turns of the loop that the peak is measured by.
PEAK_STEPS = 1 << 15


def compiled(m: int, n: int, k: int, layout: str, element: str) -> Callable[[int, int], None]:
    """Our product as a callable of (address of three addresses, 0); of bfloat16, rounded to that."""
    from argosy_cinn.contraction import Cells, Contraction, Matrix, emit, grid, store_rows
    from argosy_cinn.printers.llvm import Function, Module
    from argosy_cinn.printers.types import PTR, Value
    from argosy_cinn.runtime import entry, load, parallel_for
    from argosy_cinn.target import Target

    def problem(b: Function, table: Value) -> Contraction:
        a, w, c = (b.load(PTR, b.gep(table, i, PTR)) for i in range(3))
        left = Matrix(a, k, 1, element) if layout[0] == "n" else Matrix(a, 1, m, element)
        right = Matrix(w, n, 1, element) if layout[1] == "n" else Matrix(w, 1, k, element)
        store = store_rows(c, n, (), RESULTS[element])

        def narrowed(b: Function, cells: Cells) -> None:
            narrow = (lambda value, to: b.convert("fptrunc", value, to)) if cells.flushed else b.narrow_float
            cells.values = [narrow(value, element) for value in cells.values]
            store(b, cells)

        return Contraction(m, n, k, left, right, narrowed if element == "bfloat" else store, (), SUMS[element])

    module = Module(Target.host())
    with module.function("product", [("ptr", "table"), ("i64", "chunk"), ("i64", "chunks")], export=False) as b:
        emit(b, problem(b, b.arguments[0]), *b.arguments[1:])
    with module.function("run", [("ptr", "addresses"), ("ptr", "dims")]) as b:
        parallel_for(b, "product", b.arguments[0], grid(b, problem(b, b.arguments[0])))
    return entry(load(module.text(), module.exports, module.target))


def peak(element: str) -> Callable[[], float]:
    """What measures this core's operations a nanosecond at their best: independent chains of the instruction that
    products of an element type are made of, in registers."""
    from argosy_cinn.contraction import Contraction, Matrix, choose, store_rows
    from argosy_cinn.printers.types import PTR, Value
    from argosy_cinn.target import Target

    compute, operand = SUMS[element], Matrix(Value(PTR, "null"), 1024, 1, element)
    store = store_rows(operand.pointer, 1024, (), compute)
    format = choose(Contraction(1024, 1024, 1024, operand, operand, store, (), compute), Target.host()).format
    return chains_rate(lambda b: (tile_chains if format.tiled else vector_chains)(b, compute, format.terms))


def chains_rate(emit: Callable[[Any], int]) -> Callable[[], float]:
    """What measures the operations a nanosecond of what ``emit`` emits, which returns how many they are."""
    import ctypes

    import numpy as np

    from argosy_cinn.printers.llvm import Module
    from argosy_cinn.runtime import load
    from argosy_cinn.target import Target

    module = Module(Target.host())
    with module.function("run", [("ptr", "out")]) as b:
        work = emit(b)
    library = load(module.text(), module.exports)
    run, out = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("run")), np.zeros(64, np.float32)

    def measured(kept: Any = library) -> float:
        return work / clocked(lambda: run(out.ctypes.data), 1)

    return measured


def vector_chains(b: Any, compute: str, terms: int) -> int:
    """Emit multiply-adds of vector registers; returns how many operations they are."""
    from argosy_cinn.contraction.tile import multiply_add
    from argosy_cinn.printers.types import vector

    lanes, out = b.module.target.lanes(compute), b.arguments[0]
    chains = b.module.target.registers * 3 // 4
    x = b.load(vector(compute, lanes), out)
    with b.loop(0, PEAK_STEPS, 1, [x] * chains) as loop:
        loop.yield_values(*(multiply_add(b, terms, x, x, total) for total in loop.carry))
    for total in loop.results:
        b.store(total, out)
    return int(2 * lanes * terms * chains * PEAK_STEPS)


def integer_chains(b: Any, terms: int) -> int:
    """Emit products of bytes in fours (``terms`` is 4) or of words in pairs (2), which are added to a sum in 32 bits
    (VNNI); returns how many operations."""
    from argosy_cinn.contraction.packing import byte_products, word_products
    from argosy_cinn.printers.types import vector

    chains, out = b.module.target.registers * 3 // 4, b.arguments[0]
    x = b.load(vector("i32", 16), out)
    with b.loop(0, PEAK_STEPS, 1, [x] * chains) as loop:
        sums = [byte_products(b, s, x, x) if terms == 4 else word_products(b, x, x, s) for s in loop.carry]
        loop.yield_values(*sums)
    for total in loop.results:
        b.store(total, out)
    return int(2 * 16 * terms * chains * PEAK_STEPS)


def byte_chains(b: Any) -> int:
    """Emit products of bytes, neighbours of which are added in 16 bits, as numbers of two digits take two of; returns
    how many operations on such numbers they are."""
    from argosy_cinn.printers.types import vector

    lanes, out = b.module.target.vector_bits // 16, b.arguments[0]
    chains = b.module.target.registers * 3 // 4
    name = "llvm.x86.avx512.pmaddubs.w.512" if lanes == 32 else "llvm.x86.avx2.pmadd.ub.sw"
    words, line = vector("i16", lanes), vector("i8", 2 * lanes)
    x = b.load(line, out)
    with b.loop(0, PEAK_STEPS, 1, [b.bitcast(x, words)] * chains) as loop:
        loop.yield_values(*(b.call(name, words, b.bitcast(total, line), x) for total in loop.carry))
    for total in loop.results:
        b.store(total, out)
    return int(2 * lanes * chains * PEAK_STEPS)


def tile_chains(b: Any, compute: str, terms: int) -> int:
    """Emit products of tile registers, four of them sums; returns how many operations they are."""
    from argosy_cinn.contraction.amx import configure_tiles
    from argosy_cinn.contraction.problem import TILE
    from argosy_cinn.printers.types import constant

    numbers = [constant("i8", i) for i in range(8)]
    product = "llvm.x86.tdpbf16ps" if compute == "float" else "llvm.x86.tdpbssd"
    with configure_tiles(b):
        for number in numbers:
            b.call("llvm.x86.tilezero", "void", number)
        with b.loop(0, PEAK_STEPS):
            for i in range(4):
                b.call(product, "void", numbers[i], numbers[4 + i // 2], numbers[6 + i % 2])
    return 2 * TILE**3 * terms * 4 * PEAK_STEPS


def clocked(run: Callable[[], Any], inner: int) -> float:
    """Nanoseconds of CPU time of one call."""
    start = time.thread_time_ns()
    for _ in range(inner):
        run()
    return (time.thread_time_ns() - start) / inner


class Torch:
    """torch in a process of its own on the same core, which runs a product when it is told to."""

    def __init__(self, python: str, core: int) -> None:
        command = [python, os.path.abspath(__file__), "--serve", "--core", str(core)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def _answer(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def prepare(self, name: str, element: str) -> None:
        """Make the operands of a product."""
        self._answer(f"{name}|{element}")

    def clocked(self, inner: int) -> float:
        """Nanoseconds of CPU time of one call."""
        return float(self._answer(str(inner)))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve() -> None:
    """Run torch's products for the process at the other end of our streams."""
    import torch

    torch.set_num_threads(1)
    run: Callable[[], Any] = bool
    with torch.inference_mode():
        for line in sys.stdin:
            name, _, element = line.strip().partition("|")
            if element:
                run = torch_product(torch, name, element)
                run()
            print(0 if element else clocked(run, int(name)), flush=True)


def torch_product(torch: Any, name: str, element: str) -> Callable[[], Any]:
    """A product of torch's."""
    m, n, k, layout = PRODUCTS[name]
    dtype = {"float": torch.float32, "bfloat": torch.bfloat16, "i8": torch.int8}[element]

    def matrix(rows: int, columns: int, order: str) -> Any:
        shape = (rows, columns) if order == "n" else (columns, rows)
        made = torch.randint(-100, 100, shape, dtype=dtype) if element == "i8" else torch.randn(shape).to(dtype)
        return made if order == "n" else made.T

    a, w = matrix(m, k, layout[0]), matrix(k, n, layout[1])
    if element == "i8":
        return lambda: torch._int_mm(a, w)
    out = torch.empty(m, n, dtype=dtype)
    return lambda: torch.mm(a, w, out=out)


def operands(m: int, n: int, k: int, layout: str, element: str) -> tuple[list[Any], list[Any]]:
    """Random A and B as float32, and what our product takes, in their layouts."""
    import numpy as np

    rng = np.random.default_rng(0)
    if element == "i8":
        plain = [rng.integers(-100, 100, s).astype(np.float32) for s in ((m, k), (k, n))]
    else:
        plain = [rng.standard_normal(s, dtype=np.float32) for s in ((m, k), (k, n))]
    plain = [x if order == "n" else np.asfortranarray(x) for x, order in zip(plain, layout, strict=True)]
    plain = [aligned(x) for x in plain]
    if element == "i8":
        return plain, [aligned(x.astype(np.int8, order="K")) for x in plain]
    if element == "bfloat":
        return plain, [aligned((x.view(np.uint32) >> 16).astype(np.uint16, order="K")) for x in plain]
    return plain, plain


def aligned(x: Any) -> Any:
    """A copy at the beginning of a cache line, as memory of a framework is."""
    import numpy as np

    raw = np.empty(x.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    flat = raw[start : start + x.nbytes].view(x.dtype)
    made = flat.reshape(x.shape[::-1]).T if x.flags.f_contiguous and x.ndim > 1 else flat.reshape(x.shape)
    made[...] = x
    return made


def measure(name: str, element: str, repeats: int, peak_of: Callable[[], float], torch: Torch | None) -> dict[str, Any]:
    """All products in turn, each after the peak."""
    import numpy as np

    m, n, k, layout = PRODUCTS[name]
    (a, w), taken = operands(m, n, k, layout, element)
    dtype = {"float": np.float32, "bfloat": np.uint16, "i8": np.int32}[element]
    ours, theirs = aligned(np.zeros((m, n), dtype)), aligned(np.zeros((m, n), np.float32))
    table = np.array([x.ctypes.data for x in (*taken, ours)], np.int64)
    call = compiled(m, n, k, layout, element)
    work = 2 * m * n * k
    inner = max(1, int(2e8 / work))
    runs: dict[str, Callable[[], float]] = {
        "cinn": lambda: clocked(lambda: call(table.ctypes.data, 0), inner),
        "numpy": lambda: clocked(lambda: np.matmul(a, w, out=theirs), inner),
    }
    if torch is not None:
        torch.prepare(name, element)
        runs["torch"] = lambda: torch.clocked(inner)
    rates: dict[str, list[float]] = {peer: [] for peer in runs}
    shares: list[float] = []
    for _ in range(repeats + 1):
        for peer, run in runs.items():
            before = [peak_of() for _ in range(3)]  # the first one warms up
            rates[peer].append(work / run())
            if peer == "cinn":
                shares.append(rates[peer][-1] / max(*before, peak_of()))
    got = (ours.astype(np.uint32) << 16).view(np.float32) if element == "bfloat" else ours
    found = {peer: statistics.median(r[1:]) for peer, r in rates.items()}
    result = {"product": name, "shape": [m, n, k], "layout": layout, "element": element}
    result |= {"relative_error": float(np.abs(got - theirs).max() / np.abs(theirs).max())}
    result |= {f"{peer}_gflops": round(rate, 1) for peer, rate in found.items()}
    result |= {f"ratio_to_{peer}": round(found["cinn"] / rate, 2) for peer, rate in found.items() if peer != "cinn"}
    result |= {"share_of_peak": round(statistics.median(shares[1:]), 3)}
    if min(m, n) <= 8:
        result |= {"read_gb_per_s": round(max(m, n) * k * taken[0].itemsize * found["cinn"] / work, 1)}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(PRODUCTS))
    parser.add_argument("--element", choices=list(SUMS), default="float")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--peer-python", default="", help="an interpreter that has torch")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {options.core})
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARGOSY_NUM_THREADS"):
        os.environ[name] = "1"
    if options.serve:
        serve()
        return
    torch = Torch(options.peer_python, options.core) if options.peer_python else None
    peak_of = peak(options.element)
    print(json.dumps({"element": options.element, "peak_gflops": round(max(peak_of() for _ in range(9)), 1)}))
    for name in options.names or PRODUCTS:
        print(json.dumps(measure(name, options.element, options.repeats, peak_of, torch)), flush=True)
    if torch is not None:
        torch.close()


if __name__ == "__main__":
    main()
