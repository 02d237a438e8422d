"""Factors of a product's inputs, folded into what makes these inputs: the scale of a normalisation, the outputs of the
linear layer before (Lin et al.'s AWQ and Xiao et al.'s SmoothQuant do so). Nothing is left to multiply when the program
runs, and files of other tools, which hold no factors, can hold the weights.

Dataflow finds what makes the inputs: a norm, a product with one side linear in a layer, attention, whose values a layer
makes. A value that anything else uses, too, is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from argosy_infer.weights import WeightProduct
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir.program import Program
from argosy_pir.values import OpResult, Value
from argosy_tensorcore.dtype import as_dtype

__all__ = ["Producer", "find_producers"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Place:
    """A state whose entries along ``axis``, ``added`` to them, multiply channels or are added to them."""

    name: str
    axis: int
    added: float = 0.0


@dataclass(frozen=True)
class Producer:
    """What makes inputs [in] of products: ``places`` that hold its channels, and the channel that each input is, or is
    a sum of (heads that share values have the same ones)."""

    places: tuple[_Place, ...]
    channels: Array

    def pool(self, values: Array, combine: np.ufunc) -> Array:
        """``values`` [in] combined over the inputs of each channel, [in] again."""
        made = np.full(int(self.channels.max()) + 1, 0.0 if combine is np.add else values.min(), values.dtype)
        combine.at(made, self.channels, values)
        pooled: Array = made[self.channels]
        return pooled

    def scale(self, states: dict[str, Array], given: Array) -> None:
        """Multiply the channels with the factors ``given`` [in] of their inputs."""
        factors = np.ones(int(self.channels.max()) + 1, np.float32)
        factors[self.channels] = given
        for place in self.places:  # integers stay, their scales change
            name, axis = (place.name, place.axis) if place.name in states else (f"{place.name}.scales", -1)
            array = states[name]
            spread = factors.reshape([-1 if i == axis % array.ndim else 1 for i in range(array.ndim)])
            wide = (array.astype(np.float32) + np.float32(place.added)) * spread - np.float32(place.added)
            states[name] = wide.astype(array.dtype)


def find_producers(program: Program, products: Sequence[WeightProduct]) -> dict[Value, Producer]:
    """What makes the inputs of products, by the inputs; only where all that uses them is among ``products``."""
    names: dict[Value, str] = {state.argument: state.name for state in program.states}
    by_inputs: dict[Value, set[Any]] = {}
    for product in products:
        by_inputs.setdefault(product.x, set()).add(product.op)
    found = {}
    for x, ops in by_inputs.items():
        if set(x.users) == ops and (made := _Search(names).producer(x)):
            found[x] = made
    return found


class _Search:
    """Goes from inputs back to the states that their channels are linear in."""

    def __init__(self, names: Mapping[Value, str]) -> None:
        self.names = names

    def producer(self, x: Value) -> Producer | None:
        """What makes ``x`` [..., in]; None where dataflow does not tell."""
        if not isinstance(x, OpResult) or not isinstance(x.shape[-1], int):
            return None
        find = _FOUND.get(x.op.name)
        return None if find is None else find(self, x, _operands(x))

    def norm(self, x: OpResult, given: Mapping[str, Any]) -> Producer | None:
        """A normalisation over the last axis, by its scale and its shift."""
        weight, bias = given.get("weight"), given.get("bias")
        return None if weight is None or weight.ndim != 1 else self._of_states(x, [(weight, 0), (bias, 0)])

    def linear(self, x: OpResult, given: Mapping[str, Any]) -> Producer | None:
        """A linear layer or product, by its outputs."""
        weight = given["weight"] if "weight" in given else given["y"]
        if weight.ndim != 2 or given.get("transpose_x"):
            return None
        return self._of_states(x, [(weight, 0 if given.get("transpose_y") else 1), (given.get("bias"), 0)])

    def multiply(self, x: OpResult, given: Mapping[str, Any]) -> Producer | None:
        """A gated perceptron: one side is linear in a layer before."""
        sides = (given["x"], given["y"])
        if sides[0] is sides[1]:
            return None
        of_sides = (self._inner(side) for side in sides if side.shape == x.shape)
        return next((made for made in of_sides if made is not None), None)

    def reshape(self, x: OpResult, given: Mapping[str, Any]) -> Producer | None:
        """Heads side by side, [..., heads, width] as [..., heads * width]: attention sums values channel by channel."""
        heads = given["x"]
        if not _is_alone(heads) or heads.op.name != "phi.scaled_dot_product_attention" or heads.ndim != 4:
            return None
        if x.ndim != 3 or x.shape[2] != heads.shape[2] * heads.shape[3]:
            return None
        value = _operands(heads)["value"]
        if not _is_alone(value) or value.op.name != "phi.reshape" or value.ndim != 4:
            return None
        flat = _operands(value)["x"]
        if flat.ndim != 3 or flat.shape[2] != value.shape[2] * value.shape[3]:
            return None
        made, group = self._inner(flat), heads.shape[2] // value.shape[2]
        if made is None:
            return None
        by_head = made.channels.reshape(value.shape[2], value.shape[3])
        return replace(made, channels=np.repeat(by_head, group, axis=0).reshape(-1))

    def _inner(self, value: Value) -> Producer | None:
        return self.producer(value) if _is_alone(value) else None

    def _of_states(self, x: OpResult, operands: Sequence[tuple[Value | None, int]]) -> Producer | None:
        width = x.shape[-1]
        assert isinstance(width, int)
        places = [self._place(value, axis) for value, axis in operands if value is not None]
        whole = tuple(place for place in places if place is not None)
        return Producer(whole, np.arange(width)) if len(whole) == len(places) else None

    def _place(self, value: Value, axis: int) -> _Place | None:
        """A state that nothing else reads, or one that a number is added to."""
        if sum(user.name != "builtin.return" for user in value.users) != 1:
            return None
        if value in self.names:
            return _Place(self.names[value], axis)
        if not isinstance(value, OpResult) or value.op.name != "phi.add":
            return None
        given = _operands(value)
        for state, other in ((given["x"], given["y"]), (given["y"], given["x"])):
            added, inner = _number(other), self._place(state, axis) if state in self.names else None
            if added is not None and inner is not None:
                return replace(inner, added=added)
        return None


_FOUND: dict[str, Callable[[_Search, OpResult, Mapping[str, Any]], Producer | None]] = {
    "phi.rms_norm": _Search.norm, "phi.layer_norm": _Search.norm, "phi.linear": _Search.linear,
    "phi.matmul": _Search.linear, "phi.multiply": _Search.multiply, "phi.reshape": _Search.reshape,
}  # fmt: skip


def _operands(value: OpResult) -> Mapping[str, Any]:
    return get_operator(value.op.kind).signature.regroup(value.op.operands, value.op.attributes)


def _is_alone(value: Value) -> bool:
    """Whether an operation makes a value that one other operation reads once."""
    if not isinstance(value, OpResult):
        return False
    users = list(value.users)
    return len(users) == 1 and sum(operand is value for operand in users[0].operands) == 1


def _number(value: Value) -> float | None:
    """A constant's only element."""
    if not isinstance(value, OpResult) or value.op.name != "builtin.constant" or value.ndim:
        return None
    dense: Any = value.op.attributes["value"]
    return float(np.frombuffer(dense.data, as_dtype(dense.type.dtype).numpy)[0])
