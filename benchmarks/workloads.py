"""The workloads that are recorded: ``everything.py`` runs them beside their peers, ``table.py`` shows them."""

from __future__ import annotations

import math
from typing import NamedTuple


class Work(NamedTuple):
    """The least that a workload takes whoever does it: bytes ``read`` and ``written`` (operands once, results once) and
    ``operations`` of float32 arithmetic in products, two for a multiply-add."""

    read: int = 0
    written: int = 0
    operations: float = 0.0

    def seconds(self, limits: dict[str, float]) -> float:
        """The time of that at the machine's limits, memory and arithmetic at once: as long as it takes to stream as
        many bytes from and to where they lie, in a cache or in memory."""
        return max(limits.get("stream", 0.0), self.operations / limits["rate"])


def record_name(script: str, case: str, threads: int) -> str:
    """The name of a row's file under ``results/``."""
    return "-".join(part for part in (script, case, str(threads)) if part) + ".json"


class Workload(NamedTuple):
    """One row of the table; without ``work`` it has no share of the machine's limit."""

    script: str
    case: str
    title: str
    peers: tuple[str, ...] = ("torch", "torch-compile", "jax")
    work: Work | None = None

    def record(self, threads: int) -> str:
        """The name of its file under ``results/``."""
        return record_name(self.script, self.case, threads)


def _rows(rows: int, columns: int, operands: int) -> Work:
    """So many float32 arrays of [rows, columns] read once, and one written."""
    return Work(4 * rows * columns * operands, 4 * rows * columns)


def _transformer(tokens: int, weights: int, attention: Work) -> Work:
    """Forward and both products of backward for every weight and token, and the attention."""
    return Work(operations=6.0 * tokens * weights + attention.operations)


def _attention(batch: int, heads: int, tokens: int, size: int) -> Work:
    """Causal, with gradients, probabilities computed twice: seven products of half a square."""
    return Work(operations=7.0 * batch * heads * tokens * tokens * size)


def _burgers(points: int) -> Work:
    """Four coefficients (u, u_x, u_t, u_xx) through a network 2-64x4-1 and back for points and weights."""
    return Work(operations=3.0 * 2 * points * (4 * (3 * 64 * 64 + 64) + 2 * 64))


def _derivative(order: int) -> Work:
    """A Taylor sweep of ``order`` + 1 coefficients through a network 1-32x3-1 at 1024 points."""
    return Work(operations=2.0 * 1024 * ((order + 1) * (2 * 32 * 32 + 32) + 32))


def _laplacian(dimensions: int) -> Work:
    """A value, a direction for each dimension and their sum through a network d-128x3-1 at 256 points."""
    return Work(operations=2.0 * 256 * ((dimensions + 2) * (2 * 128 * 128 + 128) + dimensions * 128))


def _biharmonic(dimensions: int) -> Work:
    """A value, slopes, second derivatives, as many sums of third ones as slopes, and a sum of fourth ones through a
    network d-64x2-1 at 256 points."""
    coefficients = 2 + 2 * dimensions + dimensions * (dimensions + 1) // 2
    return Work(operations=2.0 * 256 * (coefficients * 64 * 64 + dimensions * 64 + 64))


def _fourier(size: int, transforms: int) -> Work:
    """5 n log2 n operations for a transform of n = size^2 complex numbers."""
    return _lines(size * size, size * size, transforms)


def _lines(numbers: int, length: int, transforms: int = 1) -> Work:
    """That many complex numbers in lines."""
    return Work(8 * numbers * transforms, 8 * numbers * transforms, 5.0 * numbers * math.log2(length) * transforms)


def _resnet18(images: int, size: int) -> Work:
    """Each convolution forward, and both its gradients, but that of the images."""
    places, before = (size // 2) ** 2, 64
    first = 3 * 64 * 49 * places
    total = 0
    for channels, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        places = (size // 4 // (channels // 64)) ** 2
        total += 9 * channels * places * (before + 3 * channels) + (stride > 1) * before * channels * places
        before = channels
    return Work(operations=2.0 * images * (2 * first + 3 * total))


# Nested reverse mode of jax, and compiled gradients of torch, take minutes to compile at order 8.
EVERY_WAY = ("torch", "torch-compile", "jax", "jax-jet", "jax-reverse", "paddle")
WITH_PADDLE = ("torch", "torch-compile", "jax", "paddle")
WITHOUT_COMPILE = ("torch", "jax")  # torch.compile takes minutes for these orders
GPT = _transformer(8 * 256, 6 * 12 * 384**2 + 384 * 4096, _attention(8, 6 * 6, 256, 64))
LLAMA = _transformer(512, 2 * 2048 * (2048 + 512) + 3 * 2048 * 5632, _attention(1, 32, 512, 64))
MLP = Work(operations=2.0 * 64 * (2 * 784 * 256 + 3 * 256 * 10))  # the input wants no gradient
RESNET = ("torch", "torch-last", "torch-compile", "jax")
LAPLACIAN = ("torch", "torch-compile", "torch-forward", "torch-forward-compile", "jax", "jax-forward")

WORKLOADS = (
    Workload("gpt_step", "", "GPT training step (6 layers, width 384, 256 tokens, batch 8, AdamW)", work=GPT),
    Workload("mlp_step", "", "MLP training step (784-256-10, batch 64, SGD)", work=MLP),
    Workload("resnet_step", "64", "ResNet-18 training step (8 images of 64 x 64, SGD)", RESNET, _resnet18(8, 64)),
    Workload("resnet_step", "224", "ResNet-18 training step (8 images of 224 x 224, SGD)", RESNET, _resnet18(8, 224)),
    Workload("rmsnorm", "4096x768-forward", "RMSNorm 4096 x 768", work=_rows(4096, 768, 1)),
    Workload("rmsnorm", "4096x768-backward", "RMSNorm 4096 x 768 with gradients", work=_rows(4096, 768, 2)),
    Workload("rmsnorm", "8192x4096-forward", "RMSNorm 8192 x 4096", work=_rows(8192, 4096, 1)),
    Workload("rmsnorm", "8192x4096-backward", "RMSNorm 8192 x 4096 with gradients", work=_rows(8192, 4096, 2)),
    Workload("gelu_softmax", "", "softmax(gelu(x w + b) + r), 4096 x 1024", work=_rows(4096, 1024, 2)),
    Workload(
        "attention",
        "8x6x256",
        "causal attention with gradients, 8 x 6 heads of 256 tokens",
        work=_attention(8, 6, 256, 64),
    ),
    Workload(
        "attention",
        "1x6x2048",
        "causal attention with gradients, 1 x 6 heads of 2048 tokens",
        work=_attention(1, 6, 2048, 64),
    ),
    Workload("llama_block", "", "Llama block with gradients (width 2048, 512 tokens)", work=LLAMA),
    Workload("pinn", "64", "Burgers residual step, 64 points", EVERY_WAY, _burgers(64)),
    Workload("pinn", "256", "Burgers residual step, 256 points", EVERY_WAY, _burgers(256)),
    Workload("pinn", "4096", "Burgers residual step, 4096 points", EVERY_WAY, _burgers(4096)),
    Workload("pinn", "65536", "Burgers residual step, 65,536 points", EVERY_WAY, _burgers(65536)),
    Workload("nth_derivative", "2", "second derivative of a network, 1024 points", EVERY_WAY, _derivative(2)),
    Workload("nth_derivative", "3", "third derivative", EVERY_WAY, _derivative(3)),
    Workload("nth_derivative", "4", "fourth derivative", EVERY_WAY, _derivative(4)),
    Workload("nth_derivative", "6", "sixth derivative", EVERY_WAY, _derivative(6)),
    Workload("nth_derivative", "8", "eighth derivative", ("torch", "jax", "jax-jet", "paddle"), _derivative(8)),
    Workload("laplacian", "2", "Laplacian of a network in 2 dimensions, 256 points", LAPLACIAN, _laplacian(2)),
    Workload("laplacian", "10", "Laplacian in 10 dimensions", LAPLACIAN, _laplacian(10)),
    Workload("laplacian", "50", "Laplacian in 50 dimensions", LAPLACIAN, _laplacian(50)),
    Workload("laplacian", "100", "Laplacian in 100 dimensions", LAPLACIAN, _laplacian(100)),
    Workload(
        "biharmonic",
        "2",
        "biharmonic operator of a network in 2 dimensions, 256 points",
        WITHOUT_COMPILE,
        work=_biharmonic(2),
    ),
    Workload("biharmonic", "10", "biharmonic operator in 10 dimensions", WITHOUT_COMPILE, work=_biharmonic(10)),
    Workload("biharmonic", "20", "biharmonic operator in 20 dimensions", WITHOUT_COMPILE, work=_biharmonic(20)),
    Workload("biharmonic", "50", "biharmonic operator in 50 dimensions", WITHOUT_COMPILE, work=_biharmonic(50)),
    Workload("biharmonic", "100", "biharmonic operator in 100 dimensions", WITHOUT_COMPILE, work=_biharmonic(100)),
    Workload(
        "fft",
        "2048-forward",
        "Fourier transform of 2048 x 2048 complex numbers",
        WITH_PADDLE,
        _fourier(2048, 1),
    ),
    Workload("fft", "2048-backward", "gradient of the power of its spectrum", WITH_PADDLE, _fourier(2048, 2)),
    Workload(
        "fft",
        "lines-64",
        "Fourier transforms of 2^20 complex numbers in lines of 64",
        work=_lines(1 << 20, 64),
    ),
    Workload("fft", "lines-256", "in lines of 256", work=_lines(1 << 20, 256)),
    Workload("fft", "lines-1024", "in lines of 1024", work=_lines(1 << 20, 1024)),
    Workload("fft", "lines-1009", "in lines of 1009, a prime", work=_lines(1009 * 1039, 1009)),
    Workload("chain", "", "100 cheap operators on 8 floats"),
)

EAGER = {
    "add": "x + y",
    "add-grad": "x + y, recorded for gradients",
    "add-number": "x + 1.5",
    "relu": "relu(x)",
    "sum": "x.sum()",
    "matmul8": "w @ w, 8 x 8",
    "chain100-backward": "100 additions, and back through them",
}
"""Cases of ``eager.py`` by what they apply, to 8 floats unless said."""

ERRORS = {
    "burgers": "Burgers' shock, relative error 0.1",
    "beam": "Euler-Bernoulli beam, relative error 0.01",
}
"""The cases of ``time_to_error.py``."""
