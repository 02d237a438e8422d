"""Steps of ``decode.py`` by a peer, in the peer's own interpreter, with numpy (and gguf, for llama.cpp):

    PEER/bin/python benchmarks/decode_peers.py llama.cpp --bandwidth 16e9 --rows 1 8 --cached 128

``decode.py --torch ... --llama-cpp ...`` runs it after its own rows, with its options and the bandwidth that it saw.
The weights are the same numbers; each row of the table is a JSON line. Llama.cpp evaluates the tokens before a step
once, and its other rows are copies of that one's cache.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from decode import COMMON, HEADS, HIDDEN, PROMPT, SHAPES, SHARED, SIZE, WIDTH, WORDS, Step, best_times, weight

CASES = {"torch": ("bfloat16",), "llama.cpp": ("f16", "q8_0", "q4_0")}
Stepper = Callable[[int, int], Step]
"""Gives the step of so many rows after so many tokens; with 0 rows the prompt of one."""


def torch_steps(layers: int) -> tuple[Stepper, int]:
    """Steps of torch in eager bfloat16 (its products are oneDNN's), and the bytes of the weights that a step reads."""
    nbytes = 2 * (layers * sum(a * b for a, b in SHAPES.values()) + WORDS * WIDTH)
    return lambda rows, cached: torch_step(layers, rows, cached), nbytes


def torch_step(layers: int, rows: int, cached: int) -> Step:
    """A step of so many rows after so many tokens, or the prompt."""
    import torch

    F, half = torch.nn.functional, torch.bfloat16
    tokens, batch = (1, rows) if rows else (PROMPT, 1)
    start = cached if rows else 0
    blocks = [{n: torch.from_numpy(weight(*s)).to(half) for n, s in SHAPES.items()} for _ in range(layers)]
    caches = [[torch.ones(batch, SHARED, start + tokens, SIZE, dtype=half) for _ in "kv"] for _ in range(layers)]
    head = torch.from_numpy(weight(WORDS, WIDTH)).to(half)
    turns = np.outer(np.arange(start, start + tokens), 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE))
    both = np.concatenate([turns, turns], -1).astype(np.float32)
    cos, sin = torch.from_numpy(np.cos(both)).to(half), torch.from_numpy(np.sin(both)).to(half)
    x0 = torch.randn(batch, tokens, WIDTH, generator=torch.Generator().manual_seed(0)).to(half)

    def turned(x: Any) -> Any:
        low, high = x.chunk(2, -1)
        return x * cos + torch.cat([-high, low], -1) * sin

    def norm(x: Any) -> Any:
        return F.rms_norm(x, (WIDTH,), None, 1e-5)

    def step() -> Any:
        x = x0
        for w, (keys, values) in zip(blocks, caches, strict=True):
            z = norm(x)
            q, k, v = (F.linear(z, w[n]).view(batch, tokens, -1, SIZE).transpose(1, 2) for n in "qkv")
            keys[:, :, start:], values[:, :, start:] = turned(k), v
            z = F.scaled_dot_product_attention(turned(q), keys, values, is_causal=tokens > 1, enable_gqa=True)
            x = x + F.linear(z.transpose(1, 2).reshape(batch, tokens, WIDTH), w["o"])
            z = norm(x)
            x = x + F.linear(F.silu(F.linear(z, w["gate"])) * F.linear(z, w["up"]), w["down"])
        return F.linear(norm(x[:, -1:]), head).float()

    def without_gradients() -> Any:
        with torch.inference_mode():
            return step()

    return without_gradients


class LlamaCpp:
    """Steps of llama.cpp from a file, of at most so many rows."""

    def __init__(self, path: Path, threads: int, most: int) -> None:
        import llama_cpp as lib
        from llama_cpp._logger import set_verbose

        set_verbose(False)
        self.lib, self.threads, self.most = lib, threads, most
        self.model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
        if not self.model:
            raise SystemExit(f"llama.cpp does not load {path.name}")
        self.batch = lib.llama_batch_init(512, 0, 1)
        self._held: dict[int, Any] = {}

    def context_of(self, start: int) -> Any:
        """A context whose sequences all have ``start`` tokens; of no tokens, one sequence."""
        lib = self.lib
        if start not in self._held:
            while self._held:
                lib.llama_free(self._held.popitem()[1])
            chosen, texts = lib.llama_context_default_params(), self.most if start else 1
            chosen.n_ctx, chosen.n_seq_max = texts * (-(-(start + PROMPT) // 256) * 256), texts
            chosen.n_batch = chosen.n_ubatch = 512
            chosen.n_threads = chosen.n_threads_batch = self.threads
            context = self._held[start] = lib.llama_init_from_model(self.model, chosen)
            for begin in range(0, start, 512):
                some = range(begin, min(start, begin + 512))
                self._evaluate(context, some, [0] * len(some), [0] * len(some))
            for row in range(1, texts):
                lib.llama_memory_seq_cp(lib.llama_get_memory(context), 0, row, -1, -1)
        return self._held[start]

    def _evaluate(self, context: Any, positions: Sequence[int], row_of: Sequence[int], wanted: Sequence[int]) -> None:
        batch = self.batch
        batch.n_tokens = len(positions)
        for i, (position, row, want) in enumerate(zip(positions, row_of, wanted, strict=True)):
            batch.token[i], batch.pos[i], batch.logits[i] = i % WORDS, position, want
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, row
        if self.lib.llama_decode(context, batch):
            raise SystemExit(f"llama.cpp refuses {len(positions)} tokens at {positions[0]}")

    def step(self, rows: int, cached: int) -> Step:
        """The step of so many rows after so many tokens, or the prompt."""
        start = cached if rows else 0
        context, positions = self.context_of(start), [cached] * rows or [*range(PROMPT)]
        row_of, wanted = [*range(rows)] or [0] * PROMPT, [1] * rows or [0] * (PROMPT - 1) + [1]
        memory = self.lib.llama_get_memory(context)

        def step() -> None:
            for row in range(rows or 1):
                self.lib.llama_memory_seq_rm(memory, row, start, -1)
            self._evaluate(context, positions, row_of, wanted)
            self.lib.llama_synchronize(context)

        return step


def llama_cpp_steps(case: str, options: argparse.Namespace, folder: Path) -> tuple[Stepper, int]:
    """Steps of llama.cpp from a file that is written here, and the bytes of the weights that a step reads."""
    path = folder / f"{case}.gguf"
    nbytes = write_file(path, case, options.layers)
    most = max([1, *(int(each) for each in options.rows if each != "prefill")])
    return LlamaCpp(path, options.threads, most).step, nbytes


def write_file(path: Path, case: str, layers: int) -> int:
    """A GGUF file of the model; gives the bytes of its matrices but the table of words."""
    import gguf

    kind = gguf.GGMLQuantizationType[case.upper()]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("none")
    writer.add_vocab_size(WORDS)
    writer.add_context_length(COMMON["max_position_embeddings"])
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(SHARED)
    writer.add_rope_dimension_count(SIZE)
    writer.add_layer_norm_rms_eps(COMMON["rms_norm_eps"])
    writer.add_rope_freq_base(COMMON["rope_theta"])
    names = dict(
        zip(SHAPES, ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"), strict=True)
    )
    blocks = {name: gguf.quants.quantize(weight(*shape), kind) for name, shape in SHAPES.items()}
    words = gguf.quants.quantize(weight(WORDS, WIDTH), kind)
    writer.add_tensor("token_embd.weight", words, raw_dtype=kind)
    writer.add_tensor("output.weight", words, raw_dtype=kind)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    for layer in range(layers):
        for name, data in blocks.items():
            writer.add_tensor(f"blk.{layer}.{names[name]}.weight", data, raw_dtype=kind)
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", np.ones(WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return int(words.nbytes) + layers * sum(data.nbytes for data in blocks.values())


def measure(options: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of the table."""
    for case in CASES[options.framework]:
        if options.framework == "torch":
            stepper, nbytes = torch_steps(options.layers)
        else:
            stepper, nbytes = llama_cpp_steps(case, options, folder)
        for cached in options.cached:
            for count in [0 if each == "prefill" else int(each) for each in options.rows]:
                if count == 0 and cached != options.cached[0]:
                    continue
                step = stepper(count, cached)
                took, _, clock = best_times(step, lambda: None, options)
                moved = nbytes + options.layers * 2 * SHARED * SIZE * 2 * cached * count
                yield {
                    "workload": "decode", "model": "llama", "framework": options.framework, "case": case,
                    "threads": options.threads, "layers": options.layers, "rows": count or "prefill",
                    "cached": cached if count else 0, "ms": round(took * 1e3, 3),
                    "tokens_per_s": round((count or PROMPT) / took, 2), "read_gb": round(moved / 1e9, 4),
                    "bandwidth_gb_per_s": round(options.bandwidth / 1e9, 2),
                    "share": round(moved / options.bandwidth / took, 3), "clock": clock,
                }  # fmt: skip


def parsed() -> argparse.Namespace:
    """The options; `decode.py` has pinned the process to its cores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework", choices=tuple(CASES))
    parser.add_argument("--bandwidth", type=float, required=True, help="of reading memory, bytes a second")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--cached", nargs="+", type=int, default=[128, 4096])
    parser.add_argument("--rows", nargs="+", default=["1", "8", "prefill"])
    parser.add_argument("--seconds", type=float, default=4.0)
    return parser.parse_args()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        for line in measure(parsed(), Path(name)):
            print(json.dumps(line), flush=True)
