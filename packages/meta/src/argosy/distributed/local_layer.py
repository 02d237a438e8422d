"""``LocalLayer``: a layer whose ``forward`` works on this rank's parts of distributed tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.distributed.local_parts import dtensor_from_local, local_part
from argosy.nn.layer import Layer
from argosy.nn.nesting import flatten, pack_as
from argosy_autoparallel import Placement, ProcessMesh
from argosy_tensorcore.tensor import Tensor

__all__ = ["LocalLayer"]

Place = tuple[ProcessMesh, Sequence[Placement]]


class LocalLayer(Layer):
    """Calls give ``forward`` the parts of distributed arguments, and put its results together.

    out_dist_attrs: mesh and placements of each result, results of nests in their order. grad_dist_attrs: those of the
    gradient of each positional argument (None, or none for it: as the argument lies); Partial where ranks hold the same
    part but compute different terms of its gradient. Calls raise ValueError for another number of results.
    """

    def __init__(self, out_dist_attrs: Sequence[Place], grad_dist_attrs: Sequence[Place | None] = ()) -> None:
        super().__init__()
        self.out_dist_attrs = list(out_dist_attrs)
        self.grad_dist_attrs = list(grad_dist_attrs)

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """What ``forward`` gives on the parts, as distributed tensors."""
        places = [*self.grad_dist_attrs, *[None] * len(inputs)]
        parts = [local_part(x, places[i]) if isinstance(x, Tensor) else x for i, x in enumerate(inputs)]
        given = super().__call__(*parts, **{key: _part(x) for key, x in kwargs.items()})
        single = not isinstance(given, (list, tuple, dict))
        results = [given] if single else flatten(given)
        if len(results) != len(self.out_dist_attrs):
            raise ValueError(
                f"{type(self).__name__}: {len(self.out_dist_attrs)} out_dist_attrs for {len(results)} results"
            )
        made = [dtensor_from_local(y, *place) for y, place in zip(results, self.out_dist_attrs, strict=True)]
        return made[0] if single else pack_as(given, made)


def _part(x: Any) -> Any:
    return local_part(x, None) if isinstance(x, Tensor) else x
