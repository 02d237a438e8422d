"""Training by a schedule: microbatches through the stages of a model, then one update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy.amp import GradScaler
from argosy.distributed.collective import all_reduce
from argosy.distributed.group import Group
from argosy.distributed.pipeline.capture import CapturedStep, PipelinedFunction
from argosy.distributed.pipeline.gradients import Gradients
from argosy.distributed.pipeline.marks import begin_stages
from argosy.distributed.pipeline.memory import PeakBytes, local_bytes, state_bytes
from argosy.distributed.pipeline.microbatches import join_rows, row_shares, split_batch
from argosy.distributed.pipeline.placing import StageMeshes
from argosy.distributed.pipeline.step import Hooks, PipelineStep
from argosy.distributed.reduction import ReduceOp
from argosy.distributed.semi_auto import get_mesh
from argosy.distributed.sharded_optimizer import ShardingStage1, ShardingStage2, ShardingStage3
from argosy.distributed.sharded_scaler import shard_scaler
from argosy.distributed.wrapped_layer import ExpertRanks
from argosy.jit.static_function import StaticFunction
from argosy.optimizer.optimizer import Optimizer
from argosy_autoparallel import ProcessMesh
from argosy_autoparallel.pipeline import schedules
from argosy_autoparallel.pipeline.step_lists import forward_orders, ranks_of_stages
from argosy_autoparallel.schedule import Run, ScheduleError
from argosy_phi_ops.capture.tracer import CapturedProgram
from argosy_phi_ops.context import context
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["Pipeline", "PipelineSettings"]

Orders = list[list[Run]]
_SCHEDULES: dict[str, Callable[[int, int, int], Orders]] = {
    "FThenB": lambda ranks, count, chunks: schedules.f_then_b(ranks, count),
    "1F1B": lambda ranks, count, chunks: schedules.one_f_one_b(ranks, count),
    "Eager1F1B": lambda ranks, count, chunks: schedules.eager_one_f_one_b(ranks, count),
    "VPP": schedules.interleaved_one_f_one_b,
    "ZBH1": lambda ranks, count, chunks: schedules.zb_h1(ranks, count),
    "ZBVPP": lambda ranks, count, chunks: schedules.zb_v(ranks, count),
    "DualPipeV": lambda ranks, count, chunks: schedules.dual_pipe_v(ranks, count),
}
_SPLIT = frozenset({"ZBH1", "ZBVPP", "DualPipeV"})
_TURNED = frozenset({"ZBVPP", "DualPipeV"})
"""Schedules in which rank r of p has the stages r and 2p - 1 - r."""


class PipelineSettings:
    """``schedule`` by name; ``microbatches`` of a step, each of ``rows``; ``chunks`` of the model on each rank;
    ``memory`` of activations, in multiples of what 1F1B holds, for a schedule that is searched for, -1 for none."""

    def __init__(self, schedule: str, microbatches: int, rows: int, chunks: int = 1, memory: float = -1) -> None:
        name = "VPP" if schedule == "interleaved" or (schedule == "1F1B" and chunks > 1) else schedule
        self.schedule, self.microbatches, self.rows, self.memory = name, microbatches, rows, memory
        self.chunks = 2 if name in _TURNED else chunks if name == "VPP" else 1

    @property
    def splits(self) -> bool:
        """Whether gradients of weights are computed apart."""
        return self.schedule in _SPLIT

    def orders(self, stages: int) -> Orders:
        """What each rank of the pipeline runs. Raises ScheduleError where the stages do not fill the ranks."""
        ranks, rest = divmod(stages, self.chunks)
        if rest:
            raise ScheduleError(f"{self.schedule}: {stages} stages do not make {self.chunks} for each rank")
        if self.memory != -1:
            return schedules.search_zero_bubble(ranks, self.microbatches, self.memory, self.chunks)
        return _SCHEDULES[self.schedule](ranks, self.microbatches, self.chunks)


class Pipeline:
    """The steps of a model that is cut into stages.

    ``loss_of(entries)`` is the loss of a microbatch, or a list of it and of outputs that :attr:`outputs` then has
    of the last batch, ``outputs_of(entries)`` what the model gives, ``update()`` changes the parameters by their
    gradients. The gradient is that of the mean of the microbatches' losses. ``meshes`` are those of the pipeline's
    ranks, where they are known; over ``copies``, groups of ranks with the same stage of other pipelines, gradients
    and losses are averaged, and over ``shards``, whose members each update parameters of their own (ZeRO 1;
    Rajbhandari et al., 2020). ``sharding`` is how the meshes of stages split gradients and parameters (ZeRO 2 and 3).
    Parameters with ``no_sync`` are experts of this rank's own, where ``experts`` says so.
    """

    def __init__(
        self, settings: PipelineSettings, loss_of: Callable[..., Any], outputs_of: Callable[..., Any],
        update: Callable[[], Any], backend: Any = "CINN", meshes: Sequence[ProcessMesh] = (),
        copies: Sequence[Group] = (), shards: Group | None = None, experts: ExpertRanks | None = None,
        sharding: ShardingStage1 | None = None,
    ) -> None:  # fmt: skip
        self.settings, self.backend, self.meshes, self.copies = settings, backend, list(meshes), list(copies)
        scatters = sharding if isinstance(sharding, ShardingStage2) else None
        self.gradients, self.shards, self._sharding = Gradients(shards, experts, scatters), shards, sharding
        share = settings.microbatches

        def train(*entries: Any) -> Any:
            begin_stages()
            loss, *outputs = _as_list(loss_of(entries))
            (loss / share).backward()
            return [loss, *outputs]

        def train_scaled(*entries: Any) -> Any:
            begin_stages()
            *given, scale = entries
            loss, *outputs = _as_list(loss_of(given))
            (loss * scale / share).backward()
            return [loss, *outputs]

        def evaluate(*entries: Any) -> Any:
            begin_stages()
            return _as_list(loss_of(entries))

        def predict(*entries: Any) -> Any:
            begin_stages()
            return outputs_of(entries)

        self._functions = {
            f.__name__: PipelinedFunction(f, backend, settings.splits, self._meshes)
            for f in (train, train_scaled, evaluate, predict)
        }
        self._update = StaticFunction(update, None, backend, True)
        self._steps: dict[tuple[int, ...], PipelineStep] = {}
        self.outputs: list[Tensor] = []
        self.losses: Tensor | None = None
        """Those of the last batch's microbatches, [microbatches]."""
        self.hooks: Hooks | None = None
        """What is called around the passes of training steps, where it is true."""
        self.shared: list[Tensor] = []
        """Weights that are to be in a stage."""

    def train(self, entries: Sequence[Any]) -> Tensor:
        """One step; the mean of the microbatches' losses from before it, on every rank."""
        return self._mean(self._run("train", entries, lambda: self._end_step(self._update)), entries)

    def train_scaled(self, entries: Sequence[Any], scaler: GradScaler, optimizer: Any) -> Tensor:
        """As :meth:`train`, with the losses scaled up by ``scaler``, which skips the step on every rank where a
        gradient anywhere overflows."""
        shard_scaler(scaler)

        def update() -> None:
            scaler.step(optimizer)
            scaler.update()

        given = [*entries, _scale_of(scaler)]
        return self._mean(self._run("train_scaled", given, lambda: self._end_step(update)), entries)

    def accumulate(self, entries: Sequence[Any], scaler: GradScaler | None = None) -> Tensor:
        """The forward and backward passes alone, whose gradients are added to those that parameters have; the mean
        loss, on every rank."""
        if scaler is None:
            results = self._run("train", entries)
        else:
            results = self._run("train_scaled", [*entries, _scale_of(scaler)])
        self._hand_out_gradients()
        return self._mean(results, entries)

    def _end_step(self, update: Callable[[], Any]) -> None:
        """What the list of a step ends with."""
        self._hand_out_gradients()
        update()
        self.gradients.publish()
        self.gradients.clear()

    def _hand_out_gradients(self) -> None:
        self.gradients.average(self.copies)
        self.gradients.hand_out()

    def evaluate(self, entries: Sequence[Any]) -> Tensor:
        """The mean of the microbatches' losses, on every rank."""
        return self._mean(self._run("evaluate", entries), entries)

    def predict(self, entries: Sequence[Any]) -> list[Tensor]:
        """The model's outputs for the whole batch, in the order of its rows, on every rank."""
        return _join_results(self._run("predict", entries), row_shares(entries))

    def _mean(self, results: Sequence[Sequence[Any]], entries: Sequence[Any]) -> Tensor:
        losses = np.stack([np.asarray(loss) for loss, *_ in results])
        self.losses = Tensor._wrap(StridedArray(losses.astype(np.float32) if losses.itemsize < 4 else losses))
        self.outputs = _join_results([each[1:] for each in results], row_shares(entries))
        for group in self.copies if self.shards is None else (*self.copies, self.shards):
            all_reduce(self.losses, ReduceOp.AVG, group)
        found = self.losses.payload.array()
        return Tensor._wrap(StridedArray(np.asarray(sum(found[1:], found[0]) / len(found), losses.dtype)))

    def _run(self, mode: str, entries: Sequence[Any], update: Callable[[], None] | None = None) -> list[list[Any]]:
        microbatches = split_batch(entries, self.settings.microbatches, self.settings.rows)
        given = [[x for x in m if type(x) is Tensor] for m in microbatches]
        hooks = self.hooks
        if mode.startswith("train"):
            self.gradients.begin()
        else:
            hooks = None
        return self.step(mode, microbatches, update is not None).run(given, hooks, update)

    def step(self, mode: str, microbatches: Sequence[Sequence[Any]], updates: bool = False) -> PipelineStep:
        """The lists and pieces for such microbatches, made when there are none; with ``updates`` they end with it."""
        function = self._functions[mode]
        captured = [function.find(*microbatches[0])]
        if [_shape(x) for x in microbatches[-1]] != [_shape(x) for x in microbatches[0]]:
            captured.append(function.find(*microbatches[-1]))
            captured[0] = function.find(*microbatches[0])  # another one where the second capture moved states
        key = (updates, *map(id, captured))
        if key not in self._steps:
            self._steps[key] = self._make_step(mode, captured, updates)
        return self._steps[key]

    def peak_bytes(self, optimizer: Optimizer | None) -> PeakBytes:
        """This rank's memory of the steps made so far, with the states of ``optimizer``. Raises RuntimeError before
        there is a step."""
        if not self._steps:
            raise RuntimeError("there is no step yet: the first batch makes it")
        steps = list(self._steps.values())
        return PeakBytes(
            local_bytes(x for step in steps for x in step.parameters), self.gradients.bytes_on_rank(context().rank),
            state_bytes(optimizer), max(step.peak_of_values for step in steps),
        )  # fmt: skip

    def _make_step(self, mode: str, captured: Sequence[CapturedStep], updates: bool) -> PipelineStep:
        settings = self.settings
        read = {id(tensor) for tensor in captured[0].captured.states}
        if absent := [weight.name for weight in self.shared if id(weight) not in read]:
            raise ScheduleError(f"the shared weights {absent} are in no stage: no layer's function reads them")
        stages = captured[0].whole.stages
        orders = settings.orders(stages)
        if not mode.startswith("train"):
            orders = forward_orders(ranks_of_stages(orders, stages), settings.microbatches)
        return PipelineStep(captured, orders, settings.microbatches, self.gradients, self.backend, updates)

    # ---- where stages lie

    def _meshes(self, marked: int, captured: CapturedProgram) -> StageMeshes:
        """The meshes of stages: those that parameters lie on, or parts of one mesh for a model with marks."""
        laid = _own_meshes(captured) if marked == 1 else []
        if marked == 1:
            return StageMeshes(laid or [self._world_mesh()], by_layout=bool(laid))
        orders = self.settings.orders(marked)
        owners = ranks_of_stages(orders, marked)
        ranks = self._ranks_of_pipeline(len(orders))
        split = self._sharding.split_shape if isinstance(self._sharding, ShardingStage3) else None
        return StageMeshes([ranks[owner] for owner in owners], split=split)

    def _world_mesh(self) -> ProcessMesh:
        return ProcessMesh(list(range(context().size)))

    def _ranks_of_pipeline(self, count: int) -> list[ProcessMesh]:
        """The mesh of each rank of the pipeline: a part along the dimension "pp" of the rank's mesh, else the ranks in
        order."""
        if self.meshes:
            return self.meshes
        mesh = get_mesh()
        if mesh is not None and "pp" in mesh.dim_names:
            if mesh.get_dim_size("pp") != count:
                raise ScheduleError(
                    f"the model is cut for a pipeline of {count} ranks; along 'pp' {mesh!r} has "
                    f"{mesh.get_dim_size('pp')}"
                )
            return [mesh.get_mesh_with_dim("pp", i) for i in range(count)]
        each, rest = divmod(context().size, count)
        if rest or not each:
            raise ScheduleError(f"a pipeline of {count} ranks does not divide {context().size}, which were launched")
        return [ProcessMesh(list(range(i * each, (i + 1) * each))) for i in range(count)]


def _own_meshes(captured: CapturedProgram) -> list[ProcessMesh]:
    """The meshes of the states, in the order in which they are first read."""
    meshes = [getattr(tensor.payload, "mesh", None) for tensor in captured.states]
    return list(dict.fromkeys(mesh for mesh in meshes if mesh is not None))


def _scale_of(scaler: GradScaler) -> Any:
    return scaler.scale(Tensor(np.ones((), np.float32)))


def _as_list(made: Any) -> list[Any]:
    return list(made) if isinstance(made, (list, tuple)) else [made]


def _join_results(results: Sequence[Sequence[Any]], shares: int) -> list[Tensor]:
    """The results of microbatches, in the order of the rows of a batch that so many ranks share."""
    return [Tensor._wrap(StridedArray(join_rows(parts, shares))) for parts in zip(*results, strict=True)]


def _shape(x: Any) -> Any:
    return tuple(x.shape) if type(x) is Tensor else None
