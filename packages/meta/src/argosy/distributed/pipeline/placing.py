"""Where stages lie: a mesh for each, and the states of a captured step put on the meshes that read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from argosy_autoparallel import Placement, ProcessMesh, Replicate
from argosy_autoparallel.api import empty_payload
from argosy_autoparallel.dist_tensor import ShardedArray, replicated_payload
from argosy_autoparallel.groups import ensure_groups
from argosy_autoparallel.pipeline.cut import Cut
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops.capture.tracer import CapturedProgram
from argosy_phi_ops.context import context
from argosy_pir import Value
from argosy_tensorcore.tensor import Tensor

__all__ = ["StageMeshes"]

Split = Callable[[Sequence[int], ProcessMesh, Sequence[Placement]], list[Placement]]


class StageMeshes:
    """``of_stages`` are the meshes of the stages; ``by_layout``: layouts decide which operation is of which stage.
    ``split(shape, mesh, placements)`` are the placements of what is trained, where nobody has said them."""

    def __init__(self, of_stages: Sequence[ProcessMesh], by_layout: bool = False, split: Split | None = None) -> None:
        self.of_stages, self.by_layout, self._split = list(of_stages), by_layout, split
        for mesh in self.of_stages:
            ensure_groups(mesh)

    def known_stages(self, captured: CapturedProgram) -> tuple[dict[Value, int], dict[ProcessMesh, int]]:
        """The stages of states and of meshes, where these decide."""
        if not self.by_layout:
            return {}, {}
        of_meshes = {mesh: stage for stage, mesh in enumerate(self.of_stages)}
        of_states: dict[Value, int] = {}
        for state, tensor in zip(captured.program.states, captured.states, strict=True):
            mesh = getattr(tensor.payload, "mesh", None)
            if mesh in of_meshes:
                of_states[state.argument] = of_meshes[mesh]
        return of_states, of_meshes

    def place(self, captured: CapturedProgram, whole: Cut) -> None:
        """Put each state that is trained or written on the mesh of its stage; one that stages share on a mesh of them
        all, of which each has a copy."""
        for number, tensor in enumerate(captured.states):
            stages = whole.stages_of_state(number)
            if stages and (
                number in captured.written or not tensor.stop_gradient or type(tensor.payload) is ShardedArray
            ):
                self._place(tensor, stages)

    def _place(self, tensor: Tensor, stages: Sequence[int]) -> None:
        meshes = list(dict.fromkeys(self.of_stages[stage] for stage in stages))
        payload = tensor.payload
        placements = self._placements(tensor, meshes[0])
        if len(meshes) == 1:
            target = Layout(meshes[0], placements)
        elif type(payload) is ShardedArray and payload.mesh == _joint(meshes):
            return
        else:
            target = Layout(_joint(meshes), [Replicate(), *placements])
        if type(payload) is ShardedArray and payload.layout == target:
            return
        ensure_groups(target.mesh)
        if type(payload) is not ShardedArray and not target.mesh.contains(context().rank):
            held = empty_payload(payload.shape, payload.dtype, target.mesh, target.placements)
            tensor.payload = held.on_device(payload.device)
            return
        whole = payload if type(payload) is ShardedArray else replicated_payload(payload.to_host(), target.mesh)
        tensor.payload = whole.relayout(target).on_device(payload.device)

    def _placements(self, tensor: Tensor, mesh: ProcessMesh) -> list[Placement]:
        if type(tensor.payload) is ShardedArray:
            return list(tensor.payload.placements)
        whole: list[Placement] = [Replicate()] * mesh.ndim
        return whole if self._split is None or tensor.stop_gradient else self._split(tensor.shape, mesh, whole)

    def layouts(self, tensor: Tensor) -> Mapping[int, Layout]:
        """How a state lies on the mesh of each stage that has it."""
        payload = tensor.payload
        if type(payload) is not ShardedArray:
            return {}
        ranks = set(payload.mesh.process_ids)
        placements = payload.placements[payload.mesh.ndim - self.of_stages[0].ndim :]
        return {
            stage: Layout(mesh, placements)
            for stage, mesh in enumerate(self.of_stages)
            if ranks.issuperset(mesh.process_ids)
        }


def _joint(meshes: Sequence[ProcessMesh]) -> ProcessMesh:
    """The mesh of several, one beside the other."""
    return ProcessMesh(np.stack([mesh.mesh for mesh in meshes]), ["stage", *meshes[0].dim_names])
