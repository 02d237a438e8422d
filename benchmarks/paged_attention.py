"""Attention of one token of each row over a paged cache, whose 8 heads serve ``shared`` each of the query: 16 layers'
worth of caches in one call, so that they are read from memory.

    python benchmarks/paged_attention.py                              # float32, bfloat16, and int8 with scales
    python benchmarks/paged_attention.py --cases int8 --cached 512 4096 --rows 1 8 --shared 2 4 --threads 2

``share`` is the time that reading keys, values and scales takes at the best bandwidth seen, over the best time.
"""

from __future__ import annotations

import argparse
import itertools
import json
from typing import Any

import decode
import numpy as np

CASES, LAYERS = ("float32", "bfloat16", "int8"), 16


def on_lines(array: Any) -> Any:
    """The same numbers from the beginning of a cache line on, as `argosy_infer.caches` allocates them."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    made = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def arrays(case: str, rows: int, cached: int, shared: int) -> tuple[list[Any], Any]:
    """The operands of the primitive, and the table of each layer."""
    import ml_dtypes

    blocks = -(-cached // decode.BLOCK) * rows
    rng = np.random.default_rng(0)
    real = np.float32 if case == "float32" else ml_dtypes.bfloat16
    shape = (LAYERS * blocks, decode.BLOCK, decode.SHARED, decode.SIZE)
    part = rng.standard_normal(1 << 20).clip(-4, 4)
    part = (part * 30).astype(np.int8) if case == "int8" else part.astype(real)
    caches = [on_lines(np.resize(part, shape)) for _ in range(2)]
    scales = [np.full(shape[:3], 1 / 30, np.float32) for _ in range(2)] if case == "int8" else []
    query = rng.standard_normal((rows, decode.SHARED, shared, decode.SIZE)).astype(real)
    tables = rng.permutation(LAYERS * blocks).reshape(LAYERS, rows, -1)
    return [query, *caches, np.full(rows, cached - 1), np.arange(rows), tables[0], *scales], tables


def layers_step(case: str, rows: int, cached: int, shared: int) -> tuple[decode.Step, int]:
    """Attention of every layer, and the bytes of their caches."""
    from argosy_cinn import CinnCompiler
    from argosy_hwadapt import device
    from argosy_phi_ops import prim
    from argosy_phi_ops.context import emit_at
    from argosy_pir import Builder, Program, TensorType
    from argosy_tensorcore.storage import StridedArray

    made, tables = arrays(case, rows, cached, shared)
    given = [*made[:5], *tables, *made[6:]]
    program = Program("attention")
    inputs = [program.add_input(TensorType(x.shape, str(x.dtype))) for x in given]
    own, others = inputs[:5], inputs[5 + LAYERS :]
    with emit_at(Builder.at_end(program.block)):
        layers = [
            prim.paged_attention(*own, table, *others, scale=decode.SIZE**-0.5) for table in inputs[5 : 5 + LAYERS]
        ]
        program.set_outputs(layers)
    call = CinnCompiler().compile(program, device("cpu"))
    arguments = [StridedArray.from_array(np.ascontiguousarray(x)) for x in given]
    return lambda: call.run(arguments, []), sum(x.nbytes for x in (*made[1:3], *made[6:]))


def main() -> None:
    """Measure and print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--rows", nargs="+", type=int, default=[1])
    parser.add_argument("--cached", nargs="+", type=int, default=[4096])
    parser.add_argument("--shared", nargs="+", type=int, default=[2])
    options = decode.pinned(parser)
    probe = decode.read_probe()
    for case, rows, cached, shared in itertools.product(options.cases, options.rows, options.cached, options.shared):
        step, moved = layers_step(case, rows, cached, shared)
        took, read, clock = decode.best_times(step, probe, options)
        line = {
            "workload": "paged attention", "case": case, "threads": options.threads, "rows": rows, "cached": cached,
            "shared": shared, "ms": round(took * 1e3, 3), "gb_per_s": round(moved / took / 1e9, 2),
            "share": round(moved / (1 << 29) * read / took, 3), "clock": clock,
        }  # fmt: skip
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
