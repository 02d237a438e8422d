"""``flops``: how many operations one forward pass of a network takes, layer by layer, counted as Paddle counts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.hapi.summary import count, inputs_of, leaves, record_calls, shapes_of
from argosy.nn.layer import Layer
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["flops"]

Rule = Callable[[Any, Any, Any], Any]
_COLUMNS = ("Layer Name", "Input Shape", "Output Shape", "Params", "Flops")


@validate_call
def flops(
    net: Layer, input_size: Any, custom_ops: Mapping[type, Rule] | None = None, print_detail: bool = False
) -> int:
    """The operations of one forward pass in evaluation mode. Prints which kinds of layers are counted, and the total;
    with ``print_detail`` a table.

    A multiplication with its addition counts as one; a convolution's bias as one for each output element; batch
    normalisation two for each element, pooling by average and LeakyReLU about one; other layers count 0.
    input_size: a shape, or a list of shapes. custom_ops: from layer classes to functions ``(layer, inputs, output)``
    which add to ``layer.total_ops`` or return the count. Raises TypeError for what is no Layer.
    """
    if not isinstance(net, Layer):
        raise TypeError(f"flops: net should be a Layer, got {type(net).__name__}")
    rules = {**_rules(), **(custom_ops or {})}
    _tell(leaves(net), rules, custom_ops or {})
    rows = []
    for layer, given, result in record_calls(net, inputs_of(input_size), leaves(net)):
        own = sum(count(p) for p in layer.parameters(include_sublayers=False))
        rows.append(
            (
                layer,
                _first_shape(given),
                _first_shape(result),
                own,
                _count(rules.get(type(layer)), layer, given, result),
            )
        )
    total = sum(row[-1] for row in rows)
    if print_detail:
        names = {id(layer): layer.full_name() for layer, *_ in rows}
        sys.stdout.write(_table([(names[id(layer)], *map(str, rest)) for layer, *rest in rows]))
    sys.stdout.write(f"Total Flops: {total}     Total Params: {sum(count(p) for p in net.parameters())}\n")
    return total


def _tell(layers: list[Layer], rules: Mapping[type, Rule], own: Mapping[type, Rule]) -> None:
    """Say of each kind of layer, once, how it is counted."""
    for kind in dict.fromkeys(map(type, layers)):
        if kind in own:
            sys.stdout.write(f"Customize Function has been applied to {kind}\n")
        elif kind in rules:
            sys.stdout.write(f"{kind}'s flops has been counted\n")
        else:
            sys.stdout.write(f"Cannot find suitable count function for {kind}. Treat it as zero FLOPs.\n")


def _count(rule: Rule | None, layer: Layer, given: Any, result: Any) -> int:
    if rule is None:
        return 0
    with _counter(layer) as counter:
        returned = rule(layer, given, result)
    return int(counter[0].item() if returned is None else returned)


@contextmanager
def _counter(layer: Layer) -> Iterator[list[Any]]:
    """``layer.total_ops`` while a rule runs; afterwards the list holds its value."""
    held: list[Any] = [Tensor._wrap(StridedArray(np.zeros(1, np.int64)))]
    layer.register_buffer("total_ops", held[0], persistable=False)
    try:
        yield held
        held[0] = layer._buffers["total_ops"]
    finally:
        del layer._buffers["total_ops"]
        layer._non_persistable_buffer_names_set.discard("total_ops")


def _rules() -> dict[type, Rule]:
    from argosy import nn  # which is read when it is first needed

    rules: dict[type, Rule] = {nn.Linear: _count_linear, nn.LeakyReLU: _elements}
    rules |= dict.fromkeys((nn.ReLU, nn.ReLU6, nn.Dropout), _count_zero)
    for dims in ("1D", "2D", "3D"):
        rules[getattr(nn, f"Conv{dims}")] = rules[getattr(nn, f"Conv{dims}Transpose")] = _convolution
        rules[getattr(nn, f"AvgPool{dims}")] = _outputs
        rules[getattr(nn, f"AdaptiveAvgPool{dims}")] = _adaptive
        rules[getattr(nn, f"BatchNorm{dims}")] = _count_normalization
    return {**rules, nn.BatchNorm: _count_normalization}


def _count_linear(layer: Any, given: Any, result: Any) -> int:
    return count(result) * int(layer.weight.shape[0])


def _convolution(layer: Any, given: Any, result: Any) -> Any:
    reached = int(given[0].shape[1]) // layer._groups * prod(layer.weight.shape[2:])
    return count(result) * (reached + (layer.bias is not None))


def _count_normalization(layer: Any, given: Any, result: Any) -> int:
    return 2 * count(result)


def _count_zero(layer: Any, given: Any, result: Any) -> int:
    return 0


def _elements(layer: Any, given: Any, result: Any) -> int:
    return count(given[0])


def _outputs(layer: Any, given: Any, result: Any) -> int:
    return count(result)


def _adaptive(layer: Any, given: Any, result: Any) -> int:
    window: int = prod(a // b for a, b in zip(given[0].shape[2:], result.shape[2:], strict=True))
    return count(result) * (window + 1)


def _first_shape(nest: Any) -> Any:
    """The shape of the first tensor."""
    shapes = shapes_of(nest)
    return shapes[0] if shapes and isinstance(shapes[0], list) else shapes


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in (_COLUMNS, *rows)) + 2 for i in range(len(_COLUMNS))]
    rule = "+" + "+".join("-" * width for width in widths) + "+"
    lines = [
        "|" + "|".join(cell.center(width) for cell, width in zip(row, widths, strict=True)) + "|"
        for row in (_COLUMNS, *rows)
    ]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule, ""])
