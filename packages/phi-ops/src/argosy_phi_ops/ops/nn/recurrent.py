"""Recurrent networks over whole sequences: one direction of one layer, as a scan over time.

Legend: T steps, N samples, I input features, H hidden units, P projected units (H without projection), G = gates * H.
The part of the gates that comes from the inputs is one product for all steps, before the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import section
from argosy_phi_ops.ops.common.loops import scan
from argosy_tensorcore.tensor import Tensor

Cell = Callable[[Any, Sequence[Any]], tuple[Any, ...]]
"""(gates of the input [N, G], states) -> new states, of which the first is the output."""


def _check(name: str, x: Tensor, weight_ih: Tensor, weight_hh: Tensor, states: Sequence[Tensor], gates: int) -> None:
    if x.ndim != 3 or weight_ih.ndim != 2 or x.shape[2] != weight_ih.shape[1]:
        raise ShapeError(f"{name} takes x [time, batch, input] and weight_ih [{gates} * hidden, input]")
    if any(s.ndim != 2 or s.shape[0] != x.shape[1] for s in states):
        raise ShapeError(f"{name}: initial states are [batch, units] with the batch of x {x.type}")
    rows, units = weight_ih.shape[0], states[-1].shape[1]
    known = isinstance(rows, int) and isinstance(units, int)
    if weight_hh.shape != (rows, states[0].shape[1]) or (known and rows != gates * units):
        raise ShapeError(f"{name}: weight_hh {weight_hh.type} does not fit weight_ih {weight_ih.type} and the state")


def _affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    """``x weight^T + bias`` over the last axis of `x`."""
    product = prim.dot_general(x, weight, lhs_contract=(x.ndim - 1,), rhs_contract=(1,))
    return product if bias is None else prim.add(product, bias)


def _parts(gates: Any, count: int, width: Any) -> list[Any]:
    return [section(gates, 1, i * width, (i + 1) * width) for i in range(count)]


def _over_time(
    cell: Cell, gates: Any, states: Sequence[Any], length: Tensor | None, reverse: bool, zero_padding: bool
) -> tuple[Any, ...]:
    """The outputs [T, N, P] and the last states. A sample keeps its states from step ``length`` on."""
    xs = [gates] if length is None else [gates, _step_mask(gates, length)]

    def step(slices: Sequence[Any], carried: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        new = list(cell(slices[0], carried))
        if length is None:
            return [new[0]], new
        masks = [prim.broadcast(slices[1], shape=s.shape, axes=(0,)) for s in new]
        kept = [prim.select(m, n, old) for m, n, old in zip(masks, new, carried, strict=True)]
        return [prim.select(masks[0], new[0], 0.0) if zero_padding else new[0]], kept

    outputs, last = scan(step, xs, states, reverse)
    return (outputs[0], *last)


def _step_mask(gates: Any, length: Tensor) -> Any:
    """[T, N]: which steps of each sample are no padding."""
    shape = gates.shape[:2]
    steps = prim.iota(shape=shape, axis=0, dtype=length.dtype)
    return prim.lt(steps, prim.broadcast(length, shape=shape, axes=(1,)))


@operator()
def simple_rnn(
    x: Tensor,
    h: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    length: Tensor | None = None,
    activation: str = "tanh",
    reverse: bool = False,
    zero_padding: bool = True,
) -> tuple[Tensor, Tensor]:
    """``h = activation(W_ih x + b_ih + W_hh h + b_hh)`` over time (Elman, 1990): outputs [T, N, H] and the last state.

    x [T, N, I], h [N, H], weight_ih [H, I], weight_hh [H, H], biases [H]. From step ``length`` [N] (integers) on a
    sample keeps its state, and its outputs are 0 with `zero_padding`. `reverse` goes from the last step to the first.
    `activation` is "tanh" or "relu".
    """
    if activation not in ("tanh", "relu"):
        raise ValueError(f"simple_rnn: activation is 'tanh' or 'relu', got {activation!r}")
    _check("simple_rnn", x, weight_ih, weight_hh, [h], 1)

    def cell(gates: Any, states: Sequence[Any]) -> tuple[Any]:
        total = prim.add(gates, _affine(states[0], weight_hh, bias_hh))
        return (prim.tanh(total) if activation == "tanh" else prim.maximum(total, 0.0),)

    outputs, last = _over_time(cell, _affine(x, weight_ih, bias_ih), [h], length, reverse, zero_padding)
    return outputs, last


@operator()
def lstm(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    weight_ho: Tensor | None = None,
    length: Tensor | None = None,
    reverse: bool = False,
    zero_padding: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """Long short-term memory over time (Hochreiter and Schmidhuber, 1997): outputs [T, N, P], the last h and c.

    Gates i, f, g, o in this order. x [T, N, I], h [N, P], c [N, H], weight_ih [4 H, I], weight_hh [4 H, P], biases
    [4 H]; weight_ho [H, P] projects h. `length`, `reverse` and `zero_padding` as in :func:`simple_rnn`.
    """
    _check("lstm", x, weight_ih, weight_hh, [h, c], 4)

    def cell(gates: Any, states: Sequence[Any]) -> tuple[Any, Any]:
        hidden, memory = states
        enter, keep, new, leave = _parts(prim.add(gates, _affine(hidden, weight_hh, bias_hh)), 4, c.shape[1])
        memory = prim.add(prim.mul(prim.logistic(keep), memory), prim.mul(prim.logistic(enter), prim.tanh(new)))
        hidden = prim.mul(prim.logistic(leave), prim.tanh(memory))
        if weight_ho is not None:
            hidden = prim.dot_general(hidden, weight_ho, lhs_contract=(1,), rhs_contract=(0,))
        return hidden, memory

    outputs, h, c = _over_time(cell, _affine(x, weight_ih, bias_ih), [h, c], length, reverse, zero_padding)
    return outputs, h, c


@operator()
def gru(
    x: Tensor,
    h: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    length: Tensor | None = None,
    reverse: bool = False,
    zero_padding: bool = True,
) -> tuple[Tensor, Tensor]:
    """Gated recurrent units over time (Cho et al., 2014): outputs [T, N, H] and the last state.

    Gates r, z and candidate in this order, the reset gate after the product. x [T, N, I], h [N, H], weight_ih
    [3 H, I], weight_hh [3 H, H], biases [3 H]. `length`, `reverse` and `zero_padding` as in :func:`simple_rnn`.
    """
    _check("gru", x, weight_ih, weight_hh, [h], 3)

    def cell(gates: Any, states: Sequence[Any]) -> tuple[Any]:
        x_r, x_z, x_c = _parts(gates, 3, h.shape[1])
        h_r, h_z, h_c = _parts(_affine(states[0], weight_hh, bias_hh), 3, h.shape[1])
        keep = prim.logistic(prim.add(x_z, h_z))
        candidate = prim.tanh(prim.add(x_c, prim.mul(prim.logistic(prim.add(x_r, h_r)), h_c)))
        return (prim.add(prim.mul(prim.sub(states[0], candidate), keep), candidate),)

    outputs, last = _over_time(cell, _affine(x, weight_ih, bias_ih), [h], length, reverse, zero_padding)
    return outputs, last


def _weights(rng: np.random.Generator, gates: int) -> list[Any]:
    """weight_ih, weight_hh and biases for 3 inputs and 2 hidden units."""
    return [rng.standard_normal(shape) for shape in ((2 * gates, 3), (2 * gates, 2), (2 * gates,), (2 * gates,))]


@simple_rnn.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x, h = rng.standard_normal((4, 2, 3)), rng.standard_normal((2, 2))
    yield Sample(x, h, *_weights(rng, 1))
    yield Sample(x, h, *_weights(rng, 1), np.array([2, 4]), reverse=True)
    yield Sample(x, h, *_weights(rng, 1)[:2], activation="relu")


@lstm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x, h, c = (rng.standard_normal(shape) for shape in ((4, 2, 3), (2, 2), (2, 2)))
    yield Sample(x, h, c, *_weights(rng, 4))
    yield Sample(x, h, c, *_weights(rng, 4), length=np.array([3, 0]), reverse=True, zero_padding=False)
    weight_ih, _, bias, _ = _weights(rng, 4)
    yield Sample(x, h[:, :1], c, weight_ih, rng.standard_normal((8, 1)), bias, None, rng.standard_normal((2, 1)))


@gru.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x, h = rng.standard_normal((4, 2, 3)), rng.standard_normal((2, 2))
    yield Sample(x, h, *_weights(rng, 3))
    yield Sample(x, h, *_weights(rng, 3), np.array([1, 3], np.int32))
