"""``ParameterGather``: operators are given the whole of parameters that are split over ranks with batches of their
own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from argosy.distributed.captured_collectives import is_capturing
from argosy.distributed.local_parts import local_part
from argosy.distributed.semi_auto import reshard
from argosy_autograd.hooks import saved_tensors_hooks
from argosy_autograd.modes import no_grad
from argosy_autoparallel import Partial, ProcessMesh, ReduceType, Replicate
from argosy_autoparallel.dist_tensor import is_dist
from argosy_phi_ops.eager.dispatch import Interpreter, layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["ParameterGather"]


class ParameterGather(Interpreter):
    """Gives operators the whole of parameters that are split over ``mesh``, as ordinary tensors of this rank, whose
    gradients are to be averaged. For the backward pass the rank's part is kept, which is gathered again there; the
    whole where ``keeps_whole``."""

    def __init__(self, mesh: ProcessMesh, keeps_whole: bool = False) -> None:
        self.mesh = mesh
        self._keeps_whole = keeps_whole
        self._sources: dict[int, Tensor] = {}  # by the payload that an operator has now
        self._is_gathering = False

    @contextmanager
    def gather_parameters(self) -> Iterator[None]:
        """Within the block operators are given whole parameters."""
        keeps = self._keeps_whole or is_capturing()
        with layer(self), nullcontext() if keeps else saved_tensors_hooks(self._pack, self._unpack):
            yield

    def process(self, op: Any, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]) -> Any:
        """See :class:`Interpreter`."""
        if self._is_gathering:
            return below(op, operands, attributes)
        sources = self._sources
        self._sources = {}
        try:
            return below(op, [self._gather(x) if type(x) is Tensor else x for x in operands], attributes)
        finally:
            self._sources = sources

    def _gather(self, x: Tensor) -> Tensor:
        if not is_dist(x) or x.process_mesh != self.mesh:
            return x
        self._is_gathering = True
        try:
            gradient = self.mesh, [Partial(ReduceType.kRedAvg)] * self.mesh.ndim
            made = local_part(self._whole(x), gradient)
        finally:
            self._is_gathering = False
        if not all(placement.is_replicated() for placement in x.placements):
            self._sources[id(made.payload)] = x
        return made

    def _pack(self, kept: Tensor) -> Any:
        source = self._sources.get(id(kept.payload))
        return kept if source is None else (source,)

    def _unpack(self, packed: Any) -> Tensor:
        if type(packed) is not tuple:
            return packed  # type: ignore[no-any-return]
        with no_grad():
            return self._whole(packed[0].detach())._local_value()

    def _whole(self, x: Tensor) -> Tensor:
        return reshard(x, self.mesh, [Replicate()] * self.mesh.ndim)
