"""The workloads that are recorded: ``everything.py`` runs them beside their peers, ``table.py`` shows them."""

from __future__ import annotations

from typing import NamedTuple


class Workload(NamedTuple):
    """One row of the table."""

    script: str
    case: str
    title: str
    peers: tuple[str, ...] = ("torch", "jax")

    def record(self, threads: int) -> str:
        """The name of its file under ``results/``."""
        return "-".join(part for part in (self.script, self.case, str(threads)) if part) + ".json"


NTH = ("torch", "torch-compile", "jax", "jax-jet", "jax-reverse")
LAPLACIAN = ("torch", "torch-forward", "jax", "jax-forward")

WORKLOADS = (
    Workload("gpt_step", "", "GPT training step (6 layers, width 384, 256 tokens, batch 8, AdamW)", ("torch",)),
    Workload("mlp_step", "", "MLP training step (784-256-10, batch 64, SGD)"),
    Workload("rmsnorm", "4096x768-forward", "RMSNorm 4096 x 768"),
    Workload("rmsnorm", "4096x768-backward", "RMSNorm 4096 x 768 with gradients"),
    Workload("rmsnorm", "8192x4096-forward", "RMSNorm 8192 x 4096"),
    Workload("rmsnorm", "8192x4096-backward", "RMSNorm 8192 x 4096 with gradients"),
    Workload("gelu_softmax", "", "softmax(gelu(x w + b) + r), 4096 x 1024"),
    Workload("attention", "8x6x256", "causal attention with gradients, 8 x 6 heads of 256 tokens"),
    Workload("attention", "1x6x2048", "causal attention with gradients, 1 x 6 heads of 2048 tokens"),
    Workload("llama_block", "", "Llama block with gradients (width 2048, 512 tokens)", ("torch", "torch-compile")),
    Workload("pinn", "64", "Burgers residual step, 64 points"),
    Workload("pinn", "256", "Burgers residual step, 256 points"),
    Workload("pinn", "4096", "Burgers residual step, 4096 points"),
    Workload("pinn", "65536", "Burgers residual step, 65,536 points"),
    Workload("nth_derivative", "2", "second derivative of a network, 1024 points", NTH),
    Workload("nth_derivative", "4", "fourth derivative", NTH),
    Workload("nth_derivative", "6", "sixth derivative", NTH),
    Workload("laplacian", "2", "Laplacian of a network in 2 dimensions, 256 points", LAPLACIAN),
    Workload("laplacian", "10", "Laplacian in 10 dimensions", LAPLACIAN),
    Workload("laplacian", "50", "Laplacian in 50 dimensions", LAPLACIAN),
    Workload("laplacian", "100", "Laplacian in 100 dimensions", LAPLACIAN),
    Workload("biharmonic", "2", "biharmonic operator of a network in 2 dimensions, 256 points"),
    Workload("biharmonic", "5", "biharmonic operator in 5 dimensions"),
    Workload("fft", "2048-forward", "Fourier transform of 2048 x 2048 complex numbers, with the `[fft]` extra"),
    Workload("fft", "2048-backward", "gradient of the power of its spectrum"),
    Workload("chain", "", "100 cheap operators on 8 floats"),
)
