"""The payload of a distributed tensor: this rank's part, and the global tensor that it is a part of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_autoparallel.bucketing import SumsOnMesh
from argosy_autoparallel.groups import rank
from argosy_autoparallel.local_slice import LocalSlice
from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.placement import Placement
from argosy_autoparallel.presence import presence
from argosy_autoparallel.redistribution import redistribute
from argosy_autoparallel.shard_type import ShardType, shard_type_of
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops import extension
from argosy_phi_ops.capture.views import View
from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.eager.dispatch import bind, suspend_layers
from argosy_tensorcore.dtype import DType, as_dtype
from argosy_tensorcore.shape import Size, contiguous_strides
from argosy_tensorcore.storage import Storage, StridedArray
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from argosy_hwadapt import Device

__all__ = ["CopiedView", "ShardedArray", "is_dist", "layout_of", "replicated_payload"]

_NOTHING = np.zeros(0, np.bool_)


class ShardedArray:
    """``local`` is this rank's part (of no elements on a rank outside the mesh) of a tensor of global ``shape``.
    ``array_type`` is what plans and routes depend on, as one object. ``view_of`` is what an ordinary tensor would
    share memory with: its elements are copied here anew when they have changed, and what is written here is written
    there, too. Every rank that takes part must then look at the tensor, or write to it."""

    __slots__ = ("_local", "_presence", "array_type", "dtype", "layout", "shape", "view_of")
    is_traced = False

    def __init__(self, local: StridedArray, shape: Sequence[int], dtype: DType, layout: Layout) -> None:
        kind = self.array_type = shard_type_of(tuple(shape), dtype, layout)
        self._local = local
        self.shape, self.dtype, self.layout = kind.shape, dtype, layout
        self.view_of: CopiedView | None = None
        self._presence = presence()

    def with_local(self, local: StridedArray, kind: ShardType) -> ShardedArray:
        """Another payload of this rank, where the presence of this one saves asking for it."""
        made = _new(ShardedArray)
        made._local = local
        made.array_type = kind
        made.shape, made.dtype, made.layout = kind.shape, kind.dtype, kind.layout
        made.view_of = None
        made._presence = self._presence
        return made

    @property
    def local(self) -> StridedArray:
        """This rank's part, up to date."""
        view = self.view_of
        if view is not None and view.is_stale:
            self._local.fill_from(view.look().relayout(self.layout)._local.ndarray)
            self._local.bump_version()
        return self._local

    @property
    def mesh(self) -> ProcessMesh:
        """The mesh that holds the tensor."""
        return self.layout.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """One for each mesh dimension."""
        return self.layout.placements

    @property
    def is_held(self) -> bool:
        """Whether this rank is part of the mesh."""
        return self.layout.mesh.contains(rank())

    @property
    def part(self) -> LocalSlice | None:
        """Where this rank's part lies in the global tensor; None where it is a term of a sum, or parts of blocks."""
        if self.layout.is_partial or self.layout.has_blocks:
            return None
        nothing = (0,) * len(self.shape)
        return self.layout.local_slice(self.shape, rank()) if self.is_held else LocalSlice(nothing, nothing)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements of the global tensor."""
        return Size(self.shape).numel()

    @property
    def nbytes(self) -> int:
        """Bytes of the global tensor."""
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Those of the global tensor in row-major order."""
        return tuple(contiguous_strides(self.shape))

    @property
    def offset(self) -> int:
        """The part begins where its storage does."""
        return 0

    @property
    def contiguous(self) -> bool:
        """Parts are contiguous."""
        return True

    @property
    def storage(self) -> Storage:
        """The storage of the local part."""
        return self.local.storage

    @property
    def device(self) -> Any:
        """Where the local part is."""
        return self.local.device

    @property
    def version(self) -> int:
        """How often the local part was written in place."""
        return self.local.version

    def bump_version(self) -> None:
        """Count an in-place write."""
        self.local.bump_version()

    def relayout(self, layout: Layout) -> ShardedArray:
        """The payload in another layout; nothing is recorded. Every rank that takes part must call."""
        if self.layout == layout:
            return self
        with suspend_layers():
            made: ShardedArray = redistribute(Tensor._wrap(self), layout).payload
        return made

    def on_device(self, device: Device) -> ShardedArray:
        """The payload with this rank's part on ``device``: itself where it is there, else with memory of its own. On a
        rank outside the mesh, too, whose part has no elements."""
        if self.local.device is device:
            return self
        return ShardedArray(StridedArray.from_array(self.local.to_host(), device), self.shape, self.dtype, self.layout)

    def to_host(self) -> NDArray[Any]:
        """The global value; every rank of the mesh must call, since what is split or partial is communicated.

        Raises ``RuntimeError`` on a rank outside the mesh.
        """
        if not self.is_held:
            raise RuntimeError(
                f"rank {rank()} holds nothing of a tensor on {self.mesh!r}: its value is not known here. item() gives "
                "None on such ranks, numpy() no elements; reshard the tensor to a mesh with this rank to have it"
            )
        if self.layout.is_replicated:
            return self.local.to_host()
        return self.relayout(Layout.replicate(self.mesh)).local.to_host()

    def duplicate(self) -> ShardedArray:
        """The same layout with memory of its own."""
        return ShardedArray(StridedArray(np.array(self.local.ndarray, order="C")), self.shape, self.dtype, self.layout)

    def fill_from(self, source: NDArray[Any]) -> None:
        """Overwrite this rank's part with that of ``source``, broadcast to the global shape and cast."""
        if self.is_held and self.part is not None:
            self.local.fill_from(np.broadcast_to(np.asarray(source), self.shape)[self.part.slices()])
        elif self.is_held:
            whole = replicated_payload(np.broadcast_to(np.asarray(source, self.dtype.numpy), self.shape), self.mesh)
            self.local.fill_from(whole.relayout(self.layout).local.ndarray)
        self._write_base()

    def fill_part(self, part: NDArray[Any]) -> None:
        """Overwrite this rank's part with ``part``, cast to the dtype; nothing on a rank outside of the mesh."""
        if self.is_held:
            self.local.fill_from(part)
        self._write_base()

    def overwrite(self, source: ShardedArray) -> None:
        """Overwrite this rank's part with that of ``source``, a tensor of this shape.

        Nothing is communicated where both are laid out alike; otherwise every rank that takes part must call.
        """
        self.local.fill_from(source.relayout(self.layout).local.ndarray)
        self._write_base()

    def _write_base(self) -> None:
        """Let what this is a view of have its elements; nothing is recorded."""
        view = self.view_of
        if view is not None:
            base: ShardedArray = view.base
            with suspend_layers():
                base.overwrite(bind(*view.overwrite_operation(Tensor._wrap(base), Tensor._wrap(self))).payload)
            base.bump_version()
            view.seen = base.version

    def adopt_gradient(self, g: Tensor) -> Tensor:
        """The gradient ``g`` of this tensor, laid out like it: a sum over ranks is made here, once."""
        wanted = self.layout.cotangent()
        return g if layout_of(g) == wanted else redistribute(g, wanted)

    @staticmethod
    def adopt_gradients(tensors: Sequence[ShardedArray], gradients: Sequence[Tensor]) -> list[Tensor]:
        """:meth:`adopt_gradient` of several tensors, whose sums over ranks are made together."""
        sums = SumsOnMesh()
        for i, (x, g) in enumerate(zip(tensors, gradients, strict=True)):
            layout = layout_of(g)
            if layout is not None:
                sums.offer(i, g.payload.local.ndarray, layout, x.layout.cotangent())
        made = sums.reduce()
        found = []
        for i, (x, g) in enumerate(zip(tensors, gradients, strict=True)):
            if i in made:
                payload = ShardedArray(StridedArray(made[i]), x.shape, g.payload.dtype, x.layout.cotangent())
                g = Tensor._wrap(payload, g.stop_gradient)
            found.append(x.adopt_gradient(g))
        return found

    def describe(self) -> str:
        """What printing puts before the global value, or says instead on a rank that has no part of it."""
        mesh = self.mesh
        names = f"{{shape: {mesh.shape}, process_ids: {mesh.process_ids}, dim_names: [{', '.join(mesh.dim_names)}]}}"
        value = "=" if self.is_held else " Not initialized"
        return f"process_mesh={names}, placements={list(self.placements)}, GlobalDenseTensor{value}"

    def __repr__(self) -> str:
        return f"ShardedArray({self.dtype.name} {list(self.shape)}, {self.layout!r})"


class CopiedView(View):
    """What a payload is a view of: the payload of ``tensor``, when it had the version ``seen``."""

    __slots__ = ("_known", "seen", "tensor")

    def __init__(self, tensor: Tensor, op: Operator, attributes: dict[str, Any], result: int) -> None:
        self.tensor = tensor
        self.base = base = tensor.payload
        self.op, self.attributes, self.result = op, attributes, result
        self.seen: int = base.version
        self._known: tuple[bool, bool] | None = None

    @property
    def certain(self) -> bool:  # type: ignore[override]
        """See :class:`View`; found out where somebody asks, which is seldom."""
        return self._judge()[0]

    @property
    def contiguous(self) -> bool:  # type: ignore[override]
        """See :class:`View`."""
        return self._judge()[1]

    def _judge(self) -> tuple[bool, bool]:
        if self._known is None:
            found = View(self.base, self.op, self.attributes, self.result)
            self._known = found.certain, found.contiguous
        return self._known

    def base_tensor(self) -> Tensor:
        """The tensor that has the base, or one that shares its memory."""
        return self.tensor if self.tensor.payload is self.base else Tensor._wrap(self.base)

    @property
    def is_stale(self) -> bool:
        """Whether the base has been written since this was ``seen``."""
        return bool(self.base.version != self.seen) and self.certain

    def look(self) -> ShardedArray:
        """What the base shows now."""
        with suspend_layers():
            made = bind(self.op, (Tensor._wrap(self.base),), self.attributes)
        self.seen = self.base.version
        payload: ShardedArray = (made[self.result] if isinstance(made, tuple) else made).payload
        return payload


_new = object.__new__


def replicated_payload(array: NDArray[Any], mesh: ProcessMesh) -> ShardedArray:
    """The payload of a tensor whose value every rank of ``mesh`` has."""
    held = mesh.contains(rank())
    local = StridedArray.from_array(array if held else _NOTHING.copy())
    return ShardedArray(local, array.shape, as_dtype(array.dtype), Layout.replicate(mesh))


def layout_of(tensor: Tensor) -> Layout | None:
    """The layout of a distributed tensor; None for others."""
    payload = tensor.payload
    return payload.layout if type(payload) is ShardedArray else None


def is_dist(tensor: Tensor) -> bool:
    """Whether the tensor is distributed, or, while capturing, will be."""
    payload = tensor.payload
    return type(payload) is ShardedArray or (payload.is_traced and payload.mesh is not None)


def _process_mesh(tensor: Tensor) -> ProcessMesh | None:
    return getattr(tensor.payload, "mesh", None)


def _placements(tensor: Tensor) -> list[Placement] | None:
    found = getattr(tensor.payload, "placements", None)
    return None if found is None else list(found)


def local_value(tensor: Tensor) -> Tensor:
    """This rank's part as an ordinary tensor that shares its memory; an ordinary tensor itself."""
    payload = tensor.payload
    return Tensor._wrap(payload.local, tensor.stop_gradient) if type(payload) is ShardedArray else tensor


def _local_shape(tensor: Tensor) -> list[int] | None:
    payload = tensor.payload
    return list(payload.local.shape) if type(payload) is ShardedArray else None


local_shape = property(_local_shape, doc="The shape of this rank's part of a distributed tensor; None for others.")
process_mesh = property(_process_mesh, doc="The mesh of a distributed tensor; None for others.")
placements = property(_placements, doc="One placement for each mesh dimension; None for ordinary tensors.")

extension.register_methods(
    {
        "process_mesh": "argosy_autoparallel.dist_tensor:process_mesh",
        "placements": "argosy_autoparallel.dist_tensor:placements",
        "is_dist": "argosy_autoparallel.dist_tensor:is_dist",
        "_local_shape": "argosy_autoparallel.dist_tensor:local_shape",
        "_local_value": "argosy_autoparallel.dist_tensor:local_value",
    }
)
