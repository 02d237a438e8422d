"""Recurrent layers: one scan over time for each direction.

Legend: T steps, N samples, I input features, H hidden units, G = gates * H, D directions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy_infer.onnx.registry import onnx_operator
from argosy_infer.onnx.tensors import on_values, phi, shape_of
from argosy_infer.onnx.tensors import prim as tensor_prim
from argosy_phi_ops import prim
from argosy_phi_ops.ops.common.loops import scan

Activation = Callable[[Any], Any]
Step = Callable[[Any, Sequence[Any]], Sequence[Any]]
"""(what the input gives the gates [N, G], states [N, H]) -> new states, the output first."""


def _activation(name: str, alpha: float | None, beta: float | None) -> Activation:
    """The function of ONNX's list, by its name in any case."""
    a, b = alpha, beta
    table: dict[str, Activation] = {
        "sigmoid": prim.logistic,
        "tanh": prim.tanh,
        "relu": lambda x: prim.maximum(x, 0),
        "affine": lambda x: prim.add(prim.mul(x, _or(a, 1.0)), _or(b, 0.0)),
        "leakyrelu": lambda x: prim.select(prim.lt(x, 0), prim.mul(x, _or(a, 0.01)), x),
        "thresholdedrelu": lambda x: prim.select(prim.gt(x, _or(a, 1.0)), x, prim.mul(x, 0.0)),
        "scaledtanh": lambda x: prim.mul(prim.tanh(prim.mul(x, _or(b, 1.0))), _or(a, 1.0)),
        "hardsigmoid": lambda x: prim.maximum(prim.minimum(prim.add(prim.mul(x, _or(a, 0.2)), _or(b, 0.5)), 1.0), 0.0),
        "elu": lambda x: prim.select(prim.lt(x, 0), prim.mul(prim.expm1(x), _or(a, 1.0)), x),
        "softsign": lambda x: prim.div(x, prim.add(prim.abs(x), 1.0)),
        "softplus": lambda x: prim.add(prim.maximum(x, 0.0), prim.log1p(prim.exp(prim.neg(prim.abs(x))))),
    }
    if name.lower() not in table:
        raise NotImplementedError(f"the activation {name!r}")
    return table[name.lower()]


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _activations(
    names: Any, alphas: Any, betas: Any, default: Sequence[str], directions: int
) -> list[list[Activation]]:
    """The functions of each direction."""
    names = list(names or list(default) * directions)
    wanted = [
        _activation(name, *(each[i] if each and i < len(each) else None for each in (alphas, betas)))
        for i, name in enumerate(names)
    ]
    count = len(default)
    return [wanted[i * count : (i + 1) * count] for i in range(directions)]


def _product(x: Any, w: Any) -> Any:
    """``x w^T``."""
    return prim.dot_general(x, w, lhs_contract=(x.ndim - 1,), rhs_contract=(1,))


def _part(x: Any, i: int, count: int) -> Any:
    """Part ``i`` of the last axis of ``x`` [N, count * H], or of [count * H]."""
    *outer, width = x.shape
    size = width // count
    zeros = (0,) * len(outer)
    return prim.slice(x, start=(*zeros, i * size), limit=(*outer, (i + 1) * size), stride=(1,) * (len(outer) + 1))


def _rows(x: Any, i: int, count: int) -> Any:
    size = x.shape[0] // count
    return prim.slice(x, start=(i * size, 0), limit=((i + 1) * size, x.shape[1]), stride=(1, 1))


def _run(step: Step, gates: Any, states: Sequence[Any], lengths: Any, reverse: bool) -> tuple[list[Any], list[Any]]:
    """The outputs [T, N, H], 0 after a sample's end, and the last states."""
    shape = gates.shape[:2]
    xs = [gates]
    if lengths is not None:
        steps = prim.iota(shape=shape, axis=0, dtype=lengths.dtype)
        xs.append(prim.lt(steps, prim.broadcast(lengths, shape=shape, axes=(1,))))

    def body(slices: Sequence[Any], carried: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        new = step(slices[0], carried)
        if lengths is None:
            return [new[0]], new
        masks = prim.broadcast(slices[1], shape=new[0].shape, axes=(0,))
        kept = [prim.select(masks, n, old) for n, old in zip(new, carried, strict=True)]
        return [prim.select(masks, new[0], 0.0)], kept

    return scan(body, xs, states, reverse)


def _clipped(x: Any, clip: float | None) -> Any:
    return x if clip is None else prim.maximum(prim.minimum(x, clip), -clip)


def _layer(
    make: Callable[..., Any], default: Sequence[str], x: Any, w: Any, r: Any, bias: Any, lengths: Any,
    states: Sequence[Any], extra: Any, *, activations: Any, alphas: Any, betas: Any, clip: Any, direction: str,
    layout: int,
) -> list[Any]:  # fmt: skip
    """All directions: outputs [T, D, N, H] and the last states [D, N, H], batch first by `layout` 1.

    ``make(gates of the input, r, bias, functions, clip, extra)`` gives the gates with what is added to all steps, and
    the step.
    """
    if layout:
        x = tensor_prim.transpose(x, permutation=(1, 0, 2))
        states = [s if s is None else tensor_prim.transpose(s, permutation=(1, 0, 2)) for s in states]
    directions, hidden, batch = shape_of(w)[0], shape_of(r)[2], shape_of(x)[1]
    functions = _activations(activations, alphas, betas, default, directions)
    states = [phi.full([directions, batch, hidden], 0.0, x.payload.dtype.name) if s is None else s for s in states]
    found = []
    for i in range(directions):
        own = [_direction(each, i) for each in (w, r, bias, extra, *states)]
        reverse = i == 1 or direction == "reverse"
        run = _Direction(make, functions[i], clip, reverse, [each is not None for each in (*own[2:4], lengths)])
        found.append(on_values(run, x, *(each for each in (*own, lengths) if each is not None)))
    outputs, *last = (phi.stack(list(parts), 1 if i == 0 else 0) for i, parts in enumerate(zip(*found, strict=True)))
    if layout:
        outputs = tensor_prim.transpose(outputs, permutation=(2, 0, 1, 3))
        last = [tensor_prim.transpose(each, permutation=(1, 0, 2)) for each in last]
    return [outputs, *last]


def _direction(x: Any, i: int) -> Any:
    return None if x is None else phi.squeeze(phi.slice(x, [0], [i], [i + 1]), 0)


class _Direction:
    """One direction on IR values: x, w, r, then bias, peepholes, states and lengths, of which some may be missing."""

    def __init__(self, make: Any, functions: Any, clip: Any, reverse: bool, given: Sequence[bool]) -> None:
        self.make, self.functions, self.clip, self.reverse, self.given = make, functions, clip, reverse, given

    def __call__(self, x: Any, w: Any, r: Any, *rest: Any) -> list[Any]:
        left = list(rest)
        bias, extra = (left.pop(0) if there else None for there in self.given[:2])
        lengths = left.pop() if self.given[2] else None
        gates, step = self.make(_product(x, w), r, bias, self.functions, self.clip, extra)
        outputs, last = _run(step, gates, left, lengths, self.reverse)
        return [outputs[0], *last]


def _with_bias(gates: Any, bias: Any) -> Any:
    return gates if bias is None else prim.add(gates, prim.add(_part(bias, 0, 2), _part(bias, 1, 2)))


def _rnn(gates: Any, r: Any, bias: Any, functions: Sequence[Activation], clip: Any, extra: Any) -> Any:
    def step(given: Any, states: Sequence[Any]) -> Sequence[Any]:
        return [functions[0](_clipped(prim.add(given, _product(states[0], r)), clip))]

    return _with_bias(gates, bias), step


def _lstm(gates: Any, r: Any, bias: Any, functions: Sequence[Activation], clip: Any, peepholes: Any) -> Any:
    """Gates i, o, f, c; ``peepholes`` [3 H] for i, o, f."""
    f, g, h = functions

    def seen(x: Any, cell: Any, i: int) -> Any:
        return x if peepholes is None else prim.add(x, prim.mul(_part(peepholes, i, 3), cell))

    def step(given: Any, states: Sequence[Any]) -> Sequence[Any]:
        whole = prim.add(given, _product(states[0], r))
        i, o, forget, c = (_part(whole, k, 4) for k in range(4))
        cell = states[1]
        kept = prim.mul(f(_clipped(seen(forget, cell, 2), clip)), cell)
        new = prim.add(kept, prim.mul(f(_clipped(seen(i, cell, 0), clip)), g(_clipped(c, clip))))
        return [prim.mul(f(_clipped(seen(o, new, 1), clip)), h(new)), new]

    return _with_bias(gates, bias), step


def _gru(linear_before_reset: int) -> Callable[..., Any]:
    """Gates z, r, h."""

    def make(gates: Any, r: Any, bias: Any, functions: Sequence[Activation], clip: Any, extra: Any) -> Any:
        f, g = functions
        inner = None if bias is None else _part(bias, 1, 2)
        outer = gates if bias is None else prim.add(gates, _part(bias, 0, 2))
        open_rows, new_rows = prim.concat(_rows(r, 0, 3), _rows(r, 1, 3), axis=0), _rows(r, 2, 3)

        def biased(x: Any, i: int) -> Any:
            return x if inner is None else prim.add(x, _part(inner, i, 3))

        def step(given: Any, states: Sequence[Any]) -> Sequence[Any]:
            h = states[0]
            both = _product(h, open_rows)
            z, reset = (f(_clipped(prim.add(_part(given, i, 3), biased(_part(both, i, 2), i)), clip)) for i in (0, 1))
            if linear_before_reset:
                fresh = prim.mul(reset, biased(_product(h, new_rows), 2))
            else:
                fresh = biased(_product(prim.mul(reset, h), new_rows), 2)
            new = g(_clipped(prim.add(_part(given, 2, 3), fresh), clip))
            return [prim.add(prim.mul(prim.sub(1.0, z), new), prim.mul(z, h))]

        return outer, step

    return make


@onnx_operator("RNN", folds=False)
def rnn(
    x: Any, w: Any, r: Any, b: Any = None, sequence_lens: Any = None, initial_h: Any = None, *,
    activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None, clip: float | None = None,
    direction: str = "forward", hidden_size: int = 0, layout: int = 0,
) -> Any:  # fmt: skip
    """``h = f(W x + R h + b)``."""
    return _layer(
        _rnn, ("Tanh",), x, w, r, b, sequence_lens, [initial_h], None, activations=activations,
        alphas=activation_alpha, betas=activation_beta, clip=clip, direction=direction, layout=layout,
    )  # fmt: skip


@onnx_operator("GRU", folds=False)
def gru(
    x: Any, w: Any, r: Any, b: Any = None, sequence_lens: Any = None, initial_h: Any = None, *,
    activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None, clip: float | None = None,
    direction: str = "forward", hidden_size: int = 0, layout: int = 0, linear_before_reset: int = 0,
) -> Any:  # fmt: skip
    """Gated recurrent units (Cho et al., 2014)."""
    return _layer(
        _gru(linear_before_reset), ("Sigmoid", "Tanh"), x, w, r, b, sequence_lens, [initial_h], None,
        activations=activations, alphas=activation_alpha, betas=activation_beta, clip=clip, direction=direction,
        layout=layout,
    )  # fmt: skip


@onnx_operator("LSTM", folds=False)
def lstm(
    x: Any, w: Any, r: Any, b: Any = None, sequence_lens: Any = None, initial_h: Any = None, initial_c: Any = None,
    p: Any = None, *, activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None,
    clip: float | None = None, direction: str = "forward", hidden_size: int = 0, input_forget: int = 0, layout: int = 0,
) -> Any:  # fmt: skip
    """Long short-term memory with peepholes (Gers et al., 2000)."""
    if input_forget:
        raise NotImplementedError("LSTM with input_forget")
    return _layer(
        _lstm, ("Sigmoid", "Tanh", "Tanh"), x, w, r, b, sequence_lens, [initial_h, initial_c], p,
        activations=activations, alphas=activation_alpha, betas=activation_beta, clip=clip, direction=direction,
        layout=layout,
    )  # fmt: skip
