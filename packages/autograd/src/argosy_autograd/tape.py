"""The tape: what eager execution records for reverse mode.

Each operator applied to a tensor that wants gradients leaves a node: its sequence number, the operator, edges
to the nodes that made its operands, and the data that its derivative will read with the versions it had. Nodes
are the only thing that keeps the history of a tensor alive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_autograd import hooks
from argosy_autograd.errors import DifferentiationError, MissingRule
from argosy_autograd.solutions import KERNELS
from argosy_phi_ops.dispatch import Recorder, bind
from argosy_phi_ops.hot import Counted, NativeKernel
from argosy_phi_ops.kept import Kept
from argosy_phi_ops.native import remember, way_back
from argosy_phi_ops.operator import attribute_key
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import ArrayType, Strided
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_autograd.derived import Derived

__all__ = ["Edge", "Node", "OperatorNode", "Tape", "ZeroNode", "by_program", "edge_of"]

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


def derive(key: tuple[Any, ...], attributes: dict[str, Any], present: frozenset[int] | None = None) -> Derived:
    """See :func:`argosy_autograd.derived.derive`, which loads the rules: programs that get by with kernels do
    not need them."""
    global _derive
    if _derive is None:
        _derive = import_module("argosy_autograd.derived").derive
    found: Derived = _derive(key, attributes, present)
    return found


_derive: Callable[..., Derived] | None = None


class Node:
    """A step back. ``edges`` has one entry for each operand; ``hooks`` and ``retained`` belong to results by
    number. ``on_tensors``: its data is no array here (distributed tensors), so gradients pass it as tensors.
    ``waiting`` belongs to the native backward pass."""

    __slots__ = (
        "__weakref__", "edges", "hooks", "name", "on_tensors", "results", "retained", "sequence", "waiting",
    )  # fmt: skip

    def __init__(self, name: str, edges: Sequence[Edge | None], results: Sequence[Tensor]) -> None:
        self.sequence = next(_sequence)
        self.name = name
        self.edges: Sequence[Edge | None] | None = edges
        self.results = len(results)
        self.on_tensors = False
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


class Recipe:
    """What all applications of an operator have in common whose operands have the same types and want the same
    gradients. ``key`` is what :func:`derive` takes; ``keeps`` are positions in (operands..., results...) of what is
    kept; ``run(grads, saved, attributes, key)`` is the hand-written derivative, else the derived program, either of
    them compiled when it is hot; ``code`` tells native code what it is: 1 passes the gradient on as it is. ``back`` is
    what native code reads to run a compiled one."""

    __slots__ = ("attributes", "back", "code", "keeps", "key", "name", "run")

    def __init__(self, op: Any, types: Sequence[Any], attributes: dict[str, Any], wants: tuple[bool, ...]) -> None:
        self.name = op.name
        self.attributes = attributes
        self.back: tuple[Any, ...] | None = None
        self.key = (op, tuple(types), attribute_key(attributes) if attributes else (), wants)
        kernel = KERNELS.get(op.name)
        if kernel is not None and kernel.fits(types, attributes):
            self.keeps = kernel.keeps(wants)
            self.run: Callable[..., Any] = kernel.run_for(types)
        else:
            self.keeps = _keeps(self.key, attributes)
            self.run = by_program
        self.code = int(self.run is KERNELS["add"].alike)
        if not self.code and all([type(t) is tuple for t in types]):
            self.run = Counted(self.run, self._program, self._compiled, self._replace)

    def _program(self) -> Any:
        """The derivative as a program of primitives; None where there is none."""
        try:
            return derive(self.key, self.attributes).operator.expansion.program
        except MissingRule:
            return None

    def _compiled(self, native: NativeKernel) -> Callable[..., Any]:
        rule = derive(self.key, self.attributes)
        self.back = self._back(rule, native)
        return _arranged(rule, native, self.key)

    def _back(self, rule: Derived, native: NativeKernel) -> tuple[Any, ...] | None:
        """What native code reads to go back by itself; None where Python has more to do than run the program."""
        op, kinds, _, wants = self.key
        wanted = tuple([i for i, want in enumerate(wants) if want])
        complete = rule.operands == wanted and getattr(op, "reads", None) is None
        single = len(rule.types) == len(kinds) + 1 and rule.cotangents in ((), (0,))
        if native.code is None or not complete or not single or not set(rule.keeps) <= set(self.keeps):
            return None
        result = rule.types[-1]
        kind = as_dtype(result.dtype), tuple([n for n in result.shape if isinstance(n, int)])  # compiled: all of them
        places = [self.keeps.index(i) for i in rule.keeps]
        return way_back(native.code, kinds, kind, places, bool(rule.cotangents), wanted)

    def _replace(self, run: Callable[..., Any]) -> None:
        self.run = run


_recipes = Kept(1024)
"""Recipes of applications that have no route."""


def _recipe(op: Any, types: Sequence[Any], attributes: dict[str, Any], wants: tuple[bool, ...]) -> Recipe:
    key = (op, tuple(types), attribute_key(attributes) if attributes else (), wants)
    found: Recipe | None = _recipes.get(key)
    if found is None:
        found = _recipes[key] = Recipe(op, types, attributes, wants)
    return found


_DECOMPOSITIONS = frozenset({"svd", "eigh", "eig"})


def _present(op: Any, grads: Sequence[Any]) -> frozenset[int] | None:
    """The results of a decomposition that have cotangents, where others have none: zeros in the place of those would
    meet the slopes of vectors, infinite at equal values, and make the gradient of the values NaN. None otherwise."""
    if op.name not in _DECOMPOSITIONS or all([g is not None for g in grads]):
        return None
    return frozenset([i for i, g in enumerate(grads) if g is not None])


def by_program(grads: Sequence[Any], saved: dict[int, Any], attributes: dict[str, Any], key: Any) -> list[Any]:
    """The derivative by the derived program."""
    rule = derive(key, attributes, _present(key[0], grads))
    return _gradients(rule, rule.run, grads, saved, key)


def _gradients(
    rule: Derived,
    run: Callable[[Sequence[Any]], list[Any]],
    grads: Sequence[Any],
    saved: dict[int, Any],
    key: Any,
) -> list[Any]:
    """Gradients of all operands by ``run``, which computes the program of ``rule``."""
    types = rule.types
    arrays = [_array(saved[i], types[i].dtype) for i in rule.keeps]
    count = len(key[1])
    arrays += [_or_zeros(grads[i], types[count + i]) for i in rule.cotangents]
    return _complete(rule, run(arrays), key, grads)


def _arranged(rule: Derived, run: Callable[[Sequence[Any]], list[Any]], key: Any) -> Callable[..., Any]:
    """:func:`_gradients` by ``run``, where all that follows from the rule is worked out before."""
    types, count = rule.types, len(key[1])
    keeps = [(i, types[i].dtype) for i in rule.keeps]
    cotangents = [(i, types[count + i]) for i in rule.cotangents]
    whole = rule.operands == tuple(range(count)) and getattr(key[0], "reads", None) is None
    apart = key[0].name in _DECOMPOSITIONS

    def gradients(grads: Sequence[Any], saved: dict[int, Any], attributes: dict[str, Any], key: Any) -> Any:
        if apart and _present(key[0], grads) is not None:
            return by_program(grads, saved, attributes, key)
        arrays = [_array(saved[i], dtype) for i, dtype in keeps]
        arrays += [_or_zeros(grads[i], type) for i, type in cotangents]
        return run(arrays) if whole else _complete(rule, run(arrays), key, grads)

    return gradients


def _complete(rule: Derived, made: Sequence[Any], key: Any, grads: Sequence[Any]) -> list[Any]:
    """``made`` by operand, with zeros for operands that want a gradient and get none: the derivative is zero wherever
    it exists (floor). Of a derivative, which was not written by anybody, they get None: it does not depend on them."""
    found = dict(zip(rule.operands, made, strict=True))
    reads = getattr(key[0], "reads", None)
    if reads is not None:
        moving = frozenset().union(*(read for read, g in zip(reads, grads, strict=True) if g is not None))
        return [found[i] if i in found and i in moving else None for i in range(len(key[1]))]
    return [
        found[i] if i in found else np.zeros(t[1], t[0].numpy) if want else None
        for i, (t, want) in enumerate(zip(key[1], key[3], strict=True))
    ]


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
        recipe = _recipe(op, types, attributes, tuple([edge is not None for edge in edges]))
        self._fill(recipe, edges, operands, results)

    def _fill(self, recipe: Recipe, edges: Sequence[Edge | None], operands: Sequence[Any], results: Any) -> None:
        self.recipe = recipe
        super().__init__(recipe.name, edges, results)
        self.saved: Sequence[Any] | None = _saved(recipe.keeps, operands, results)

    @staticmethod
    def of(route: Any, operands: Sequence[Any], results: Sequence[Tensor]) -> OperatorNode:
        """The node of an application that looks like earlier ones: its recipe is found in ``route.recipes``."""
        edges = [edge_of(x) for x in operands]
        wants = tuple([edge is not None for edge in edges])
        recipe = route.recipes.get(wants)
        if recipe is None:
            recipe = route.recipes[wants] = _recipe_of(route, edges)
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
            saved = self.unpacked()
        else:
            self.check_alive()
            saved = _NOTHING
        made: Sequence[Any] = recipe.run(grads, saved, recipe.attributes, recipe.key)
        return made

    def pull_tensors(self, grads: list[Any]) -> Sequence[Any]:
        """See :class:`Node`; applies the derived program as an operator, so that it is recorded in turn."""
        key = self.recipe.key
        rule = derive(key, self.recipe.attributes, _present(key[0], grads))
        self.unpacked()
        count = len(key[1])
        tensors = [self._handle(i, rule) for i in rule.keeps]
        for i in rule.cotangents:
            g = grads[i]
            tensors.append(Tensor._wrap(Strided(_or_zeros(None, rule.types[count + i]))) if g is None else g)
        made = bind(rule.operator, tensors, {}) if rule.operands else ()  # type: ignore[arg-type]
        found = _complete(rule, made, key, grads)
        return [Tensor._wrap(Strided(g)) if type(g) is np.ndarray else g for g in found]

    def _handle(self, position: int, rule: Derived) -> Tensor:
        """A saved operand or result as a tensor with its place in the graph."""
        assert self.saved is not None
        assert self.edges is not None
        value = hooks.unpack_saved(self.saved[self.recipe.keeps.index(position)])[0]
        count = len(self.edges)
        if position >= count:
            return tensor_at(value, (self, position - count), rule.types[position].dtype)
        return tensor_at(value, self.edges[position], rule.types[position].dtype)

    def unpacked(self) -> dict[int, Any]:
        """What was saved, checked against in-place changes."""
        self.check_alive()
        assert self.saved is not None
        found = {}
        for position, entry in zip(self.recipe.keeps, self.saved, strict=True):
            value, version = entry
            if type(value) is Strided:
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
    equivalent = import_module("argosy_autograd.opaque").EQUIVALENTS.get(op.name)
    found = None if equivalent is None else equivalent(operands, results)
    return (op, operands, attributes) if found is None else (*found, {})


def _keeps(key: tuple[Any, ...], attributes: dict[str, Any]) -> tuple[int, ...]:
    """What the derivative reads; nothing where there is none, so that only asking for the gradient fails."""
    if key[0].opaque:
        return ()
    try:
        return derive(key, attributes).keeps
    except MissingRule:
        return ()


def _saved(keeps: Sequence[int], operands: Sequence[Any], results: Sequence[Tensor]) -> tuple[Any, ...]:
    count = len(operands)
    return tuple([_save(operands[i] if i < count else results[i - count]) for i in keeps])


def _save(value: Any) -> Any:
    if type(value) is not Tensor:
        return value, None
    if hooks.packing():
        return hooks.pack_saved(value)
    payload = value.payload
    if type(payload) is Strided:
        storage = payload._storage
        return payload, 0 if storage is None else storage.version
    return payload, payload.version


def _array(value: Any, dtype: str) -> Any:
    if type(value) is Strided:
        return value.ndarray
    return np.asarray(value, as_dtype(dtype).numpy)


def tensor_at(value: Any, edge: Edge | None, dtype: str) -> Tensor:
    """What was saved, as a tensor at ``edge`` of the graph; a number becomes one of ``dtype``."""
    if edge is not None and type(edge[0]) is Tensor:
        return edge[0]
    tensor = Tensor._wrap(value if hasattr(value, "is_traced") else Strided(_array(value, dtype)), edge is None)
    if edge is not None:
        tensor._node, tensor._slot = edge
    return tensor


def _or_zeros(array: Any, type: Any) -> Any:
    return np.zeros(type.shape, as_dtype(type.dtype).numpy) if array is None else array


def _recipe_of(route: Any, edges: Sequence[Edge | None]) -> Recipe:
    types = [(t.dtype, t.shape) if type(t) is ArrayType else t for t in route.types]
    return Recipe(route.op, types, route.attributes, tuple([edge is not None for edge in edges]))


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

    def record_route(self, route: Any, operands: Sequence[Any], result: Tensor) -> None:
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
        recipe = route.recipes.get(wants)
        if recipe is None:
            recipe = route.recipes[wants] = _recipe_of(route, edges)
            remember(route, wants, recipe)
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
            node.saved = _saved(keeps, operands, (result,))
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

    def record_repeated(self, repeated: Any, operands: Sequence[Any], results: Sequence[Tensor]) -> None:
        """The same for several results."""
        OperatorNode.of(repeated, operands, results)

    def rebind(self, target: Tensor, value: Tensor) -> None:
        """``target`` was overwritten with ``value``: its history is that of the value from now on."""
        target._node = value._node
        target._slot = value._slot
        target._walls = value._walls


recorder = Tape()
"""The one recorder: histories hang on tensors, so it has no state."""
