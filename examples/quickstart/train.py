"""Train a small GPT on real text, with the whole training step compiled, and export it.

    python examples/quickstart/train.py            two to four minutes on two cores
    python examples/quickstart/train.py --tiny     seconds, for a look
    python examples/quickstart/train.py --resume   goes on from the last checkpoint, bit for bit

Writes into --out: checkpoint.safetensors, loss.png, model.pir and model.safetensors, train.json.
Ctrl-C ends the run at the next step and leaves a checkpoint to resume from.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from data import RandomBatches, Windows, bigram_loss, read_text, sequential_batches, split
from progress import Progress

import argosy as paddle
from argosy import io
from argosy.models import GPT, GPTConfig

TINY = {"width": 32, "layers": 2, "heads": 2, "length": 32, "batch": 4, "steps": 20, "warmup": 5, "every": 10}


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """All sizes are flags; --tiny replaces the defaults of several."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/quickstart"))
    parser.add_argument("--tiny", action="store_true", help="sizes that train in seconds")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    parser.add_argument("--eager", action="store_true", help="do not compile: the same steps, operator by operator")
    parser.add_argument("--backend", default="CINN", help="compiler of the step")
    defaults = {"width": 192, "layers": 4, "heads": 6, "length": 128, "batch": 16, "steps": 1200, "warmup": 60}
    defaults |= {"every": 100, "validate": 0, "seed": 1, "stop-after": 0}
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=None, help=f"default {value}")
    parser.add_argument("--rate", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--decay", type=float, default=0.05, help="weight decay")
    parser.add_argument("--clip", type=float, default=1.0, help="largest global norm of the gradients")
    chosen = parser.parse_args(arguments)
    for name, value in defaults.items():
        key = name.replace("-", "_")
        if getattr(chosen, key) is None:
            setattr(chosen, key, TINY.get(key, value) if chosen.tiny else value)
    return chosen


class Trainer:
    """Model, optimizer and schedule, and the one compiled function that does a whole step."""

    def __init__(self, options: argparse.Namespace) -> None:
        paddle.seed(options.seed)
        config = GPTConfig(256, options.length, options.width, options.layers, options.heads)
        self.options = options
        self.model = GPT(config)
        cosine = paddle.optimizer.lr.CosineAnnealingDecay(
            options.rate, T_max=max(1, options.steps - options.warmup), eta_min=options.rate / 20
        )
        self.schedule = paddle.optimizer.lr.LinearWarmup(cosine, options.warmup, 0.0, options.rate)
        self.optimizer = paddle.optimizer.AdamW(
            self.schedule,
            beta2=0.95,
            parameters=self.model.parameters(),
            weight_decay=options.decay,
            grad_clip=paddle.nn.ClipGradByGlobalNorm(options.clip),
        )
        self.step_count = 0
        self.losses: list[float] = []
        compiled = paddle.jit.to_static(self.one_step, full_graph=True, backend=options.backend)
        self.run_step = self.one_step if options.eager else compiled
        self.run_loss = paddle.jit.to_static(self.model.loss, full_graph=True, backend=options.backend)

    def one_step(self, ids: Any, following: Any) -> Any:
        """Forward, backward, clip, update: captured as one program."""
        loss = self.model.loss(ids, following)
        loss.backward()
        self.optimizer.step()
        self.optimizer.clear_grad()
        return loss

    def train_on(self, ids: Any, following: Any) -> float:
        """One step and one move of the schedule; returns the loss in nats per byte."""
        loss = float(self.run_step(ids, following))
        self.schedule.step()
        self.step_count += 1
        self.losses.append(loss)
        return loss

    def evaluate(self, text: np.ndarray, limit: int | None = None) -> float:
        """Mean loss over the windows of ``text``."""
        self.model.eval()
        losses = []
        with paddle.no_grad():
            for rows in sequential_batches(text, self.options.length, self.options.batch, limit):
                ids, following = paddle.to_tensor(rows[:, :-1]), paddle.to_tensor(rows[:, 1:])
                losses.append(float(self.run_loss(ids, following)))
        self.model.train()
        return float(np.mean(losses))

    def save(self, path: Path) -> None:
        """Everything that the rest of the run depends on."""
        sizes = {name: getattr(self.options, name) for name in ("width", "layers", "heads", "length", "batch", "seed")}
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "rng": paddle.get_rng_state(),
            "step": self.step_count,  # the data position, too: batches are a function of seed and step
            "losses": np.array(self.losses),
            "sizes": sizes,
        }
        paddle.save(state, path)

    def restore(self, path: Path) -> None:
        """Go on where :meth:`save` was called. Raises ValueError when the sizes differ."""
        state = paddle.load(path)
        differing = {k: v for k, v in state["sizes"].items() if getattr(self.options, k) != v}
        if differing:
            raise ValueError(f"{path} was made with other sizes: {differing}; give the same flags to resume")
        self.model.load_state_dict(state["model"])
        self.optimizer.set_state_dict(state["optimizer"])
        paddle.set_rng_state(state["rng"])
        self.step_count = state["step"]
        self.losses = state["losses"].tolist()


class Interrupt:
    """Ctrl-C asks for an end after the current step; a second one ends at once."""

    def __init__(self) -> None:
        self.asked = False
        self._previous = signal.signal(signal.SIGINT, self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, self._previous)


def run(options: argparse.Namespace) -> int:
    """Train, evaluate, export. Returns the process's exit code."""
    options.out.mkdir(parents=True, exist_ok=True)
    checkpoint = options.out / "checkpoint.safetensors"
    train, validation = split(read_text())
    trainer = Trainer(options)
    if options.resume:
        trainer.restore(checkpoint)
        print(f"resuming from {checkpoint} at step {trainer.step_count}")
    windows = Windows(train, options.length)
    batches = RandomBatches(windows, options.batch, options.seed, trainer.step_count, options.steps)
    interrupt = Interrupt()
    began = time.perf_counter()
    with paddle.jit.count_compiles() as compilations:
        loader = io.DataLoader(windows, batch_sampler=batches)
        seconds = train_loop(trainer, loader, validation, checkpoint, interrupt)
    if trainer.step_count < options.steps:
        trainer.save(checkpoint)
        print(f"stopped at step {trainer.step_count}; go on with --resume (checkpoint: {checkpoint})")
        return 130 if interrupt.asked else 0
    figures = {
        "validation_loss": trainer.evaluate(validation, options.validate or None),
        "bigram_loss": bigram_loss(train, validation),
        "training_loss": float(np.mean(trainer.losses[-50:])),
        "steps": options.steps,
        "positions": options.length,
        "parameters": int(sum(p.size for p in trainer.model.parameters())),
        "tokens_per_second": options.length * options.batch / float(np.median(seconds)) if seconds else None,
        "compilations": compilations.names.count("one_step"),
        "training_seconds": time.perf_counter() - began,
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    finish(trainer, checkpoint, figures)
    return 0


def train_loop(
    trainer: Trainer, loader: Any, validation: np.ndarray, checkpoint: Path, interrupt: Interrupt
) -> list[float]:
    """Steps until done, asked to stop, or ``--stop-after``. Returns the seconds of each step."""
    options, seconds = trainer.options, []
    with Progress(options.steps, trainer.step_count, options.length * options.batch) as progress:
        for ids, following in loader:
            start = time.perf_counter()
            loss = trainer.train_on(ids, following)
            seconds.append(time.perf_counter() - start)
            progress.step(loss, seconds[-1])
            if trainer.step_count % options.every == 0:
                trainer.save(checkpoint)
                held_out = trainer.evaluate(validation, options.validate or 8)
                progress.note(f"step {trainer.step_count}: validation {held_out:.3f} nats per byte")
            if interrupt.asked or trainer.step_count == options.stop_after:
                break
    return seconds


def finish(trainer: Trainer, checkpoint: Path, figures: dict[str, Any]) -> None:
    """Write the checkpoint, the curve, the exported program and the figures."""
    out = trainer.options.out
    trainer.save(checkpoint)
    plot(trainer.losses, figures, out / "loss.png")
    paddle.jit.save(trainer.model, out / "model", input_spec=[paddle.static.InputSpec([None, None], "int64", "ids")])
    figures["files"] = [str(p) for p in (checkpoint, out / "loss.png", *sorted(out.glob("model.*")))]
    (out / "train.json").write_text(json.dumps(figures, indent=1))
    print(
        f"validation loss {figures['validation_loss']:.3f} nats per byte; "
        f"an interpolated byte-bigram model: {figures['bigram_loss']:.3f}"
    )


def plot(losses: list[float], figures: dict[str, Any], path: Path) -> None:
    """The loss of every step, and the two validation losses as lines."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    axes.plot(range(1, len(losses) + 1), losses, linewidth=0.8, label="training")
    axes.axhline(figures["validation_loss"], color="tab:green", label="validation, at the end")
    axes.axhline(figures["bigram_loss"], color="tab:gray", linestyle="--", label="byte bigrams")
    axes.set(xlabel="step", ylabel="nats per byte")
    axes.legend()
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(run(parse_arguments()))
