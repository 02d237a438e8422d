"""Convolutions of cinn beside torch's on the shapes of ResNet-50 (and a few others), float32, one thread, in turn.

``python benchmarks/convolution.py [name ...] [--parts forward input weight] [--batch 8] [--repeats 7] [--core 0]
--peer-python PATH`` prints a line of JSON for each convolution and part (the result, the gradient of the input, that of
the weights): GFLOP/s of both (of the arithmetic of a convolution as it is defined), and their ratio. PATH is an
interpreter that has torch; it runs with its allocator's best settings, and in the faster of the ``--layouts`` asked for
(``nchw`` as ours, ``nhwc``). ``--record`` writes the figures to ``benchmarks/results/convolution-1.json``.
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
from typing import Any, NamedTuple

import numpy as np
from side_by_side import HERE, TUNED, commit, machine


class Shape(NamedTuple):
    """Channels, filters, size of the image, window, stride, groups, and spread of the window."""

    channels: int
    filters: int
    size: int
    window: int
    stride: int = 1
    groups: int = 1
    dilation: int = 1

    @property
    def padding(self) -> int:
        """Of every side: what keeps the size at stride one."""
        return (self.window - 1) * self.dilation // 2

    @property
    def places(self) -> int:
        """Of the result, along an axis."""
        return (self.size + 2 * self.padding - (self.window - 1) * self.dilation - 1) // self.stride + 1

    def operations(self, batch: int) -> int:
        """Two for a multiply-add."""
        return 2 * batch * self.filters * self.places**2 * self.channels // self.groups * self.window**2

    def operands(self, batch: int) -> list[Any]:
        """Images, weights, and the gradient of the result."""
        rng = np.random.default_rng(0)
        shapes = [
            (batch, self.channels, self.size, self.size),
            (self.filters, self.channels // self.groups, self.window, self.window),
            (batch, self.filters, self.places, self.places),
        ]
        return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]


SHAPES = {
    "7x7/2 224": Shape(3, 64, 224, 7, 2),
    "1x1 56 64-64": Shape(64, 64, 56, 1),
    "1x1 56 64-256": Shape(64, 256, 56, 1),
    "1x1 56 256-64": Shape(256, 64, 56, 1),
    "3x3 56 64-64": Shape(64, 64, 56, 3),
    "3x3/2 56 128-128": Shape(128, 128, 56, 3, 2),
    "1x1/2 56 256-512": Shape(256, 512, 56, 1, 2),
    "1x1 28 512-128": Shape(512, 128, 28, 1),
    "3x3 28 128-128": Shape(128, 128, 28, 3),
    "1x1 14 1024-256": Shape(1024, 256, 14, 1),
    "3x3 14 256-256": Shape(256, 256, 14, 3),
    "1x1 7 2048-512": Shape(2048, 512, 7, 1),
    "3x3 7 512-512": Shape(512, 512, 7, 3),
    "depthwise 3x3 56 128": Shape(128, 128, 56, 3, 1, 128),
    "3x3 28 in 32 groups": Shape(256, 256, 28, 3, 1, 32),
    "3x3 28 dilated": Shape(128, 128, 28, 3, 1, 1, 2),
}
PARTS = ("forward", "input", "weight")


def ours(shape: Shape, part: str, batch: int) -> Callable[[], Any]:
    """A captured program of one part."""
    import argosy as paddle

    x, w, g = (paddle.to_tensor(v) for v in shape.operands(batch))
    x.stop_gradient = w.stop_gradient = False

    def step(x: Any, w: Any, g: Any) -> Any:
        y = paddle.nn.functional.conv2d(
            x, w, stride=shape.stride, padding=shape.padding, groups=shape.groups, dilation=shape.dilation
        )
        return y if part == "forward" else paddle.grad([y], [x if part == "input" else w], [g])[0]

    whole = paddle.jit.to_static(step, full_graph=True)
    return lambda: whole(x, w, g)


def torch_part(torch: Any, shape: Shape, part: str, batch: int, layout: str) -> Callable[[], Any]:
    """torch's function for one part."""
    x, w, g = (torch.from_numpy(v) for v in shape.operands(batch))
    if layout == "nhwc":
        x, w, g = (v.to(memory_format=torch.channels_last) for v in (x, w, g))
    wide = lambda n: [n, n]  # noqa: E731
    settings = wide(shape.stride), wide(shape.padding), wide(shape.dilation)
    if part == "forward":
        return lambda: torch.conv2d(x, w, None, *settings, shape.groups)
    wanted = [part == "input", part == "weight", False]
    back = torch.ops.aten.convolution_backward
    index = PARTS.index(part) - 1
    return lambda: back(g, x, w, None, *settings, False, [0, 0], shape.groups, wanted)[index]


def clocked(run: Callable[[], Any], inner: int) -> float:
    """Nanoseconds of CPU time of one call."""
    start = time.thread_time_ns()
    for _ in range(inner):
        run()
    return (time.thread_time_ns() - start) / inner


class Peer:
    """torch in a process of its own on the same core, which runs what it is told to."""

    def __init__(self, options: argparse.Namespace) -> None:
        command = [options.peer_python, os.path.abspath(__file__), "--serve"]
        command += ["--core", str(options.core), "--batch", str(options.batch)]
        environment = {**os.environ, "GLIBC_TUNABLES": TUNED}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)

    def ask(self, line: str) -> float:
        """Send a line, and wait for the number that answers it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve(batch: int) -> None:
    """Run torch for the process at the other end of our streams: a line names a part, or how often to run it."""
    import torch

    torch.set_num_threads(1)
    run: Callable[[], Any] = bool
    with torch.inference_mode():
        for line in sys.stdin:
            name, _, rest = line.strip().partition("|")
            if rest:
                part, layout = rest.split()
                run = torch_part(torch, SHAPES[name], part, batch, layout)
                answer = float(run().abs().mean())
            else:
                answer = clocked(run, int(name))
            print(answer, flush=True)


def measure(name: str, part: str, options: argparse.Namespace, peer: Peer | None) -> dict[str, Any]:
    """Ours and torch in turn."""
    shape = SHAPES[name]
    work = shape.operations(options.batch)
    inner = max(1, int(3e8 / work))
    run = ours(shape, part, options.batch)
    check = float(np.abs(run().numpy()).mean())
    times: dict[str, list[float]] = {"argosy": []}
    for layout in options.layouts if peer is not None else ():
        assert peer is not None
        theirs = peer.ask(f"{name}|{part} {layout}")
        assert abs(theirs - check) <= 1e-4 * theirs, (theirs, check)
        times[f"torch {layout}"] = []
    for _ in range(options.repeats):
        times["argosy"].append(clocked(run, inner))
        for layout in options.layouts if peer is not None else ():
            assert peer is not None
            if len(options.layouts) > 1:
                peer.ask(f"{name}|{part} {layout}")
            times[f"torch {layout}"].append(peer.ask(str(inner)))
    least = {who: statistics.median(t) for who, t in times.items()}
    found = {"convolution": name, "part": part, "batch": options.batch, "milliseconds": round(least["argosy"] / 1e6, 3)}
    found |= {f"{who} gflops": round(work / t, 1) for who, t in least.items()}
    peers = [t for who, t in least.items() if who != "argosy"]
    return found | ({"ratio": round(min(peers) / least["argosy"], 2)} if peers else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SHAPES))
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--layouts", nargs="*", choices=("nchw", "nhwc"), default=("nchw",))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--peer-python", default="", help="an interpreter that has torch")
    parser.add_argument("--record", action="store_true", help="keep the figures")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {options.core})
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARGOSY_NUM_THREADS"):
        os.environ[name] = "1"
    if options.serve:
        serve(options.batch)
        return
    peer = Peer(options) if options.peer_python else None
    figures = []
    for name in options.names or SHAPES:
        for part in options.parts:
            figures.append(measure(name, part, options, peer))
            print(json.dumps(figures[-1]), flush=True)
    if peer is not None:
        peer.close()
    if options.record:
        shown = ["PATH" if word == options.peer_python else word for word in sys.argv[1:]]
        command = " ".join(["python", "benchmarks/convolution.py", *shown])
        found = {"command": command, "commit": commit(), "machine": machine(), "figures": figures}
        (HERE / "results" / "convolution-1.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
