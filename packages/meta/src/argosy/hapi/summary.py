"""The table of a network's layers and parameters, from one forward pass."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.jit.input_spec import InputSpec
from argosy.nn.container import LayerList, Sequential
from argosy.nn.layer import Layer
from argosy.nn.recurrent import GRU, LSTM, SimpleRNN
from argosy_autograd.modes import no_grad
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["count", "inputs_of", "leaves", "record_calls", "shapes_of", "summary"]

_COLUMNS = ("Layer (type)", "Input Shape", "Output Shape", "Param #")
_WIDTHS = (15, 20, 20, 15)
_RECURRENT = (LSTM, GRU, SimpleRNN)


@validate_call
def summary(net: Layer, input_size: Any = None, dtypes: Any = None, input: Any = None) -> dict[str, int]:
    """Print a line for each layer, in the order in which they finish, and the counts of parameters.

    As in Paddle, a layer that runs twice has one line, ``Linear-3`` is the third of its kind that was made, and
    Sequential, LayerList, a network with layers below it and the cells of an LSTM, GRU or SimpleRNN have none.

    input_size: a shape or an InputSpec, or a list of them; ``input``: what ``forward`` takes instead, a tensor, or one
    list or dict of them. Returns ``total_params`` and ``trainable_params``.
    """
    inputs = inputs_of(input_size, dtypes, input)
    rows = {_label(row[0]): row for row in record_calls(net, inputs, _listed_layers(net))}
    total = sum(count(p) for p in net.parameters())
    trainable = sum(count(p) for p in net.parameters() if not p.stop_gradient)
    lines: list[tuple[str, ...]] = []
    for label, (layer, given, result) in rows.items():
        own = sum(count(p) for p in layer.parameters(include_sublayers=isinstance(layer, _RECURRENT)))
        lines.append((label, str(shapes_of(given)), str(shapes_of(result, one=True)), f"{own:,}"))
    made = sum(_elements(result) for _, _, result in rows.values())
    sys.stdout.write(_table(lines, total, trainable, (_elements(inputs), made)))
    return {"total_params": total, "trainable_params": trainable}


def _label(layer: Layer) -> str:
    return f"{type(layer).__name__}-{int(layer.full_name().rpartition('_')[2]) + 1}"


def _listed_layers(net: Layer) -> list[Layer]:
    """The layers that have a line."""
    layers = net.sublayers(include_self=True)
    cells = {id(cell) for layer in layers if isinstance(layer, _RECURRENT) for cell in layer.sublayers()}
    whole = len(layers) > 1 and not isinstance(net, _RECURRENT)
    return [
        layer for layer in layers if id(layer) not in cells and not (whole and layer is net) and not _is_list(layer)
    ]


def _is_list(layer: Layer) -> bool:
    return isinstance(layer, (Sequential, LayerList)) and not isinstance(layer, _RECURRENT)


def leaves(net: Layer) -> list[Layer]:
    """The layers without sublayers."""
    return [layer for layer in net.sublayers(include_self=True) if not any(True for _ in layer.children())]


def record_calls(net: Layer, inputs: list[Tensor], watched: list[Layer]) -> list[tuple[Layer, Any, Any]]:
    """(layer, inputs, output) of each call of the watched layers as they finish; in evaluation mode."""
    seen: list[tuple[Layer, Any, Any]] = []
    modes = [(layer, layer.training) for layer in net.sublayers(include_self=True)]
    hooks = [layer.register_forward_post_hook(lambda *call: seen.extend([call])) for layer in watched]
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


def inputs_of(sizes: Any, dtypes: Any = None, given: Any = None) -> list[Any]:
    """What is given, as the one argument, or ones of the given sizes (a shape or a list of shapes) and dtypes."""
    if given is not None:
        return [given]
    if sizes is None:
        raise ValueError("summary() and flops() need input_size (or, for summary, input)")
    if not isinstance(sizes, (int, list, tuple, InputSpec)):
        raise TypeError(f"summary(): argument 'input_size' must be a shape or a list of shapes, got {sizes!r:.60}")
    several = isinstance(sizes, (list, tuple)) and sizes and isinstance(sizes[0], (list, tuple, InputSpec))
    shapes: list[Any] = list(sizes) if several else [[sizes] if isinstance(sizes, int) else sizes]  # type: ignore[arg-type]
    names = list(dtypes) if isinstance(dtypes, (list, tuple)) else [dtypes] * len(shapes)
    return [_ones(shape, name) for shape, name in zip(shapes, names, strict=True)]


def _ones(shape: Any, dtype: Any) -> Tensor:
    """Ones of the shape, or of the shape and dtype that a spec says, with 1 where a size is open."""
    if isinstance(shape, InputSpec):
        shape, dtype = shape.shape, dtype or shape.dtype
    sizes = [1 if n is None or n == -1 else int(n) for n in shape]
    return Tensor._wrap(StridedArray(np.ones(sizes, as_dtype(dtype or "float32").numpy)))


def count(tensor: Tensor) -> int:
    """How many elements the tensor has."""
    return int(np.prod(tensor.shape, dtype=np.int64))


def _elements(x: Any) -> int:
    """How many numbers a nest of tensors holds."""
    if type(x) is Tensor:
        return count(x)
    return sum(map(_elements, x.values() if isinstance(x, dict) else x)) if isinstance(x, (dict, list, tuple)) else 0


def shapes_of(x: Any, one: bool = False) -> Any:
    """Shapes of a tensor or of a nest of tensors; with ``one`` a nest of a single tensor gives its shape alone."""
    if type(x) is Tensor:
        return list(x.shape)
    if x is None:
        return None
    parts = [shapes_of(item, True) for item in x] if isinstance(x, (list, tuple)) else []
    return parts[0] if one and len(parts) == 1 else parts


def _table(lines: list[tuple[str, ...]], total: int, trainable: int, elements: tuple[int, int]) -> str:
    """The text; elements: how many numbers go in, and how many all layers give."""
    widths = [max(least, *(len(row[i]) for row in lines or [_COLUMNS])) for i, least in enumerate(_WIDTHS)]
    line = sum(widths) + 5
    rows = [" ".join(f"{cell:^{w}}" for cell, w in zip(row, widths, strict=True)) for row in (_COLUMNS, *lines)]
    counts = f"Total params: {total:,}\nTrainable params: {trainable:,}\nNon-trainable params: {total - trainable:,}"
    given, made, kept = (n * 4 / 2**20 for n in (elements[0], 2 * elements[1], total))
    sizes = (
        f"Input size (MB): {given:.2f}\nForward/backward pass size (MB): {made:.2f}\nParams size (MB): {kept:.2f}\n"
        f"Estimated Total Size (MB): {given + made + kept:.2f}"
    )
    parts = ["-" * line, rows[0], "=" * line, *rows[1:], "=" * line, counts, "-" * line, sizes, "-" * line, "\n"]
    return "\n".join(parts)
