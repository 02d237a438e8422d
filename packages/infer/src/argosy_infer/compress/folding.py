"""Factors of a product's inputs, folded into what makes these inputs: the scale of a normalisation, the outputs of the
linear layer before (Lin et al.'s AWQ and Xiao et al.'s SmoothQuant do so). Nothing is left to multiply when the program
runs, and files of other tools, which hold no factors, can hold the weights.

Dataflow finds what makes the inputs: a norm, a product with one side linear in a layer, attention, whose values a layer
makes; of experts each has factors of its own there. Weights in floats that are multiplied with the same inputs (a
router, a layer that was skipped) are divided by the factors; inputs that anything else uses are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from argosy_infer.weights import WeightProduct
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.values import OpResult, Value
from argosy_tensorcore.dtype import as_dtype

__all__ = ["Producer", "find_producers"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Place:
    """A state whose entries along ``axis``, ``added`` to them, multiply channels or are added to them; where it has
    those of experts, along its first axis."""

    name: str
    axis: int
    added: float = 0.0

    def scale(self, states: dict[str, Array], factors: Array) -> None:
        """Multiply with ``factors`` [channels] or [experts, channels]. Integers stay, their scales change."""
        numbers = f"{self.name}.scales", f"{self.name}_scales"
        name = next(name for name in (self.name, *numbers) if name in states)
        array = states[name]
        axis = self.axis if name == self.name else array.ndim - 1
        spread = factors.reshape([
            n if i == axis or (i == 0 and factors.ndim > 1) else 1 for i, n in enumerate(array.shape)
        ])  # fmt: skip
        wide = (array.astype(np.float32) + np.float32(self.added)) * spread - np.float32(self.added)
        states[name] = wide.astype(array.dtype)


@dataclass(frozen=True, eq=False)
class Producer:
    """What makes inputs [in] of products: ``places`` that hold its ``size`` channels, and the channel that each input
    is, or is a sum of (heads that share values have the same ones). ``chosen``: the experts of a grouped product that
    makes them; each has channels of its own. ``readers`` are weights in floats that multiply the same inputs."""

    places: tuple[_Place, ...]
    size: int
    channels: Array
    chosen: Value | None = None
    readers: tuple[_Place, ...] = ()

    def pool(self, values: Array, combine: np.ufunc) -> Array:
        """``values`` [in] combined over the inputs of each channel, [in] again."""
        made = np.full(self.size, 0.0 if combine is np.add else values.min(), values.dtype)
        combine.at(made, self.channels, values)
        pooled: Array = made[self.channels]
        return pooled

    def scale(self, states: dict[str, Array], given: Array) -> None:
        """Multiply the channels with the factors ``given`` of their inputs, [in], or [experts, in] of experts; readers
        are divided by them."""
        factors = np.ones((*given.shape[:-1], self.size), np.float32)
        factors[..., self.channels] = given
        for place in self.places:
            place.scale(states, factors)
        for place in self.readers:
            place.scale(states, np.float32(1) / given)


def find_producers(program: Program, products: Sequence[WeightProduct]) -> dict[Value, Producer]:
    """What makes the inputs of products, by the inputs; only where all that uses them takes factors, too."""
    names: dict[Value, str] = {state.argument: state.name for state in program.states}
    search, by_source = _Search(names), dict[Value, list[WeightProduct]]()
    for product in products:
        by_source.setdefault(search.source(product.x), []).append(product)
    found = {}
    for source, members in by_source.items():
        readers = search.readers(source, {member.op: member.x for member in members})
        made = None if readers is None else search.producer(source)
        if made is None or readers is None:
            continue
        if made.chosen is not None and (readers or any(each.chosen is not made.chosen for each in members)):
            continue  # one expert's channels for another's inputs
        made = replace(made, readers=tuple(readers))
        found.update(dict.fromkeys((member.x for member in members), made))
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

    def source(self, x: Value) -> Value:
        """What has the channels of ``x`` before other shapes of it."""
        if self.producer(x) is None and isinstance(x, OpResult) and _keeps_channels(x):
            return self.source(_operands(x)["x"])
        return x

    def readers(self, x: Value, products: Mapping[Operation, Value]) -> list[_Place] | None:
        """The weights in floats that multiply ``x`` beside ``products`` (by operation, with their inputs); None where
        anything else uses it."""
        found: list[_Place] = []
        for user in dict.fromkeys(x.users):
            if products.get(user) is x:
                continue
            own = self._reader(user, x)
            if own is None and _keeps_channels(user.results[0] if user.results else x):
                own = self.readers(user.results[0], products)
            if own is None:
                return None
            found += own
        return found

    def _reader(self, op: Operation, x: Value) -> list[_Place] | None:
        """The weight that a linear layer or product multiplies ``x`` with."""
        if op.name not in ("phi.linear", "phi.matmul"):
            return None
        given = get_operator(op.kind).signature.regroup(op.operands, op.attributes)
        weight = given["weight"] if "weight" in given else given["y"]
        if given["x"] is not x or weight.ndim != 2 or given.get("transpose_x"):
            return None
        if _is_alone(weight) and weight.op.name == "phi.astype":  # routers of 16 bits choose in float32
            weight = _operands(weight)["x"]
        place = self._place(weight, 1 if given.get("transpose_y") else 0)
        return None if place is None or place.added else [place]

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

    def grouped(self, x: OpResult, given: Mapping[str, Any]) -> Producer | None:
        """A product with the matrices of experts, by its outputs."""
        made = (
            None if given.get("scale") is not None else self._of_states(x, [(given["weight"], 2), (given["bias"], 1)])
        )
        return None if made is None else replace(made, chosen=given["index"])

    def chunk(self, x: OpResult, given: Mapping[str, Any]) -> Producer | None:
        """Some of the channels that lie side by side."""
        whole = given["x"]
        if given["axis"] not in (-1, whole.ndim - 1) or (made := self._inner(whole)) is None:
            return None
        width = x.shape[-1]
        return replace(made, channels=made.channels[x.index * width : (x.index + 1) * width])

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
        return Producer(whole, width, np.arange(width)) if len(whole) == len(places) else None

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
    "phi.gather_mm": _Search.grouped, "phi.chunk": _Search.chunk,
}  # fmt: skip


_VIEWS = ("phi.reshape", "phi.unsqueeze", "phi.expand", "phi.astype")


def _operands(value: OpResult) -> Mapping[str, Any]:
    return get_operator(value.op.kind).signature.regroup(value.op.operands, value.op.attributes)


def _keeps_channels(x: Value) -> bool:
    """Whether a value is another shape or type of an operand, with the same last axis."""
    if not isinstance(x, OpResult) or x.op.name not in _VIEWS:
        return False
    before, after = _operands(x)["x"].shape, x.shape
    return bool(before and after) and isinstance(after[-1], int) and before[-1] == after[-1]


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
