"""Steps of an exported Llama through its incremental program: width 2048, 16 heads that share 8 of keys and values,
SwiGLU of 5632, 32,000 words; 16 layers are 0.89 billion weights with the table of words, of which a step reads a row.

    python benchmarks/decode.py --threads 1                               # the whole table
    python benchmarks/decode.py --layers 2 --cases int8 --rows 1 8 --cached 128
    python benchmarks/decode.py --model moe --cases bfloat16              # 8 experts of 1408, two for each token
    python benchmarks/decode.py --model mla --cases bfloat16              # 512 + 64 cached numbers a token and layer
    python benchmarks/decode.py --record --torch ENV/bin/python --llama-cpp ENV/bin/python     # peers beside it
    python benchmarks/decode.py --rows together --cases bfloat16          # a prompt beside eight sequences, and apart

Cases: ``bfloat16``, ``int8`` (a scale for each output), ``int4`` (a scale for each 128 inputs), and these two with
inputs that are rounded to bytes, a step for each row: ``w8a8``, ``w4a8``. A step decodes a token of each of ``rows``
sequences after ``cached`` others; ``prefill`` in place of rows is a prompt of 128, ``together`` one that is computed in
one step with a token of each of eight sequences: ``apart_ms`` is what the prompt and a step of eight take one after the
other, ``ratio`` the time of the one step by that. Beside each measurement memory is read by sums over half a gigabyte,
in all about as much as the step reads, lest the best reading be of a shorter moment, on the same cores in the same
process, in turns: ``share`` is the time that reading the step's weights and caches takes at the best bandwidth seen in
these turns, over the best time of a step (that of a machine that others share differs by half within minutes, of which
the rows say theirs); ``multiplied_ms``: what its products take at the rate, in registers, of the ``instructions`` that
products of the case are made of here (multiply-adds of ``floats``, of ``pairs`` of bfloat16, of ``digits``, two bytes
to a number, of ``words`` of 16 bits, or of ``bytes``), which is measured in the same process: their least time. The
clock is CPU time where other processes took more than 3% of one core. Peers run in interpreters of their own, after
ours: torch in eager bfloat16, llama.cpp with f16, q8_0 and q4_0; their shares are of the median of the bandwidths that
we saw. One JSON line for each row of the table, and one with the goals that were missed; ``--record`` keeps them in
results/decode[-MODEL]-THREADS.json. Goals: shares of 0.92 (bfloat16), 0.85 (bytes) and 0.70 (four bits) for one row;
8 rows 5 times the tokens of one; a prompt at 0.60 of the rate of our own products in bfloat16 (``rate``), and beside
sequences no more than apart.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from gemm import byte_chains, chains_rate, integer_chains, vector_chains
from side_by_side import commit, machine

WIDTH, HEADS, SHARED, SIZE, HIDDEN, WORDS, BLOCK = 2048, 16, 8, 128, 5632, 32000, 16
SHAPES = {
    "q": (WIDTH, WIDTH), "k": (SHARED * SIZE, WIDTH), "v": (SHARED * SIZE, WIDTH), "o": (WIDTH, WIDTH),
    "gate": (HIDDEN, WIDTH), "up": (HIDDEN, WIDTH), "down": (WIDTH, HIDDEN),
}  # fmt: skip
CASES, PROMPT, BESIDE = ("bfloat16", "int8", "int4", "w8a8", "w4a8"), 128, 8
GOALS = {"bfloat16": 0.92, "int8": 0.85, "int4": 0.70, "w8a8": 0.85, "w4a8": 0.70}
COMMON = {
    "vocab_size": WORDS, "hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_attention_heads": HEADS,
    "num_key_value_heads": SHARED, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama"},
    "moe": {"model_type": "mixtral", "intermediate_size": 1408, "num_local_experts": 8, "num_experts_per_tok": 2},
    "mla": {
        "model_type": "deepseek_v2", "num_key_value_heads": HEADS, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128, "v_head_dim": 128, "first_k_dense_replace": 1 << 10, "n_routed_experts": 8,
        "num_experts_per_tok": 2, "moe_intermediate_size": 1408,
    },
}  # fmt: skip
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARGOSY_NUM_THREADS")
Step = Callable[[], Any]


def weight(out: int, size: int) -> Any:
    """Random numbers [out, in]; large ones repeat a block, which no kernel can know."""
    block = np.random.default_rng(out + size).uniform(-0.03, 0.03, (256, size)).astype(np.float32)
    return np.tile(block, (out // 256 + 1, 1))[:out]


def exported(name: str, layers: int) -> Any:
    """The program of a model in bfloat16, with its weights."""
    import ml_dtypes

    from argosy.jit.export import export_program
    from argosy.models.configuration import ConfigFile
    from argosy.models.loading import build
    from argosy.nn.lazy import LazyGuard
    from argosy.static import InputSpec
    from argosy_tensorcore.storage import StridedArray

    with LazyGuard():
        model = build(ConfigFile(COMMON | MODELS[name] | {"num_hidden_layers": layers}))
    for parameter in model.parameters():
        *outer, last = parameter.shape
        made = weight(last, outer[-1]).T if outer else np.ones(last, np.float32)
        if len(outer) == 2:  # experts
            made = np.broadcast_to(made, tuple(parameter.shape))
        parameter.payload = StridedArray.from_array(made.astype(ml_dtypes.bfloat16))
        parameter.__dict__.pop("_init_func", None)
    model.eval()
    return export_program(model, [InputSpec([None, None], "int64", "ids")])


def filled(cache: Any) -> Any:
    """A cache with numbers in all of its memory: what was never written is one page of zeros, read from a cache."""
    part = np.random.default_rng(0).standard_normal(1 << 18).astype(cache.dtype)
    cache[...] = np.resize(part, cache.shape)
    return cache


def _terms(state: tuple[str, Any], layers: int) -> int:
    """Products that a weight takes part in for each token of a prompt: two of eight experts, nothing of the table of
    words, and behind the last attention nothing, for one token alone is wanted."""
    name, array = state
    behind = f".layers.{layers - 1}." in name and (".mlp." in name or "o_proj" in name)
    if behind or "embed_tokens" in name or "lm_head" in name:
        return 0
    return int(array.size) // 4 if ".experts." in name else int(array.size)


def compiled(loaded: Any, case: str, most: int, layers: int) -> tuple[Any, dict[str, int], float]:
    """The incremental program with caches for ``most`` tokens, bytes that a step reads (weights; caches by token), and
    the seconds that compilation took."""
    from argosy_infer import LoadedProgram, Predictor, make_incremental
    from argosy_infer.caches import caches_of
    from argosy_infer.compress import round_to_nearest
    from argosy_infer.weights import lay_out_weights

    terms = sum(map(_terms, loaded.states.items(), repeat(layers)))
    token_terms = sum(
        array.size // (4 if ".experts." in n else 1) for n, array in loaded.states.items() if "embed" not in n
    )
    if case != "bfloat16":
        bits, in_bytes = 4 if "4" in case else 8, case.endswith("a8")
        loaded, _ = round_to_nearest(loaded, bits, 128 if bits == 4 else -1, input_bits=8 if in_bytes else None)
    loaded = lay_out_weights(loaded)  # those that stay floats
    program = make_incremental(loaded.program, BLOCK)
    found = caches_of(program)
    caches = {cache.name: filled(cache.allocate(most // BLOCK)) for cache in found}
    read = {name: array.nbytes for name, array in loaded.states.items() if "embed_tokens" not in name}
    experts = sum(size for name, size in read.items() if ".experts." in name)
    begin = time.perf_counter()
    predictor = Predictor(LoadedProgram(program, {**loaded.states, **caches}), batch_invariant=True)
    sizes = {
        "weights": sum(read.values()) - experts,
        "experts": experts,
        "terms": terms,
        "token_terms": token_terms,
        "token": sum(cache.block_bytes for cache in found) // BLOCK,
    }
    return predictor, sizes, time.perf_counter() - begin


def argosy_step(predictor: Any, rows: int, cached: int, prompt: bool = False) -> Step:
    """A step of so many rows, behind a ``prompt`` or not."""
    from argosy_tensorcore.storage import StridedArray

    first = PROMPT if prompt else 0  # tokens of the row before the others
    count, blocks = rows + prompt, -(-max(first, cached + 1 if rows else 0) // BLOCK)
    ends = np.arange(rows + 1) + first  # of the rows behind the prompt
    inputs = (
        np.arange(first + rows) % WORDS,
        np.concatenate([np.arange(first), np.full(rows, cached)]),
        np.concatenate([[0], ends]) if prompt else ends,
        np.arange(count * blocks).reshape(count, blocks),
        np.concatenate([[first - 1], ends[:-1]]) if prompt else ends[:-1],
    )
    given = [StridedArray.from_array(np.ascontiguousarray(x, np.int64)) for x in inputs]
    return lambda: predictor.call(given)


def measure_together(predictor: Any, cached: int, options: argparse.Namespace) -> dict[str, Any]:
    """A prompt beside sequences in one step, and apart, in turns."""
    works = [argosy_step(predictor, *case) for case in ((BESIDE, cached, True), (0, cached, True), (BESIDE, cached))]
    times: list[list[float]] = [[] for _ in works]
    begin = time.perf_counter()
    while len(times[0]) < 5 or time.perf_counter() - begin < 3 * options.seconds:
        for found, work in zip(times, works, strict=True):
            found.append(_timed(work)[0])
    together, prompt, rows = (min(found[1:]) for found in times)
    return {"ms": round(together * 1e3, 3), "apart_ms": round((prompt + rows) * 1e3, 3),
            "ratio": round(together / (prompt + rows), 3)}  # fmt: skip


def product_rate() -> float:
    """Operations a second of our own product of a prompt with a matrix of the model, in bfloat16."""
    import argosy as paddle

    x, w = (paddle.rand(shape).astype("bfloat16") for shape in ([PROMPT, WIDTH], [HIDDEN, WIDTH]))
    step = paddle.jit.to_static(lambda x, w: paddle.matmul(x, w, transpose_y=True), full_graph=True)
    step(x, w)
    return 2 * PROMPT * WIDTH * HIDDEN / min(_timed(lambda: step(x, w))[0] for _ in range(20))


def missed_goals(table: list[dict[str, Any]]) -> list[str]:
    """What the rows do not reach, each with its figure."""
    missed = []
    for row in table:
        name = f"{row['case']} {row['rows']} x {row['cached']}"
        if row["rows"] == "together":
            missed += [f"{name}: {row['ratio']} of the time of both apart"] * (row["ratio"] > 1)
            continue
        if row["rows"] == 1 and row["share"] < GOALS[row["case"]]:
            missed.append(f"{name}: share {row['share']} of {GOALS[row['case']]}")
        if row["rows"] == "prefill" and row["rate"] < 0.6:
            missed.append(f"{name}: rate {row['rate']} of 0.6")
        one = [x for x in table if x["rows"] == 1 and (x["case"], x["cached"]) == (row["case"], row["cached"])]
        if row["rows"] == 8 and one and (times := row["tokens_per_s"] / one[0]["tokens_per_s"]) < 5:
            most = 8 * one[0]["ms"] / row["multiplied_ms"]
            allowed = f"{row['instructions']} allow {most:.2f}"
            missed.append(f"{name}: {times:.2f} of 5 times the tokens of one row ({allowed})")
    return missed


def instructions(case: str) -> str:
    """What products of a case are made of on this machine, whatever the number of rows: no bit depends on that."""
    from argosy_cinn.contraction import Contraction, Matrix, store_rows
    from argosy_cinn.contraction.skinny_blocking import plan_skinny
    from argosy_cinn.printers.types import PTR, Value
    from argosy_cinn.target import Target

    null, four, in_bytes = Value(PTR, "null"), "4" in case, case.endswith("a8")
    weight = Matrix(null, 1, WIDTH, "bfloat" if case == "bfloat16" else "i8")
    if four:
        weight.numbers = tuple(float((byte & 15 ^ 8) - 8) for byte in range(256))
        weight.prologue = lambda b, cells: cells.values[0]
    compute = "i32" if case == "w8a8" else "float"
    problem = Contraction(
        1, HIDDEN, WIDTH, Matrix(null, WIDTH, 1, "i8" if in_bytes else "bfloat"), weight, store_rows(null, HIDDEN),
        (), compute, narrow=not in_bytes, scales=Matrix(null, HIDDEN, 1) if four else None, group=128 if four else 0,
    )  # fmt: skip
    plan = plan_skinny(problem, Target.host())
    kinds = {"block_floats": "digits", "pairs": "pairs", "words": "words", "bytes": "bytes"}
    return next((name for kind, name in kinds.items() if plan and getattr(plan, kind)), "floats")


def rates(options: argparse.Namespace) -> dict[str, float]:
    """Operations a second of the instructions that products of the cases are made of: of one core in its CPU time,
    which others take nothing of, times the threads."""
    emitters = {"floats": partial(vector_chains, compute="float", terms=1),
                "pairs": partial(vector_chains, compute="float", terms=2),
                "digits": byte_chains, "words": partial(integer_chains, terms=2),
                "bytes": partial(integer_chains, terms=4)}  # fmt: skip
    runs = {kind: chains_rate(emitters[kind]) for kind in map(instructions, options.cases)}
    return {kind: max(run() for _ in range(9)) * 1e9 * options.threads for kind, run in runs.items()}


def read_probe() -> Step:
    """A sum over half a gigabyte, by our own code."""
    import argosy as paddle

    memory = paddle.ones([1 << 27], "float32")
    total = paddle.jit.to_static(lambda x: x.reshape([1024, -1]).sum(-1), full_graph=True)
    return lambda: total(memory)


def repeated(probe: Step, nbytes: float) -> tuple[Step, int]:
    """A probe that reads about so many bytes, and how many."""
    times = max(round(nbytes / (1 << 29)), 1)

    def run() -> None:
        for _ in range(times):
            probe()

    return run, times << 29


def best_times(step: Step, probe: Step, options: argparse.Namespace) -> tuple[float, float, str]:
    """The least seconds of both, which run in turns, and the clock."""
    step(), probe()
    walls: list[tuple[float, float]] = []
    cpus: list[tuple[float, float]] = []
    begin = time.perf_counter()
    while len(walls) < 5 or (time.perf_counter() - begin < options.seconds and len(walls) < 200):
        pair = [_timed(work) for work in (step, probe)]
        walls.append((pair[0][0], pair[1][0]))
        cpus.append((pair[0][1], pair[1][1]))
    shared = options.threads == 1 and sum(map(sum, walls)) > sum(map(sum, cpus)) * 1.03
    times = cpus if shared else walls
    return min(t for t, _ in times), min(t for _, t in times), "cpu" if shared else "wall"


def _timed(work: Step) -> tuple[float, float]:
    begin = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begin[0], time.process_time() - begin[1]


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The rows of the table."""
    probe, loaded = read_probe(), exported(options.model, options.layers)
    limits = rates(options)
    rows = [0 if each == "prefill" else int(each) for each in options.rows if each != "together"]
    held = max([*rows, 1, (BESIDE + 1) * ("together" in options.rows)])  # rows with caches
    most = held * (-(-(max(options.cached) + 1) // BLOCK) * BLOCK) + PROMPT
    for case in options.cases:
        kind = instructions(case)
        predictor, sizes, seconds = compiled(loaded, case, most, options.layers)
        for cached in options.cached:
            if "together" in options.rows:
                yield {
                    "workload": "decode", "model": options.model, "framework": "argosy", "case": case,
                    "threads": options.threads, "layers": options.layers, "rows": "together", "cached": cached,
                    **measure_together(predictor, cached, options),
                }  # fmt: skip
            for count in rows:
                if count == 0 and cached != options.cached[0]:
                    continue
                chosen = min(1.0, 2 * (count or PROMPT) / 8)  # of the experts, at most
                weights = sizes["weights"] + sizes["experts"] * chosen
                moved = weights + sizes["token"] * cached * count
                reads, probed = repeated(probe, moved)
                took, read, clock = best_times(argosy_step(predictor, count, cached, count == 0), reads, options)
                bandwidth = probed / read
                multiplied = 2 * (sizes["token_terms"] * count or sizes["terms"] * PROMPT) / limits[kind]
                yield {
                    "workload": "decode", "model": options.model, "framework": "argosy", "case": case,
                    "threads": options.threads, "layers": options.layers, "rows": count or "prefill",
                    "cached": cached if count else 0, "ms": round(took * 1e3, 3),
                    "tokens_per_s": round((count or PROMPT) / took, 2), "read_gb": round(moved / 1e9, 4),
                    "bandwidth_gb_per_s": round(bandwidth / 1e9, 2), "share": round(moved / bandwidth / took, 3),
                    "instructions": kind, "multiplied_ms": round(multiplied * 1e3, 3),
                    "rate": None if count else round(2 * sizes["terms"] * PROMPT / took / product_rate(), 3),
                    "clock": clock, "compile_s": round(seconds, 2),
                }  # fmt: skip


def peers(options: argparse.Namespace, bandwidth: float) -> Iterator[dict[str, Any]]:
    """The rows of the peers whose interpreters are named: one row, eight, and the prompt."""
    for framework, python in (("torch", options.torch), ("llama.cpp", options.llama_cpp)):
        if python is None:
            continue
        rows = [each for each in options.rows if each in ("1", "8", "prefill")]
        command = [python, str(Path(__file__).with_name("decode_peers.py")), framework, "--rows", *rows, "--cached"]
        command += [*map(str, options.cached), "--threads", str(options.threads), "--layers", str(options.layers)]
        command += ["--seconds", str(options.seconds), "--bandwidth", str(bandwidth)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                if line.startswith("{"):
                    yield json.loads(line)
        if process.returncode:
            raise SystemExit(f"{framework} ended with {process.returncode}")


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=tuple(MODELS), default="llama", help="peers have llama alone")
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter with torch, to run it beside")
    parser.add_argument("--llama-cpp", metavar="PYTHON", help="one with llama-cpp-python, gguf and numpy")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--cached", nargs="+", type=int, default=[128, 4096])
    parser.add_argument("--rows", nargs="+", default=["1", "2", "4", "8", "16", "prefill"])
    parser.add_argument(
        "--record", action="store_true", help="write results/decode-THREADS.json, which has the commit and the machine"
    )
    return pinned(parser)


def pinned(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options; pins the process to its cores before any framework is imported."""
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", type=int, default=0, help="first core to pin to")
    parser.add_argument("--seconds", type=float, default=4.0, help="time spent on each row of the table")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(range(options.core, options.core + options.threads)))
    wanted = dict.fromkeys(_THREADS, str(options.threads))
    if any(os.environ.get(name) != count for name, count in wanted.items()):
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **wanted})
    return options


def main() -> None:
    """Measure, print and keep the table."""
    options, table = parsed(), []
    if options.model != "llama" and (options.torch or options.llama_cpp):
        raise SystemExit(f"peers have no {options.model}")
    for line in measure(options):
        print(json.dumps(line), flush=True)
        table.append(line)
    missed = missed_goals(table)
    bandwidths = [row["bandwidth_gb_per_s"] for row in table if "bandwidth_gb_per_s" in row]
    for line in peers(options, statistics.median(bandwidths) * 1e9) if bandwidths else ():
        print(json.dumps(line), flush=True)
        table.append(line)
    print(json.dumps({"missed": missed}), flush=True)
    if options.record:
        mark = "" if options.model == "llama" else f"-{options.model}"
        mark += "-together" if options.rows == ["together"] else ""
        path = Path(__file__).parent / "results" / f"decode{mark}-{options.threads}.json"
        command = f"python benchmarks/decode.py {' '.join(sys.argv[1:])}"
        record = {"workload": "decode", "command": command, "commit": commit(), "machine": machine(), "missed": missed}
        record["rows"] = table
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
