"""Tables of a network's layers, and counts of its multiply-adds, from one forward pass."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from argosy.nn.layer import Layer
from argosy_autograd.modes import no_grad
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import Strided
from argosy_tensorcore.tensor import Tensor

__all__ = ["flops", "summary"]

_COLUMNS = ("Layer (type)", "Input Shape", "Output Shape", "Param #")


def summary(net: Layer, input_size: Any = None, dtypes: Any = None, input: Any = None) -> dict[str, int]:
    """Print a line for each layer that has none below it, and the counts of parameters.

    input_size: a shape, or a list of shapes; ``input`` gives tensors instead. Returns ``total_params`` and
    ``trainable_params``.
    """
    rows = _visited(net, _inputs(input_size, dtypes, input))
    total = sum(_count(p) for p in net.parameters())
    trainable = sum(_count(p) for p in net.parameters() if not p.stop_gradient)
    counts: dict[str, int] = {}
    lines: list[tuple[str, ...]] = []
    for layer, given, result in rows:
        kind = type(layer).__name__
        counts[kind] = counts.get(kind, 0) + 1
        own = sum(_count(p) for p in layer.parameters(include_sublayers=False))
        lines.append((f"{kind}-{counts[kind]}", str(_shapes(given)), str(_shapes(result, one=True)), f"{own:,}"))
    sys.stdout.write(_table(lines, total, trainable))
    return {"total_params": total, "trainable_params": trainable}


def flops(
    net: Layer, input_size: Any, custom_ops: Mapping[type, Callable[..., Any]] | None = None, print_detail: bool = False
) -> int:
    """The multiply-adds of a forward pass: those of linear layers and convolutions; other layers count 0.

    custom_ops: from layer classes to functions ``(layer, inputs, output) -> count``.
    """
    counted = []
    for layer, given, result in _visited(net, _inputs(input_size, None, None)):
        custom = (custom_ops or {}).get(type(layer))
        counted.append((layer, int(custom(layer, given, result) if custom else _multiplications(layer, result))))
    total = sum(n for _, n in counted)
    if print_detail:
        for layer, n in counted:
            sys.stdout.write(f"{layer.full_name():<24} {n:>16,}\n")
    sys.stdout.write(f"Total Flops: {total}     Total Params: {sum(_count(p) for p in net.parameters())}\n")
    return total


def _multiplications(layer: Layer, result: Any) -> int:
    """Each output element of a linear layer or a convolution sums one product for each weight that reaches it."""
    weight = layer._parameters.get("weight")
    if weight is None or type(result) is not Tensor:
        return 0
    kind = type(layer).__name__
    if kind == "Linear":
        return _count(result) * int(weight.shape[0])
    if kind in ("Conv1D", "Conv2D", "Conv3D"):
        return _count(result) * _count(weight) // int(weight.shape[0])
    return 0


def _visited(net: Layer, inputs: list[Tensor]) -> list[tuple[Layer, Any, Any]]:
    """(layer, inputs, output) of each layer without sublayers, in the order of calls; in evaluation mode."""
    seen: list[tuple[Layer, Any, Any]] = []
    layers = net.sublayers(include_self=True)
    leaves = [layer for layer in layers if not any(True for _ in layer.children())]
    modes = [(layer, layer.training) for layer in layers]
    hooks = [leaf.register_forward_post_hook(lambda *call: seen.extend([call])) for leaf in leaves]
    try:
        net.eval()
        with no_grad():
            net(*inputs)
    finally:
        for hook in hooks:
            hook.remove()
        for layer, mode in modes:
            layer.training = mode
    return seen


def _inputs(sizes: Any, dtypes: Any, given: Any) -> list[Any]:
    if given is not None:
        return list(given) if isinstance(given, (list, tuple)) else [given]
    if sizes is None:
        raise ValueError("summary() and flops() need input_size (or, for summary, input)")
    several = isinstance(sizes, (list, tuple)) and sizes and isinstance(sizes[0], (list, tuple))
    shapes = list(sizes) if several else [(sizes,) if isinstance(sizes, int) else tuple(sizes)]
    names = list(dtypes) if isinstance(dtypes, (list, tuple)) else [dtypes or "float32"] * len(shapes)
    return [_ones(shape, name) for shape, name in zip(shapes, names, strict=True)]


def _ones(shape: Any, dtype: Any) -> Tensor:
    sizes = [1 if n is None or n == -1 else int(n) for n in shape]
    return Tensor._wrap(Strided(np.ones(sizes, as_dtype(dtype).numpy)))


def _count(tensor: Tensor) -> int:
    return int(np.prod(tensor.shape, dtype=np.int64))


def _shapes(x: Any, one: bool = False) -> Any:
    if type(x) is Tensor:
        return list(x.shape)
    parts = [_shapes(item, True) for item in x] if isinstance(x, (list, tuple)) else []
    return parts[0] if one and len(parts) == 1 else parts


def _table(lines: list[tuple[str, ...]], total: int, trainable: int) -> str:
    widths = [max(14, *(len(row[i]) + 4 for row in (_COLUMNS, *lines))) for i in range(4)]
    width = sum(widths)
    rows = ["".join(cell.center(w) for cell, w in zip(row, widths, strict=True)) for row in (_COLUMNS, *lines)]
    counts = f"Total params: {total:,}\nTrainable params: {trainable:,}\nNon-trainable params: {total - trainable:,}"
    return "\n".join(["-" * width, rows[0], "=" * width, *rows[1:], "=" * width, counts, "-" * width, ""])
