"""Functions with a derivative of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from argosy_autograd import anomaly
from argosy_autograd.engine import needed_nodes
from argosy_autograd.errors import DifferentiationError, constant_gradient
from argosy_autograd.hooks import has_saved_tensors_hooks, pack_saved, unpack_saved
from argosy_autograd.modes import linear, no_grad
from argosy_autograd.tape import Edge, Node, edge_of
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.context import grad_enabled, set_grad_enabled
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.gradient_blockers import GradientBlocker, blockers_of, join_blockers
from argosy_phi_ops.eager.placement import accelerator_of
from argosy_phi_ops.errors import CaptureError
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["PyLayer", "PyLayerContext"]


class PyLayerContext:
    """What forward hands to backward: saved tensors, and any attribute set on it."""

    def __init__(self) -> None:
        self._saved: list[Any] = []
        self._materialize = True
        self._constants: set[int] = set()
        self._not_inplace: tuple[Tensor, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for backward, checked against in-place changes."""
        self._saved = [_keep(x) for x in tensors]

    def saved_tensor(self) -> list[Any]:
        """The tensors that were saved."""
        return [_restore(entry) for entry in self._saved]

    @property
    def saved_tensors(self) -> list[Any]:
        """The tensors that were saved."""
        return self.saved_tensor()

    def mark_not_inplace(self, *args: Tensor) -> None:
        """Say that these inputs, returned by forward, are to be new tensors."""
        self._not_inplace = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say that these results have no gradient."""
        self._constants = {id(x) for x in args}

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None for results that nothing depends on."""
        self._materialize = bool(value)

    def set_grad_in_dtype_consistent(self, flag: bool) -> None:
        """Accepted for compatibility: gradients always have the dtype of their tensor."""


def _keep(x: Any) -> Any:
    if type(x) is not Tensor:
        return x, None, None
    if has_saved_tensors_hooks():
        return *pack_saved(x), None
    return x, _version(x.payload), x.payload


def _version(payload: Any) -> int:
    """How often a payload was written in place; a traced one has versions of its own."""
    return 0 if payload.is_traced else int(payload.version)


def _restore(entry: Any) -> Any:
    value, version, payload = entry
    if type(value) is Tensor:
        if value.payload is payload and _version(payload) != version:
            raise DifferentiationError(
                f"{value.name}, saved by save_for_backward, was changed in place: now at {_version(payload)}, "
                f"version {version} was saved"
            )
        return value
    if payload is None and version is None and not hasattr(value, "packed"):
        return value
    return Tensor._wrap(unpack_saved((value, version))[0])


_MOST_NESTED = 8


class PyLayer(PyLayerContext):
    """Subclass with static methods ``forward(ctx, *args)`` and ``backward(ctx, *grads)``, and call :meth:`apply`.

    backward gets one gradient for each tensor that forward returns and gives one (or None) for each tensor among the
    arguments of forward.
    """

    @staticmethod
    def forward(ctx: PyLayerContext, *args: Any, **kwargs: Any) -> Any:
        """Compute the results; nothing is recorded."""
        raise NotImplementedError("a PyLayer needs a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx: PyLayerContext, *grads: Any) -> Any:
        """Give the gradients of the tensor arguments."""
        raise NotImplementedError("a PyLayer needs a static method backward(ctx, ...)")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record backward."""
        ctx = PyLayerContext()
        tensors = [x for x in (*args, *kwargs.values()) if type(x) is Tensor]
        previous = set_grad_enabled(False)
        try:
            made = cls.forward(ctx, *args, **kwargs)
        finally:
            set_grad_enabled(previous)
        several = isinstance(made, (tuple, list))
        outputs = list(made) if several else [made]
        edges = [edge_of(x) for x in tensors]
        if grad_enabled() and any(edge is not None for edge in edges):
            record = _record if active_tracer() is None else _trace
            outputs = record(cls, ctx, tensors, edges, outputs)
        return type(made)(outputs) if several else outputs[0]


def _record(
    cls: type[PyLayer],
    ctx: PyLayerContext,
    tensors: Sequence[Tensor],
    edges: Sequence[Edge | None],
    outputs: list[Any],
) -> list[Any]:
    fresh = _mark_results(cls.__name__, ctx, tensors, outputs)
    node = _PyLayerNode(cls, ctx, tensors, edges, [y for y in fresh if type(y) is Tensor])
    anomaly.note_line(node, cls.backward is PyLayer.backward)
    return fresh


def _mark_results(name: str, ctx: PyLayerContext, tensors: Sequence[Tensor], outputs: list[Any]) -> list[Any]:
    """The results, marked as wanting gradients; an input that was returned becomes a new tensor."""
    blockers = blockers_of(tensors)
    inputs = {id(x) for x in tensors}
    fresh = [Tensor._wrap(y.payload) if type(y) is Tensor and id(y) in inputs else y for y in outputs]
    for old, y in zip(outputs, fresh, strict=True):
        if type(y) is Tensor:
            y.stop_gradient = id(old) in ctx._constants or y.payload.dtype.kind not in "fc"
            y._gradient_blockers = blockers
            if y.stop_gradient:
                y._gradient_blockers = join_blockers(
                    blockers, (GradientBlocker(name, "marks a result as constant", tensors),)
                )
    return fresh


def _trace(
    cls: type[PyLayer],
    ctx: PyLayerContext,
    tensors: Sequence[Tensor],
    edges: Sequence[Edge | None],
    outputs: list[Any],
) -> list[Any]:
    """While capturing: backward is traced into a region of the program. Where it needs a value the graph breaks before
    it; one that is not implemented is an error for those alone who ask for the gradient."""
    tracer = active_tracer()
    assert tracer is not None
    fresh = _mark_results(cls.__name__, ctx, tensors, outputs)
    results = [y for y in fresh if type(y) is Tensor]
    values, inputs = [tracer.value(y) for y in results], [tracer.value(x) for x in tensors]

    def backward(cotangents: list[Tensor]) -> list[Tensor | None]:
        arriving = iter(cotangents)
        floating = [y.payload.dtype.kind in "fc" for y in results]
        grads = [next(arriving) if f else _zero_gradient(ctx, y) for f, y in zip(floating, results, strict=True)]
        tracer.derivatives.append(cls)
        try:
            matched = _match(cls.__name__, cls.backward(ctx, *grads), edges)
        finally:
            tracer.derivatives.pop()
        return [g for g, x in zip(matched, tensors, strict=True) if x.payload.dtype.kind in "fc"]

    try:
        if tracer.derivatives.count(cls) == _MOST_NESTED:  # a backward that applies its class goes on for ever
            raise NotImplementedError(f"captured functions have no derivatives above order {_MOST_NESTED} of it")
        made = _tracing_module().traced_custom(tracer, values, inputs, backward)
    except (CaptureError, NotImplementedError) as error:
        if tracer.breaks and not tracer.journals:
            tracer.give_up(f"{cls.__name__}.backward: {error}")  # type: ignore[attr-defined]  # it breaks
            return _record(cls, ctx, tensors, [edge_of(x) for x in tensors], outputs)
        if isinstance(error, CaptureError):
            raise
        reason = f"{cls.__name__}.backward is not implemented: {error}"
        refused = _tracing_module().traced_refusal(results, reason, inputs)
        made = [tracer.value(y) for y in refused]
    for y, value in zip(results, made, strict=True):
        y.payload = tracer.wrap(value, y.stop_gradient).payload
    return fresh


def _zero_gradient(ctx: PyLayerContext, y: Tensor) -> Tensor | None:
    zeros: Tensor | None = get_operator("zeros_like")(y) if ctx._materialize else None
    return zeros


def _tracing_module() -> Any:
    """The module of gradients while capturing."""
    return import_module("argosy_autograd.tracing")


def _match(name: str, made: Any, edges: Sequence[Edge | None]) -> list[Any]:
    """One gradient for each tensor argument. Paddle also takes them for those alone that want one."""
    gradients = list(made) if isinstance(made, (tuple, list)) else [made]
    wanted = [i for i, edge in enumerate(edges) if edge is not None]
    if len(gradients) == len(edges):
        return gradients
    if len(gradients) == len(wanted):
        found = dict(zip(wanted, gradients, strict=True))
        return [found.get(i) for i in range(len(edges))]
    raise DifferentiationError(
        f"{name}.backward gave {len(gradients)} gradients, but forward took {len(edges)} tensors; "
        "return one for each, None where there is none"
    )


def _moves(g: Tensor, sources: dict[Edge, int]) -> bool:
    edge = edge_of(g)
    return edge is not None and bool(needed_nodes([edge], sources, frozenset())[1])


class _PyLayerNode(Node):
    __slots__ = ("cls", "ctx", "device", "types")

    def __init__(
        self,
        cls: type[PyLayer],
        ctx: PyLayerContext,
        tensors: Sequence[Tensor],
        edges: Sequence[Edge | None],
        results: Sequence[Tensor],
    ) -> None:
        super().__init__(cls.__name__, edges, results)
        self.cls = cls
        self.ctx: PyLayerContext | None = ctx
        self.types = [(y.payload.shape, y.payload.dtype.numpy) for y in results]
        both = (*tensors, *results)
        self.device = next((device for x in both if (device := accelerator_of(x)) is not None), None)
        self.on_tensors = self.device or any(type(x.payload) is not StridedArray for x in both)

    def pull_arrays(self, grads: list[Any]) -> Sequence[Any]:
        """See :class:`Node`."""
        wrapped = [None if g is None else Tensor._wrap(StridedArray.from_array(g)) for g in grads]
        made = self.pull_tensors(wrapped)
        return [None if g is None else g.payload.ndarray for g in made]

    def pull_tensors(self, grads: list[Any]) -> Sequence[Any]:
        """See :class:`Node`."""
        self.check_alive()
        assert self.ctx is not None
        assert self.edges is not None
        if self.ctx._materialize:
            grads = [
                Tensor._wrap(StridedArray.from_array(np.zeros(*kind), self.device)) if g is None else g
                for g, kind in zip(grads, self.types, strict=True)
            ]
        made = _match(self.name, self.cls.backward(self.ctx, *grads), self.edges)
        asked = linear.get()
        if asked is not None:
            self._check_linear(grads, made, asked)
        return made

    def _check_linear(self, grads: Sequence[Any], made: Sequence[Any], asked: Callable[[], str]) -> None:
        """Raise where one of ``made`` does not move with ``grads`` and is not zero: backward cut it off, and there is
        no telling what it would have been. Where ``grads`` are constants, those that move are tried."""
        assert self.ctx is not None
        if not any(edge_of(g) for g in grads):
            grads = [Tensor._wrap(StridedArray(np.ones(*kind)), kind[1].kind not in "fc") for kind in self.types]
            made = _match(self.name, self.cls.backward(self.ctx, *grads), self.edges or ())
        sources = {edge: 0 for g in grads if (edge := edge_of(g)) is not None}
        still = [i for i, g in enumerate(made) if type(g) is Tensor and not _moves(g, sources)]
        if not sources or not still:
            return
        with no_grad():
            ones = [Tensor._wrap(StridedArray(np.ones(*kind))) for kind in self.types]
            again = _match(self.name, self.cls.backward(self.ctx, *ones), self.edges or ())
        if any(again[i] is not None and again[i].payload.to_host().any() for i in still):
            raise constant_gradient(self.name, asked())

    def release(self) -> None:
        """See :class:`Node`."""
        self.edges = None
        self.ctx = None
