"""The tape: what eager execution records for reverse mode.

Each operator applied to a tensor that wants gradients leaves a node: its sequence number, the operator, edges
to the nodes that made its operands, and the data that its derivative will read with the versions it had. Nodes
are the only thing that keeps the history of a tensor alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_autograd import hooks
from argosy_autograd.errors import DifferentiationError
from argosy_autograd.recipes import (
    Recipe,
    as_array,
    complete,
    derive,
    or_zeros,
    present,
    recipe_of,
    recipe_of_application,
)
from argosy_phi_ops.eager.dispatch import bind
from argosy_phi_ops.eager.native import remember
from argosy_phi_ops.eager.recording import Recorder
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_autograd.derivatives import Derivative

__all__ = ["Edge", "Node", "OperatorNode", "Tape", "ZeroNode", "edge_of"]

Edge = tuple[Any, int]
"""Where a gradient goes: (node, number of the result), or (leaf tensor, 0)."""

_sequence = count(1)
_new = object.__new__
_NOTHING: dict[int, Any] = {}


def edge_of(x: Any) -> Edge | None:
    """Where the gradient of an operand goes; None when it wants none."""
    if type(x) is not Tensor or x.stop_gradient or x.payload.dtype.kind not in "fc":
        return None
    node = x._node
    return (x, 0) if node is None else (node, x._slot)


class Node:
    """A step back. ``edges`` has one entry for each operand; ``hooks`` and ``retained`` belong to results by
    number. ``on_tensors``: its data is no array here, so gradients pass it as tensors: True for distributed ones, or
    the device that they are on. ``waiting`` belongs to the native backward pass."""

    __slots__ = (
        "__weakref__", "edges", "hooks", "name", "on_tensors", "results", "retained", "sequence", "waiting",
    )  # fmt: skip

    def __init__(self, name: str, edges: Sequence[Edge | None], results: Sequence[Tensor]) -> None:
        self.sequence = next(_sequence)
        self.name = name
        self.edges: Sequence[Edge | None] | None = edges
        self.results = len(results)
        self.on_tensors: Any = False
        self.hooks: dict[int, dict[int, Any]] | None = None
        self.retained: dict[int, Any] | None = None
        for slot, result in enumerate(results):
            if not result.stop_gradient:
                result._node = self
                result._slot = slot

    def onward(self, slot: int) -> Sequence[Edge | None]:
        """The edges that result ``slot`` depends on."""
        return self.edges or ()

    def pull_arrays(self, grads: list[Any]) -> Sequence[Any]:
        """Gradients of the operands (None for zero) from those of the results, as arrays."""
        raise NotImplementedError

    def pull_tensors(self, grads: list[Any]) -> Sequence[Any]:
        """The same on tensors, recorded, for derivatives of higher order."""
        raise NotImplementedError

    def release(self) -> None:
        """Let go of the history before this node."""
        self.edges = None

    def check_alive(self) -> None:
        """Raise where an earlier backward pass has freed this node."""
        if self.edges is None:
            raise DifferentiationError(
                f"going back through {self.name} a second time: the graph was freed by the first backward pass; "
                "give it retain_graph=True"
            )

    def __repr__(self) -> str:
        return f"<Node {self.sequence} {self.name}>"


class OperatorNode(Node):
    """The node of an operator application. ``saved`` holds what ``recipe.keeps`` names, with its version.

    Native code leaves ``edges`` unset: they lead to the first result of ``before``, and where there is a second
    operand of ``other``, each a node, a leaf or None. They are made when Python looks.
    """

    __slots__ = ("before", "other", "recipe", "saved")
    before: Any
    other: Any

    def __init__(self, op: Any, operands: Sequence[Any], attributes: dict[str, Any], results: Sequence[Tensor]) -> None:
        edges = tuple([edge_of(x) for x in operands])
        types = [(x.payload.dtype, x.payload.shape) if type(x) is Tensor else type(x) for x in operands]
        recipe = recipe_of(op, types, attributes, tuple([edge is not None for edge in edges]))
        self._fill(recipe, edges, operands, results)

    def _fill(self, recipe: Recipe, edges: Sequence[Edge | None], operands: Sequence[Any], results: Any) -> None:
        self.recipe = recipe
        super().__init__(recipe.name, edges, results)
        self.saved: Sequence[Any] | None = _save_all(recipe.keeps, operands, results)
        if recipe.missing:
            _note_line(self)

    @staticmethod
    def from_application(application: Any, operands: Sequence[Any], results: Sequence[Tensor]) -> OperatorNode:
        """The node of an application that looks like earlier ones: its recipe is found in ``application.recipes``."""
        edges = [edge_of(x) for x in operands]
        wants = tuple([edge is not None for edge in edges])
        recipe = application.recipes.get(wants)
        if recipe is None:
            recipe = application.recipes[wants] = recipe_of_application(application, wants)
        node = _new(OperatorNode)
        node._fill(recipe, edges, operands, results)
        return node

    def __getattr__(self, name: str) -> Any:
        if name != "edges" or not hasattr(self, "before"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        onwards = (self.before, self.other) if hasattr(self, "other") else (self.before,)
        self.edges = edges = tuple([None if to is None else (to, 0) for to in onwards])
        self.before = self.other = None
        return edges

    def onward(self, slot: int) -> Sequence[Edge | None]:
        """See :class:`Node`; a derivative of several operands depends on some of them only."""
        reads = getattr(self.recipe.key[0], "reads", None)
        edges = self.edges or ()
        return edges if reads is None else [edges[i] for i in reads[slot]]

    def pull_arrays(self, grads: list[Any]) -> Sequence[Any]:
        """See :class:`Node`; by the registered kernel, or the derived program."""
        recipe = self.recipe
        if recipe.keeps:
            saved = self.unpack_saved()
        else:
            self.check_alive()
            saved = _NOTHING
        made: Sequence[Any] = recipe.run(grads, saved, recipe.attributes, recipe.key)
        return made

    def pull_tensors(self, grads: list[Any]) -> Sequence[Any]:
        """See :class:`Node`; applies the derived program as an operator, so that it is recorded in turn."""
        key = self.recipe.key
        rule = derive(key, self.recipe.attributes, present(key[0], grads))
        self.unpack_saved()
        count = len(key[1])
        device = self.on_tensors if self.on_tensors is not True and self.on_tensors else None
        tensors = [self._handle(i, rule) for i in rule.keeps]
        for i in rule.cotangents:
            g = grads[i]
            zeros = or_zeros(None, rule.types[count + i]) if g is None else None
            tensors.append(Tensor._wrap(StridedArray.from_array(zeros, device)) if g is None else g)
        made = bind(rule.operator, tensors, {}) if rule.operands else ()  # type: ignore[arg-type]
        found = complete(rule, made, key, grads)
        return [Tensor._wrap(StridedArray.from_array(g, device)) if type(g) is np.ndarray else g for g in found]

    def _handle(self, position: int, rule: Derivative) -> Tensor:
        """A saved operand or result as a tensor with its place in the graph."""
        assert self.saved is not None
        assert self.edges is not None
        value = hooks.unpack_saved(self.saved[self.recipe.keeps.index(position)])[0]
        count = len(self.edges)
        if position >= count:
            return tensor_at(value, (self, position - count), rule.types[position].dtype)
        return tensor_at(value, self.edges[position], rule.types[position].dtype)

    def unpack_saved(self) -> dict[int, Any]:
        """What was saved, checked against in-place changes."""
        self.check_alive()
        assert self.saved is not None
        found = {}
        for position, entry in zip(self.recipe.keeps, self.saved, strict=True):
            value, version = entry
            if type(value) is StridedArray:
                storage = value._storage
                if (0 if storage is None else storage.version) != version:
                    self._complain(position, value, version)
            else:
                value, version = hooks.unpack_saved(entry)
                if version is not None and value.version != version:
                    self._complain(position, value, version)
            found[position] = value
        return found

    def _complain(self, position: int, payload: Any, version: int) -> None:
        edges = self.edges or ()
        kind = f"operand {position}" if position < len(edges) else f"result {position - len(edges)}"
        edge = edges[position] if position < len(edges) else None
        name = f" ({edge[0].name})" if edge is not None and type(edge[0]) is Tensor else ""
        raise DifferentiationError(
            f"{kind}{name} of {self.name}, a {payload.dtype.name} tensor of shape {list(payload.shape)}, is needed "
            f"for the gradient but was changed in place: it is at version {payload.version}, version {version} was "
            "recorded. Change a clone() instead, or change it after backward()"
        )

    def release(self) -> None:
        """See :class:`Node`."""
        self.edges = self.saved = self.before = self.other = None


class ZeroNode(Node):
    """The node of a gradient that is zero, of something that depends on its operands: it still counts as doing so."""

    __slots__ = ()

    def pull_arrays(self, grads: list[Any]) -> Sequence[Any]:
        """See :class:`Node`; nothing comes of it."""
        self.check_alive()
        return [None] * len(self.edges or ())

    pull_tensors = pull_arrays


def _equivalent(
    op: Any, operands: Sequence[Any], attributes: dict[str, Any], results: Sequence[Tensor]
) -> tuple[Any, Sequence[Any], dict[str, Any]]:
    """What an operator without a decomposition turned out to be; itself where nobody says, so that backward fails."""
    equivalent = import_module("argosy_autograd.opaque_operators").EQUIVALENTS.get(op.name)
    found = None if equivalent is None else equivalent(operands, results)
    return (op, operands, attributes) if found is None else (*found, {})


def _note_line(node: Node) -> None:
    import_module("argosy_autograd.anomaly").note_line(node, True)


def _save_all(keeps: Sequence[int], operands: Sequence[Any], results: Sequence[Tensor]) -> tuple[Any, ...]:
    count = len(operands)
    return tuple([_save(operands[i] if i < count else results[i - count]) for i in keeps])


def _save(value: Any) -> Any:
    if type(value) is not Tensor:
        return value, None
    if hooks.has_saved_tensors_hooks():
        return hooks.pack_saved(value)
    payload = value.payload
    if type(payload) is StridedArray:
        storage = payload._storage
        return payload, 0 if storage is None else storage.version
    return payload, payload.version


def tensor_at(value: Any, edge: Edge | None, dtype: str) -> Tensor:
    """What was saved, as a tensor at ``edge`` of the graph; a number becomes one of ``dtype``."""
    if edge is not None and type(edge[0]) is Tensor:
        return edge[0]
    tensor = Tensor._wrap(value if hasattr(value, "is_traced") else StridedArray(as_array(value, dtype)), edge is None)
    if edge is not None:
        tensor._node, tensor._slot = edge
    return tensor


class Tape(Recorder):
    """What dispatch calls after each operator that has an operand with gradients. Native code makes nodes of the same
    type, with numbers of the same counter."""

    node_type = OperatorNode
    recipe_type = Recipe
    counter = _sequence

    def record(self, op: Any, operands: Sequence[Any], attributes: dict[str, Any], results: Sequence[Tensor]) -> None:
        """Leave a node for the application."""
        if op.opaque:
            op, operands, attributes = _equivalent(op, operands, attributes, results)
        OperatorNode(op, operands, attributes, results)

    def record_application(self, application: Any, operands: Sequence[Any], result: Tensor) -> None:
        """The same for an application that looks like an earlier one: its recipe is found, the rest is written out."""
        edges: list[Edge | None] = []
        wants = 0
        for x in operands:
            wants += wants
            if type(x) is not Tensor or x.stop_gradient:
                edges.append(None)
            else:
                wants += 1
                before = x._node
                edges.append((x, 0) if before is None else (before, x._slot))
        recipe = application.recipes.get(wants)
        if recipe is None:
            recipe = recipe_of_application(application, tuple([edge is not None for edge in edges]))
            application.recipes[wants] = recipe
            if not recipe.missing:
                remember(application, wants, recipe)
        node = _new(OperatorNode)
        node.sequence = next(_sequence)
        node.name = recipe.name
        node.recipe = recipe
        node.edges = edges
        node.results = 1
        node.hooks = node.retained = None
        node.on_tensors = False
        keeps = recipe.keeps
        if not keeps:
            node.saved = ()
        elif hooks.active:
            node.saved = _save_all(keeps, operands, (result,))
        else:
            node.saved = saved = []
            for i in keeps:
                x = operands[i] if i < len(operands) else result
                if type(x) is Tensor:
                    payload = x.payload
                    storage = payload._storage
                    saved.append((payload, 0 if storage is None else storage.version))
                else:
                    saved.append((x, None))
        result.stop_gradient = False
        result._node = node
        result._slot = 0
        if recipe.missing:
            _note_line(node)

    def record_several(self, application: Any, operands: Sequence[Any], results: Sequence[Tensor]) -> None:
        """The same for several results."""
        OperatorNode.from_application(application, operands, results)

    def rebind(self, target: Tensor, value: Tensor) -> None:
        """``target`` was overwritten with ``value``: its history is that of the value from now on."""
        target._node = value._node
        target._slot = value._slot
        target._gradient_blockers = value._gradient_blockers


recorder = Tape()
"""The one recorder: histories hang on tensors, so it has no state."""
