"""Plans of :func:`parallelize` for long sequences, split along the mesh dimension ``"sep"``, and attention on them.

``"all2all"``: sequences are in order; within attention heads are split instead (Ulysses; Jacobs et al., 2023).
``"p2p"``: each rank has a block from the front and the one as far from the end, so that causal masks leave all ranks as
much (zig-zag order); queries stay where they are, and keys and values go round (Liu et al., 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.distributed.plans import Hook, PlanBase
from argosy.nn.layer import Layer
from argosy.nn.split_sequences import lay_out, zigzag_order
from argosy_autoparallel import ProcessMesh
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["ContextParallel", "PrepareContextParallel"]

_SEQUENCE, _HEADS = 1, 2


class _ContextPlan(PlanBase):
    def __init__(self, backend: str = "p2p") -> None:
        if backend not in ("p2p", "all2all"):
            raise ValueError(f"{type(self).__name__}: backend is 'p2p' or 'all2all', not {backend!r}")
        self.backend = backend


class PrepareContextParallel(_ContextPlan):
    """From the input of this layer on sequences are split: tensors [B, S], of ``"p2p"`` in zig-zag order. Positions are
    to be among the inputs then."""

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        """See :class:`PlanBase`."""
        hook = self.p2p_split_input_pre_hook if self.backend == "p2p" else self.all2all_split_input_pre_hook
        layer.register_forward_pre_hook(hook(process_mesh))

    def all2all_split_input_pre_hook(self, process_mesh: ProcessMesh) -> Hook:
        """The hook that splits inputs along the second axis."""
        return lambda layer, inputs: _change_tensors(inputs, lambda x: lay_out(x, process_mesh, _SEQUENCE))

    def p2p_split_input_pre_hook(self, process_mesh: ProcessMesh) -> Hook:
        """The hook that puts inputs in zig-zag order along the second axis and splits them."""
        parts = process_mesh.get_dim_size("sep")

        def change(x: Tensor) -> Tensor:
            order = Tensor(zigzag_order(x.shape[_SEQUENCE], parts))
            return lay_out(get_operator("index_select")(x, order, _SEQUENCE), process_mesh, _SEQUENCE)

        return lambda layer, inputs: _change_tensors(inputs, change)


class ContextParallel(_ContextPlan):
    """This layer calls ``scaled_dot_product_attention`` with its inputs, query, key and value [B, S, H, D] that are
    split along S; with ``"p2p"`` it is called with ``backend="p2p"``, which it passes on."""

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        """See :class:`PlanBase`."""
        if self.backend == "p2p":
            layer.register_forward_pre_hook(self.p2p_reshard_pre_hook(process_mesh), with_kwargs=True)
        else:
            layer.register_forward_pre_hook(self.all2all_reshard_pre_hook(process_mesh))
            layer.register_forward_post_hook(self.all2all_reshard_post_hook(process_mesh))

    def all2all_reshard_pre_hook(self, process_mesh: ProcessMesh) -> Hook:
        """The hook that splits heads instead of sequences."""
        return lambda layer, inputs: _change_tensors(inputs, lambda x: lay_out(x, process_mesh, _HEADS))

    def all2all_reshard_post_hook(self, process_mesh: ProcessMesh) -> Hook:
        """The hook that splits sequences instead of heads."""
        return lambda layer, inputs, output: lay_out(output, process_mesh, _SEQUENCE)

    def p2p_reshard_pre_hook(self, process_mesh: ProcessMesh) -> Hook:
        """The hook that names the backend."""
        return lambda layer, inputs, keywords: (inputs, {**keywords, "backend": "p2p"})


def _change_tensors(given: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(given, (tuple, list)):
        return type(given)([change(x) if isinstance(x, Tensor) else x for x in given])
    return change(given)
