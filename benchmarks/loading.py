"""Memory and time that a folder of a language model takes until its first token: its files are mapped, not copied.

    python benchmarks/loading.py                  # 16 layers of `decode`'s Llama, 2 GB in bfloat16
    python benchmarks/loading.py --layers 2

A folder of two shards is written, and read in a process of its own. One JSON line for each stage (the import, the
model, its logits of a text by eager operators, which turn one weight at a time, a generator and a token of it): seconds
so far, the most memory until then that is no page of a file (``private_mb``), and all that is in memory (``all_mb``);
at the end what the stages took of the first kind, which a second copy of the weights would be part of.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from decode import COMMON, HIDDEN, MODELS, SHAPES, WIDTH, WORDS, weight

_FIELDS = {"RssAnon": "private_mb", "VmRSS": "all_mb"}


def write_folder(folder: Path, layers: int) -> int:
    """Write shards, index and configuration; returns the bytes of the shards."""
    from argosy_tensorcore.safetensors import save_file

    def made(out: int, size: int) -> Any:
        return weight(out, size).astype(ml_dtypes.bfloat16)

    shapes = {f"self_attn.{name}_proj" if len(name) == 1 else f"mlp.{name}_proj": s for name, s in SHAPES.items()}
    norm = np.ones(WIDTH, ml_dtypes.bfloat16)
    shards: list[dict[str, Any]] = [
        {"model.embed_tokens.weight": made(WORDS, WIDTH)},
        {"lm_head.weight": made(WORDS, WIDTH)},
    ]
    shards[1]["model.norm.weight"] = norm
    for layer in range(layers):
        shard, prefix = shards[2 * layer // layers], f"model.layers.{layer}"
        shard |= {f"{prefix}.{name}.weight": made(*shape) for name, shape in shapes.items()}
        shard |= {f"{prefix}.{name}.weight": norm for name in ("input_layernorm", "post_attention_layernorm")}
    names = [f"model-{i + 1:05}-of-00002.safetensors" for i in range(2)]
    for name, shard in zip(names, shards, strict=True):
        save_file(shard, folder / name)
    total = sum(array.nbytes for shard in shards for array in shard.values())
    places = {tensor: name for name, shard in zip(names, shards, strict=True) for tensor in shard}
    index = {"metadata": {"total_size": total}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    config = COMMON | MODELS["llama"] | {"num_hidden_layers": layers, "architectures": ["LlamaForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": WIDTH, "intermediate_size": HIDDEN}))
    return total


class Peaks(threading.Thread):
    """The most memory of this process, looked at every 2 ms."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = dict.fromkeys(_FIELDS.values(), 0)

    def run(self) -> None:
        """Look for as long as the process runs."""
        while True:
            self.look()
            time.sleep(0.002)

    def look(self) -> None:
        """Take what is more than before."""
        for line in Path("/proc/self/status").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in _FIELDS:
                key = _FIELDS[name]
                self.most[key] = max(self.most[key], int(rest.split()[0]) // 1024)


def read(folder: str, total: int) -> None:
    """The stages, in this process."""
    start, peaks = time.perf_counter(), Peaks()
    peaks.start()

    def tell(stage: str) -> None:
        peaks.look()
        print(json.dumps({"stage": stage, "seconds": round(time.perf_counter() - start, 2), **peaks.most}), flush=True)

    from argosy import models

    tell("import")
    before = peaks.most["private_mb"]
    model = models.load(folder)
    tell("model")
    model.logits([[1, 2, 3, 4]]).numpy()
    tell("logits")
    text = model.generate([1, 2, 3, 4], max_new_tokens=2)
    tell(f"generator, {len(text)} tokens")
    taken = peaks.most["private_mb"] - before
    print(json.dumps({"folder_mb": total >> 20, "taken_mb": taken, "without_a_copy": taken < total / 4 / 2**20}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--read", nargs=2, metavar=("FOLDER", "BYTES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        read(arguments.read[0], int(arguments.read[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        total = write_folder(Path(folder), arguments.layers)
        subprocess.run([sys.executable, __file__, "--read", folder, str(total)], check=True)


if __name__ == "__main__":
    main()
