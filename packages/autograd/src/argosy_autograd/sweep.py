"""One pass back over the tape.

Nodes are taken from a heap by falling sequence number, so each is taken once, after all that use its results;
there is no recursion, and a graph may be as deep as memory allows. Gradients are plain arrays, or tensors
(recorded in turn) when a derivative of higher order is wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from sys import getrefcount
from typing import Any

import numpy as np

from argosy_autograd import anomaly
from argosy_autograd.gradients import accumulate_grad
from argosy_autograd.hooks import JointHook
from argosy_autograd.tape import Edge, Node
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.native import builtin
from argosy_phi_ops.eager.placement import accelerator_of
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["Sweep", "as_array", "as_tensor"]

_OURS = 3  # references to a gradient that only this pass holds: its entry, a local variable, getrefcount's argument


class Sweep:
    """One backward pass. ``recorded``: gradients are tensors. ``targets``: edges whose gradients are wanted,
    None for all leaves; ``needed_nodes``: the nodes that lead to them; ``blocked``: edges that count as constants."""

    def __init__(
        self,
        recorded: bool,
        retain: bool,
        targets: dict[Edge, int] | None = None,
        needed: set[Node] | None = None,
        blocked: frozenset[Edge] = frozenset(),
    ) -> None:
        self.recorded = recorded
        self.retain = retain
        self.targets = targets
        self.needed = needed
        self.blocked = blocked
        self.found: dict[int, Any] = {}
        self.leaves: dict[int, list[Any]] = {}
        self.mixed = False
        """Whether some gradient is a tensor although nothing is recorded: of a distributed tensor, or on a device."""
        self.pending: dict[Node, list[Any]] = {}
        self.heap: list[tuple[int, Node]] = []

    def send(self, edge: Edge, g: Any) -> None:
        """A gradient arrives at ``edge``."""
        if edge in self.blocked:
            return
        to, slot = edge
        if type(to) is Tensor:
            entry = self.leaves.get(id(to))
            if entry is None:
                self.leaves[id(to)] = [to, g]
            else:
                entry[1] = self.add(entry[1], g)
            return
        if self.needed is not None and to not in self.needed and edge not in (self.targets or ()):
            return
        grads = self.pending.get(to)
        if grads is None:
            grads = self.pending[to] = [None] * to.results
            heappush(self.heap, (-to.sequence, to))
        grads[slot] = g if grads[slot] is None else self.add(grads[slot], g)

    def start(self, y: Tensor, seed: Tensor | None) -> Any:
        """The gradient that the root ``y`` begins with, ones where there is no ``seed``: as an array where arrays are
        what is passed."""
        if seed is None:
            if accelerator_of(y) is None and type(y.payload) is StridedArray and not self.recorded:
                return _ones(y.payload)
            seed = _ones_like(y.payload)
        if self.recorded:
            return seed
        if type(seed.payload) is StridedArray and accelerator_of(seed) is None:
            return seed.payload.ndarray
        self.mixed = True
        return seed

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two gradients."""
        if self.mixed and (type(x) is Tensor or type(y) is Tensor):
            device = accelerator_of(x) or accelerator_of(y)
            return get_operator("add")(as_tensor(x, device), as_tensor(y, device))
        return get_operator("add")(x, y) if self.recorded else np.asarray(x + y)

    def run(self, start: list[tuple[Edge, Any]]) -> None:
        """Go back from gradients at edges as far as there is anything to do."""
        if not self.recorded and not self.mixed and self.targets is None and not self.blocked:
            self._run_plainly(start)
        else:
            for edge, g in start:
                self.send(edge, g)
        heap, pending = self.heap, self.pending
        while heap:
            node = heappop(heap)[1]
            grads = pending.pop(node)
            node.check_alive()
            if node.hooks is not None or node.retained is not None:
                self._call_hooks(node, grads)
            if self.targets is not None:
                self._collect(node, grads)
                if self.needed is not None and node not in self.needed:
                    continue
            edges = node.edges
            assert edges is not None
            for onward, g in zip(edges, self._pull_back(node, grads), strict=True):
                if onward is not None and g is not None:
                    self.send(onward, g)
            if not self.retain:
                node.release()

    def _pull_back(self, node: Node, grads: list[Any]) -> Sequence[Any]:
        try:
            if node.on_tensors and not self.recorded:
                self.mixed = True
                device = None if node.on_tensors is True else node.on_tensors
                return node.pull_tensors([None if g is None else as_tensor(g, device) for g in grads])
            if self.mixed:
                grads = [as_array(g) for g in grads]
            made = node.pull_tensors(grads) if self.recorded else node.pull_arrays(grads)
            return anomaly.inspect_gradients(node, made) if anomaly.checks else made
        except Exception as error:
            anomaly.explain(node, error)
            raise

    def _run_natively(self, start: list[tuple[Edge, Any]]) -> None:
        """The way back to all leaves over arrays by native code, where it runs; what it leaves is sent on."""
        backward_loop = None if anomaly.checks else _native_backward_loop()  # which looks at no gradients
        rest = None if backward_loop is None else backward_loop(start, self.leaves, bool(self.retain), self._pull, _sum)
        if rest is None:  # or a pass is running
            for edge, g in start:
                self.send(edge, g)
            return
        for node, slot, g in rest:
            self.send((node, slot), g)

    def _pull(self, node: Any, g: Any) -> list[tuple[Edge, Any]]:
        """What goes back from a node that ``g`` came to, a list where it has several results: for native code."""
        grads = [g] if node.results == 1 else g
        if node.edges is None:
            node.check_alive()
        if node.hooks is not None or node.retained is not None:
            self._call_hooks(node, grads)
        pulled = zip(node.edges, _pulled_arrays(node, grads), strict=True)
        return [(edge, g) for edge, g in pulled if edge is not None and g is not None]

    def _run_plainly(self, start: list[tuple[Edge, Any]]) -> None:
        """The way back to all leaves over arrays, with nothing recorded: what training does. :meth:`send` is written
        out. Stops where a gradient is a tensor."""
        self._run_natively(start)
        heap, pending, leaves, retain = self.heap, self.pending, self.leaves, self.retain
        while heap:
            node = heap[0][1]
            edges = node.edges
            if edges is None:
                node.check_alive()
            if node.on_tensors:
                return
            heappop(heap)
            grads = pending.pop(node)
            if node.hooks is not None or node.retained is not None:
                self._call_hooks(node, grads)
            for edge, g in zip(edges, _pulled_arrays(node, grads), strict=True):  # type: ignore[arg-type]
                if edge is None or g is None:
                    continue
                to, slot = edge
                if type(to) is Tensor:
                    entry = leaves.get(id(to))
                    if entry is None:
                        leaves[id(to)] = [to, g]
                    else:
                        entry[1] = np.asarray(entry[1] + g)
                    continue
                waiting = pending.get(to)
                if waiting is None:
                    waiting = pending[to] = [None] * to.results
                    heappush(heap, (-to.sequence, to))
                old = waiting[slot]
                waiting[slot] = g if old is None else np.asarray(old + g)
            if not retain:
                node.release()

    def _call_hooks(self, node: Node, grads: list[Any]) -> None:
        for slot, table in (node.hooks or {}).items():
            if grads[slot] is not None:
                grads[slot] = self.apply_hooks(table, grads[slot])
        for slot, reference in (node.retained or {}).items():
            tensor = reference()
            if tensor is not None and grads[slot] is not None and self.targets is None:
                accumulate_grad(tensor, grads[slot])

    def apply_hooks(self, table: dict[int, Any], g: Any) -> Any:
        """The gradient after the hooks of ``table``."""
        as_tensor = self.recorded or type(g) is Tensor
        tensor = g if as_tensor else Tensor._wrap(StridedArray.from_array(g))
        for hook in list(table.values()):
            replaced = None if isinstance(hook, JointHook) else hook(tensor)
            if replaced is not None:
                tensor = replaced
        return tensor if as_tensor else tensor.payload.ndarray

    def _collect(self, node: Node, grads: list[Any]) -> None:
        assert self.targets is not None
        for slot, g in enumerate(grads):
            index = self.targets.get((node, slot))
            if index is not None and g is not None:
                self.found[index] = g

    def finish_leaves(self) -> None:
        """Call the hooks of leaves, in backward(); then give the gradients to whoever wants them."""
        together: list[list[Any]] = []
        for entry in self.leaves.values():
            leaf, g = entry
            if leaf._hooks:
                if self.targets is None:  # what grad() was asked for is given as it is, as in Paddle
                    g = entry[1] = self.apply_hooks(leaf._hooks, g)
                if any(isinstance(hook, JointHook) for hook in leaf._hooks.values()):
                    together.append(entry)
                    continue
            if type(leaf.payload) is not StridedArray and hasattr(leaf.payload, "adopt_gradient"):
                together.append(entry)
                continue
            device = accelerator_of(leaf)
            if device is not None:
                g = entry[1] = as_tensor(g, device)
            elif self.mixed:
                g = entry[1] = as_array(g)
            if self.targets is None:
                fresh = getrefcount(g) <= _OURS  # counted before g becomes an argument of another call
                accumulate_grad(leaf, g, fresh)
            elif (leaf, 0) in self.targets:
                self.found[self.targets[leaf, 0]] = g
        if together:
            self._finish_jointly(together)

    def _finish_jointly(self, entries: Sequence[list[Any]]) -> None:
        """Leaves of joint hooks, and distributed ones, whose sums over ranks are made together."""
        joint: dict[JointHook, list[list[Any]]] = {}
        kinds: dict[Any, list[list[Any]]] = {}
        for entry in entries:
            leaf = entry[0]
            entry[1] = as_tensor(entry[1])
            for hook in (leaf._hooks or {}).values():
                if isinstance(hook, JointHook):
                    joint.setdefault(hook, []).append(entry)
            if type(leaf.payload) is not StridedArray:
                kinds.setdefault(type(leaf.payload), []).append(entry)
        for hook, members in joint.items():
            made = hook([leaf for leaf, _ in members], [g for _, g in members])
            _replace(members, made)
        entries = [entry for entry in entries if entry[1] is not None]
        for kind, members in kinds.items():
            if self.recorded:
                _replace(members, [leaf.payload.adopt_gradient(g) for leaf, g in members])
            else:
                _replace(members, kind.adopt_gradients([leaf.payload for leaf, _ in members], [g for _, g in members]))
        for leaf, g in entries:
            if type(leaf.payload) is StridedArray and not self.recorded:
                device = accelerator_of(leaf)
                g = as_array(g) if device is None else as_tensor(g, device)
            if self.targets is None:
                accumulate_grad(leaf, g)
            elif (leaf, 0) in self.targets:
                self.found[self.targets[leaf, 0]] = g


def _ones(payload: Any) -> Any:
    made = np.empty(payload.shape, payload.dtype.numpy)
    made.fill(1)  # np.ones is Python, four times as long
    return made


def _ones_like(payload: Any) -> Tensor:
    device = payload.array_type.device if type(payload) is StridedArray else None
    ones = Tensor._wrap(StridedArray.from_array(_ones(payload), device))
    if type(payload) is not StridedArray and hasattr(payload, "adopt_gradient"):
        ones = payload.adopt_gradient(ones)
    return ones


def _pulled_arrays(node: Node, grads: list[Any]) -> Sequence[Any]:
    """Gradients of the operands of a node, as arrays."""
    try:
        made = node.pull_arrays(grads)
        return anomaly.inspect_gradients(node, made) if anomaly.checks else made
    except Exception as error:
        anomaly.explain(node, error)
        raise


def _replace(entries: Sequence[list[Any]], gradients: Sequence[Any]) -> None:
    for entry, g in zip(entries, gradients, strict=True):
        entry[1] = g


def _sum(x: Any, y: Any) -> Any:
    return np.asarray(x + y)


_backward_loop: list[Any] = []


def _native_backward_loop() -> Any:
    """The builtin that goes back natively, made once; None where native code does not run."""
    if not _backward_loop:
        made = builtin("backward_loop")
        if made is None:
            return None
        _backward_loop.append(made)
    return _backward_loop[0]


def as_tensor(g: Any, device: Any = None) -> Tensor:
    """A gradient as a tensor, on ``device`` where that is given."""
    if type(g) is not Tensor:
        return Tensor._wrap(StridedArray.from_array(g, device))
    if device is None or type(g.payload) is not StridedArray or g.payload.array_type.device is device:
        return g
    return Tensor._wrap(StridedArray.from_array(g.payload.to_host(), device))


def as_array(g: Any) -> Any:
    """A gradient as an array: of a distributed tensor its global value."""
    return g.payload.to_host() if type(g) is Tensor else g
