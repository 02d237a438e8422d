"""Absent names: functions that Paddle has and argosy does not. Each is there, and says why when it is called."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["REASONS", "absent"]

REASONS = {
    "torch": "imports of another framework are not redirected; python -m argosy.as_paddle redirects those of Paddle",
    "cost-table": "it is a table of times of Paddle's kernels; argosy.explain(step) estimates traffic and memory",
    "graph": "programs are PIR; jit.to_static and static.Program make them",
    "unequal-lengths": (
        "it needs sequences of unequal lengths in one tensor, which Paddle 3 no longer takes either; pad and mask"
    ),
    "ipu": "there is no IPU",
    "server-metrics": "it sums over parameter servers; metric.Auc and sums of predictions tell the same of one",
    "sampled-classes": "nn.functional.margin_cross_entropy and class_center_sample draw classes",
    "server-table": "it is a table on parameter servers; embedding holds the table in memory",
    "parameter-servers": "parameter servers are not implemented; every rank has or splits the model",
    "fleet": (
        "it is for parameter servers, which are not implemented; save by distributed.save_state_dict or "
        "static.save_inference_model"
    ),
    "hadoop": "it calls the programs of Hadoop; mount the file system, or copy files by them before the run",
    "quantization-pass": "programs are PIR; use quantization.PTQ or quantization.QAT with a QuantConfig",
    "headers": "operators in C need no headers: argosy.library.custom_op takes their symbols",
    "cpp": "it compiles against Paddle's C++ headers; argosy.library.custom_op takes a C symbol or a Python body",
    "float8": "it needs matrix units for float8",
    "offload": "tensors are moved between memories by Tensor.to and Tensor.cpu, at once",
    "serving": "argosy_infer serves with a paged cache of its own",
    "experts": "experts are called by moe_permute and moe_unpermute of nn.functional",
    "stacked-matmul": "matmul multiplies stacks of matrices",
    "rotary": "fused_rotary_position_embedding turns slices",
    "multi-head": "fused_multi_head_attention attends",
    "dot-product": "fused_dot_product_attention attends",
    "embedding-gradient": "gradients of embeddings are added by backward()",
    "backward-step": "it is a step of a backward pass that autograd makes itself",
}
"""Why, by the word that the table's rows have after ``absent``."""


def absent(path: str, reason: str) -> Any:
    """A function that raises NotImplementedError with the reason, calling itself by its public ``path``."""
    module, _, name = path.rpartition(".")
    why = REASONS[reason]

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{path.removeprefix('argosy.')} is not implemented: {why}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = module
    refuse.__doc__ = f"Raises NotImplementedError: {why}."
    return refuse
