"""Eager execution on distributed tensors: a layer of the interpreter stack.

An operator with a distributed operand is expanded into primitives for the global types, partitioned for the operands'
layouts, and the local program is run with the rank's communicators: an application like any other, in the same table.
Gradients need nothing of their own: the tape records operators on global types, and its backward programs come here
like others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from argosy_autoparallel.counting import needed_by
from argosy_autoparallel.dist_tensor import CopiedView, ShardedArray, replicated_payload
from argosy_autoparallel.groups import communicators, rank
from argosy_autoparallel.implicit_gathers import ImplicitGatherError, is_strict
from argosy_autoparallel.local_slice import local_stretches
from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.operator_rules import ruled_operators
from argosy_autoparallel.partition import partition
from argosy_autoparallel.redistribution import redistribute, redistribute_op
from argosy_autoparallel.resharding.emitter import static_shape
from argosy_autoparallel.shard_type import ShardType, shard_type_of
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops.capture.views import is_view, one_operand_view
from argosy_phi_ops.checks.bounds import Bound, bounds_of, check_indices
from argosy_phi_ops.context import context
from argosy_phi_ops.declare import promotion
from argosy_phi_ops.declare.promotion import describe
from argosy_phi_ops.eager.dispatch import Interpreter, bind, rebind, write
from argosy_phi_ops.eager.recording import record_results
from argosy_phi_ops.eager.results import fresh_tensor
from argosy_phi_ops.eager.table import application_key
from argosy_phi_ops.eager.tiering import NativeKernel, TieredKernel
from argosy_phi_ops.reference.interpreter import ProgramPlan, prepare
from argosy_phi_ops.reference.straight_line import StraightLine, is_straight
from argosy_pir import Builder, Value
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import ArrayType, StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["SpmdLayer"]

Array = np.ndarray[Any, Any]
_LAYER = "argosy.spmd"


class SpmdLayer(Interpreter):
    """Runs operators that have a distributed operand; passes others on."""

    stays = keyed = True

    def process(self, op: Any, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]) -> Any:
        """See :class:`Interpreter`."""
        for x in operands:
            if type(x) is Tensor and type(x.payload) is ShardedArray:
                break
        else:
            if op is not redistribute_op:
                return below(op, operands, attributes)
        if op.opaque:
            return _run_whole(op, operands, attributes, below)
        return _application(op, operands, attributes).run(operands, False)

    def application(self, op: Any, operands: Sequence[Any], attributes: dict[str, Any]) -> DistributedApplication:
        """See :class:`Interpreter`."""
        return _application(op, operands, attributes)

    def write(self, target: Tensor, value: Tensor, below: Callable[..., None]) -> None:
        """Overwrite, in the layout of the target."""
        payload = target.payload
        if type(payload) is not ShardedArray:
            if type(value.payload) is ShardedArray:
                value = _gather(value)
            below(target, value)
            return
        laid = redistribute(value, payload.layout)
        new = laid.payload
        view = payload.view_of
        if view is not None and new.dtype is payload.dtype:
            base = view.base_tensor()
            write(base, bind(*view.overwrite_operation(base, laid)))
            view.seen = view.base.version
        if new.dtype is payload.dtype:
            payload.local.fill_from(new.local.ndarray)
            payload.bump_version()
        else:
            target.payload = new
        if laid._node is not None or target._node is not None:
            rebind(target, laid)
        if not laid.stop_gradient:
            target.stop_gradient = False


class DistributedApplication:
    """An application to distributed tensors on this rank: ``kernel`` makes local arrays of local arrays; ``kinds`` are
    the results' global types and layouts, ``part`` the local type of the one result of a program that may be compiled.
    """

    __slots__ = (
        "attributes", "bare", "bounds", "first", "kernel", "kinds", "numbers", "op", "part", "program", "spread",
        "views",
    )  # fmt: skip
    draws = 0
    constants = None

    def __init__(self, op: Any, operands: Sequence[Any], attributes: dict[str, Any]) -> None:
        self.op, self.attributes = op, attributes
        described = [describe(x.payload if type(x) is Tensor else x) for x in operands]
        targets = promotion.promote(op.promote, op.name, described)
        self.numbers = [
            None if type(x) is Tensor else as_dtype(d).numpy for x, d in zip(operands, targets, strict=True)
        ]
        types = [
            TensorType(tuple(x.payload.shape), x.payload.dtype.name) if type(x) is Tensor else TensorType((), dtype)
            for x, dtype in zip(operands, targets, strict=True)
        ]
        layouts = [getattr(x.payload, "layout", None) if type(x) is Tensor else None for x in operands]
        expansion = op.expand(types, attributes)
        try:
            made = partition(_program(op, types, attributes, expansion), layouts, (), rank())
        except ValueError as error:
            raise ValueError(f"{op.name}: {error}") from error
        self.bare = expansion.bare
        whole = [ArrayType(as_dtype(t.dtype), t.shape) for t in types]  # type: ignore[arg-type]  # eager: no symbols
        bounds = bounds_of(op, whole, attributes) or ()
        self.bounds = [found for b in bounds for found in _in_part(b, whole[b.operand].shape, layouts[b.operand])]
        self.spread = None not in layouts
        self.first = next((i for i, layout in enumerate(layouts) if layout is not None), None)
        mesh = next((layout.mesh for layout in layouts if layout is not None), None)
        self.kinds = [
            shard_type_of(tuple(t.shape), as_dtype(t.dtype), _held_by(layout, mesh))
            for t, layout in zip(expansion.result_types, made.output_layouts, strict=True)
        ]
        views = op.view and is_view(op, operands)
        self.views = [one_operand_view(op, attributes, kind.shape) for kind in self.kinds] if views else []
        self.program = made.program
        straight = StraightLine(made.program) if is_straight(made.program) else None
        single = straight is not None and len(self.kinds) == 1 and self.first is not None
        self.part = _array_type(made.program.outputs[0]) if single else None
        self.kernel = _runner(made.program) if straight is None else _on_arrays(straight)
        if straight is not None:
            self.kernel = TieredKernel(self.kernel, lambda: self.program, _itself, self._replace, lambda: 1)

    def _replace(self, kernel: Callable[..., Sequence[Array]]) -> None:
        self.kernel = kernel

    def run(self, operands: Sequence[Any], silent: bool) -> Any:
        """The results for operands of these types, recorded where one wants gradients, unless ``silent``."""
        wanted = False
        if self.spread:
            arrays = []
            for x in operands:  # cheaper than two comprehensions
                payload = x.payload
                arrays.append((payload._local if payload.view_of is None else payload.local).ndarray)
                wanted = wanted or not x.stop_gradient
        else:
            arrays = [_array(x, number) for x, number in zip(operands, self.numbers, strict=True)]
            wanted = not all([type(x) is not Tensor or x.stop_gradient for x in operands])
        for number, part, *allowed in self.bounds:  # of the whole axis; each rank looks at its part of the indices
            check_indices(self.op.name, arrays[number][part], *allowed)
        results = self._wrap(operands, arrays, self.kernel(arrays))
        if self.views and type(operands[0].payload) is ShardedArray:
            for i, result in enumerate(results):
                result.payload.view_of = CopiedView(operands[0], *self.views[i], i)
        if wanted and not silent:
            record_results(self.op, operands, self.attributes, results)
            for result in results:
                if result._node is not None:
                    result._node.on_tensors = True
        return results[0] if self.bare else tuple(results)

    def _wrap(self, operands: Sequence[Any], arrays: Sequence[Array], made: Sequence[Array]) -> Sequence[Tensor]:
        """Tensors of what the kernel has made of ``arrays``."""
        pairs = zip(made, self.kinds, strict=True)
        if self.first is None:
            return [Tensor._wrap(ShardedArray(_copy_array(a), k.shape, k.dtype, k.layout)) for a, k in pairs]
        payload = operands[self.first].payload
        if self.part is None or not _is_fresh(made[0], arrays):
            return [Tensor._wrap(payload.with_local(_copy_array(a), kind)) for a, kind in pairs]
        result = fresh_tensor(made[0], self.part, None)
        result.payload = payload.with_local(result.payload, self.kinds[0])
        return (result,)

    def explain(self, operands: Sequence[Any], error: Exception) -> None:
        """Partitioning has refused what the operator does not take."""


def _program(op: Any, types: Sequence[TensorType], attributes: dict[str, Any], expansion: Any) -> Program:
    """The program of an operator: it as a whole, where it has a rule, else its decomposition."""
    if op.name not in ruled_operators():
        return expansion.program  # type: ignore[no-any-return]
    program = Program(op.name)
    operands = [program.add_input(type) for type in types]
    made = Builder.at_end(program.block).create(f"phi.{op.name}", operands, attributes, expansion.result_types)
    program.set_outputs(list(made.results))
    return program


def _in_part(bound: Bound, shape: tuple[int, ...], layout: Layout | None) -> Iterator[tuple[int, Any, int, int, int]]:
    """The operand, the indices of it that this rank has, and which are allowed, see :class:`Bound`."""
    column = bound.column
    if column is not None and layout is not None:
        if not layout.mesh.contains(rank()):
            return
        *_, stretches = local_stretches(shape, layout.mesh, layout.placements, rank())
        mine = [index for start, length in stretches for index in range(start, start + length)]
        if column not in mine:
            return
        column = mine.index(column)
    yield bound.operand, ... if column is None else (..., column), bound.low, bound.size, bound.besides


def _held_by(layout: Layout | None, mesh: ProcessMesh | None) -> Layout:
    if layout is not None:
        return layout
    if mesh is None:
        raise ValueError("an operator on distributed tensors gave a result without a mesh")
    return Layout.replicate(mesh)


def _runner(program: Program) -> Callable[..., Sequence[Array]]:
    if any(op.name == "prim.create_token" for op in program.walk()):
        plan = ProgramPlan(program)
        return lambda arrays: plan.run(arrays, (), communicators())[0]
    return prepare(program)


def _on_arrays(straight: StraightLine) -> Callable[..., Sequence[Array]]:
    kernel = straight.single_kernel
    return straight.run if kernel is None else lambda arrays: (kernel(*arrays),)


def _itself(compiled: NativeKernel) -> Callable[..., Sequence[Array]]:
    return compiled


def _array_type(value: Value) -> ArrayType:
    return StridedArray.empty(static_shape(value), value.dtype).array_type


def _application(op: Any, operands: Sequence[Any], attributes: dict[str, Any]) -> DistributedApplication:
    """The application to operands like these. Kinds, which tell the rank as well, are found by identity; a call without
    any has the rank in its key."""
    key: tuple[Any, ...] = application_key(operands, attributes)
    if not any([type(kind) is ShardType for kind in key[0]]):
        key += _LAYER, context().rank
    if is_strict():
        key += ("strict",)
    found: DistributedApplication | None = op.applications.by_key.get(key)
    if found is None:
        found = DistributedApplication(op, operands, attributes)
        op.applications.keep(key, found)
    return found


def _array(x: Any, number: Any) -> Array:
    """What an operand is to a local program; ``number`` is the dtype that a number becomes."""
    if number is not None:
        return np.asarray(x, number)
    held: Array = x.payload.local.ndarray if type(x.payload) is ShardedArray else x.payload.ndarray
    return held


def _is_fresh(array: Array, arrays: Sequence[Array]) -> bool:
    """Whether a straight program's one result has memory of its own: programs may hand inputs and views of them on."""
    if type(array) is not np.ndarray or array.base is not None or not array.flags.c_contiguous:
        return False
    for x in arrays:
        if array is x:
            return False
    return True


def _copy_array(array: Array) -> StridedArray:
    return StridedArray(np.array(array, order="C"))


def _run_whole(op: Any, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]) -> Any:
    """An operator that does not decompose runs on whole tensors, on every rank; its results are replicated."""
    mesh = next(x.payload.mesh for x in operands if type(x) is Tensor and type(x.payload) is ShardedArray)
    if is_strict():
        raise ImplicitGatherError(f"{op.name}: has no decomposition and runs on whole tensors; unshard_dtensor first")
    with needed_by(f"phi.{op.name}"):
        whole = [_gather(x) if type(x) is Tensor and type(x.payload) is ShardedArray else x for x in operands]
    made = below(op, whole, attributes)
    results = made if isinstance(made, tuple) else (made,)
    wrapped = tuple(Tensor._wrap(replicated_payload(r.payload.ndarray, mesh)) for r in results)
    return wrapped if isinstance(made, tuple) else wrapped[0]


def _gather(x: Tensor) -> Tensor:
    return Tensor._wrap(StridedArray.from_array(np.array(x.payload.to_host())), x.stop_gradient)
