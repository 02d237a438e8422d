"""Generate text with the exported program, where neither argosy nor autograd is installed, and sum the run up.

python examples/quickstart/generate.py --out out/quickstart
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import time
from pathlib import Path
from typing import Any

from argosy_infer import Generator, SamplingOptions

TRAINING_PACKAGES = ("argosy", "argosy_autograd")


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Where the program is, what to begin with, how much to write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/quickstart"))
    parser.add_argument("--prompt", default='The "for" statement ')
    parser.add_argument("--tokens", type=int, default=100, help="bytes to generate")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiler", default=None, help="default: the best one installed")
    return parser.parse_known_args(arguments)[0]  # the quickstart hands on the flags of training, too


def write(generator: Generator, prompt: bytes, count: int, options: SamplingOptions) -> tuple[str, float]:
    """The text after ``prompt`` and the bytes generated per second, prefill included."""
    start = time.perf_counter()
    made = generator.generate(list(prompt), count, options)
    return bytes(made).decode("utf-8", "replace"), count / (time.perf_counter() - start)


def positions(out: Path) -> int:
    """How many bytes the model can see: it has learned that many positions."""
    path = out / "train.json"
    return int(json.loads(path.read_text()).get("positions", 128)) if path.exists() else 128


def table(rows: list[tuple[str, Any]]) -> str:
    """Two aligned columns."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)


def main(options: argparse.Namespace) -> None:
    """Generate greedily and with sampling, then print every figure of the quickstart."""
    installed = [name for name in TRAINING_PACKAGES if importlib.util.find_spec(name) is not None]
    generator = Generator(options.out / "model", capacity=1024, compiler=options.compiler)
    prompt = options.prompt.encode("utf-8")
    count = min(options.tokens, positions(options.out) - len(prompt))
    if count < 1:
        raise SystemExit(f"the prompt has {len(prompt)} bytes; the model sees {positions(options.out)} in all")
    write(generator, prompt, count, SamplingOptions(temperature=0.0))  # compiles for the sizes that come up
    greedy, speed = write(generator, prompt, count, SamplingOptions(temperature=0.0))
    sampling = SamplingOptions(temperature=options.temperature, top_k=40, seed=options.seed)
    sampled, _ = write(generator, prompt, count, sampling)
    print(f"greedy:   {options.prompt}{greedy}\n")
    print(f"sampled:  {options.prompt}{sampled}\n")
    summary(options.out, speed, installed)


def summary(out: Path, speed: float, installed: list[str]) -> None:
    """The figures of training (from train.json) and of this process."""
    path = out / "train.json"
    trained = json.loads(path.read_text()) if path.exists() else {}
    rows: list[tuple[str, Any]] = []
    if trained:
        pace = trained["tokens_per_second"]
        rows = [
            ("validation loss", f"{trained['validation_loss']:.3f} nats per byte"),
            ("  byte-bigram model", f"{trained['bigram_loss']:.3f} nats per byte"),
            ("training loss, end", f"{trained['training_loss']:.3f} nats per byte"),
            ("training", f"{pace:,.0f} tokens/s" if pace else "resumed at its end"),
            ("training time", f"{trained['training_seconds']:.0f} s, {trained['compilations']} program compiled"),
            ("peak memory, training", f"{trained['peak_memory_mib']:.0f} MiB"),
        ]
    rows += [
        ("generation", f"{speed:,.0f} tokens/s"),
        ("peak memory, generation", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"),
        ("training packages here", ", ".join(installed) or "none"),
        *(("file", name) for name in trained.get("files", [])),
    ]
    print(table(rows))


if __name__ == "__main__":
    main(parse_arguments())
