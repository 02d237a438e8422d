"""``PipelineParallel``: what ``fleet.distributed_model`` makes of a :class:`PipelineLayer` of several stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from argosy.amp import GradScaler
from argosy.distributed.collective import all_reduce
from argosy.distributed.data_parallel import DataParallel
from argosy.distributed.fleet.base.topology import HybridCommunicateGroup
from argosy.distributed.fleet.meta_parallel.hybrid_parallel_optimizer import HybridParallelOptimizer
from argosy.distributed.fleet.meta_parallel.parallel_layers.pp_layers import PipelineLayer, complete_stages
from argosy.distributed.fleet.meta_parallel.pipeline_hooks import PassHooks, PipelineParallelMicroStepLocations
from argosy.distributed.fleet.meta_parallel.sharding_optimizer import DygraphShardingOptimizer
from argosy.distributed.fleet.meta_parallel.stage_sharding import sharding_of_stages
from argosy.distributed.pipeline.memory import PeakBytes
from argosy.distributed.pipeline.trainer import Pipeline, PipelineSettings
from argosy.distributed.reduction import ReduceOp
from argosy.distributed.wrapped_layer import equalize
from argosy.nn.layer import Layer
from argosy_autograd.modes import no_grad
from argosy_autoparallel import ProcessMesh, Shard
from argosy_autoparallel.dist_tensor import ShardedArray
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops.context import context
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["DualPipeVParallel", "NoPipelineParallel", "PipelineDatasetPreprocessor", "PipelineParallel"]


class _BatchForm(NamedTuple):
    """What a batch's tensors are, for which a step is captured: so many inputs, then labels; which of them were given
    in a tuple; the number of the function of loss."""

    inputs: int
    has_input_tuple: bool = False
    has_label_tuple: bool = False
    loss: int = 0


_LETTERS = {"forward": "f", "backward": "b", "backward_input": "b", "backward_weight": "w"}


class PipelineDatasetPreprocessor:
    """A batch that is made when a step begins, by ``function()``: in the place of ``data``."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function

    def __call__(self) -> Any:
        return self.function()


class PipelineParallel(Layer):
    """A model of stages, trained by ``train_batch``: each call is a step of ``accumulate_steps`` microbatches.

    Every rank of a pipeline is given the batch of its pipeline; copies of the pipeline have batches of their own. Where
    layers are split, each part of them is a pipeline beside the others', and gradients are averaged after the step.
    With ``stage`` 2 or 3 of ``sharding_configs`` a stage is on all its copies together, which have parts of gradients,
    or of parameters, too.
    """

    _schedule: str | None = None
    """The schedule, where the class decides."""
    _dp_comm_overlap = _sharding_comm_overlap = False  # gradients of copies are averaged after the backward pass

    def __init__(self, layers: Layer, hcg: HybridCommunicateGroup, strategy: Any) -> None:
        if not isinstance(layers, PipelineLayer):
            raise TypeError(f"PipelineParallel: the model should be a PipelineLayer, got {type(layers).__name__}")
        super().__init__()
        self._layers, self._hcg, self._strategy = layers, hcg, strategy
        configs = strategy.pipeline_configs
        self.accumulate_steps = int(configs.get("accumulate_steps", 1))
        self.micro_batch_size = int(configs.get("micro_batch_size", 1))
        self.num_stages = hcg.get_pipe_parallel_world_size()
        if layers._num_stages != self.num_stages:
            raise ValueError(
                f"PipelineParallel: the model has {layers._num_stages} stages; fleet was initialised for pp_degree "
                f"{self.num_stages}"
            )
        self.total_loss: Tensor | None = None
        self._hooks = PassHooks(layers.get_num_virtual_stages() * self.accumulate_steps)
        self._batch_form = _BatchForm(1)
        self._optimizer: Any = None
        self._pipeline: Pipeline | None = None
        self._sharding = sharding_of_stages(hcg, strategy)
        copies, shards = hcg.get_dp_sep_parallel_group(), hcg.get_sharding_parallel_group()
        self._copies = [copies] if self._is_line and copies.nranks > 1 else []
        self._shards = shards if shards.nranks > 1 and self._sharding is None else None
        for group in (copies, shards):
            equalize(layers, group, split_too=True)

    @property
    def _is_line(self) -> bool:
        """Whether the pipeline is this rank's alone, one rank for each stage."""
        return all(mesh.size == 1 for mesh in self._meshes())

    def _meshes(self) -> list[ProcessMesh]:
        """The meshes of the pipeline's places."""
        if self._sharding is None:
            return [ProcessMesh(ranks, ["dp"]) for ranks in self._hcg.ranks_of_stages()]
        return [ProcessMesh(grid, ["dp", "sharding"]) for grid in self._hcg.grids_of_stages()]

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The model's outputs for a batch of microbatches, on every rank. Raises ValueError for another batch."""
        form = _BatchForm(len(inputs), len(inputs) > 1)
        outputs = self._make_pipeline().predict([*self._entries(inputs), tuple(form)])
        return outputs[0] if len(outputs) == 1 else outputs

    def train_batch(
        self, data: Any, optimizer: Any, lr_scheduler: Any = None, scaler: GradScaler | None = None,
        loss_fn_idx: int = 0, return_micro_batch_loss: bool = False,
    ) -> Tensor:  # fmt: skip
        """One step for ``data``, inputs and labels; the mean loss from before it, on every rank, or with
        ``return_micro_batch_loss`` the share of each microbatch in it, [accumulate_steps]. Of a model with several
        functions of loss that number ``loss_fn_idx`` is trained; the values of all are returned, in a list."""
        self._layers.train()
        chosen = optimizer
        while isinstance(chosen, (HybridParallelOptimizer, DygraphShardingOptimizer)):
            chosen = chosen._inner_opt
        if self._optimizer is not chosen:
            complete_stages(chosen, self._hcg.get_pipe_parallel_group())
            self._optimizer, self._pipeline = chosen, None
        entries = self._set(data, loss_fn_idx)
        if scaler is None or not scaler.is_enable():
            loss = self._make_pipeline().train(entries)
        else:
            loss = self._make_pipeline().train_scaled(entries, scaler, chosen)
        if lr_scheduler is not None:
            lr_scheduler.step()
        self.total_loss = self._losses(loss, return_micro_batch_loss)
        return self.total_loss

    def _losses(self, loss: Tensor, each: bool = False) -> Any:
        """The mean loss, or with ``each`` the share of each microbatch in it; of several functions all of them."""
        pipeline = self._make_pipeline()
        assert pipeline.losses is not None
        found = [loss]
        if each:
            found = [pipeline.losses / self.accumulate_steps]
        for others in pipeline.outputs:
            for group in (*self._copies, *([self._shards] if self._shards else [])):
                all_reduce(others, ReduceOp.AVG, group)
            found.append(others / self.accumulate_steps if each else others.mean())
        found.insert(self._batch_form.loss, found.pop(0))
        return found[0] if len(found) == 1 else found

    def _prepare_training(self, data: Any, optimizer: Any, lr_scheduler: Any) -> Any:
        """``data``, for trainers that call :meth:`forward_backward_pipeline` and update themselves."""
        self.optimizer, self.lr_scheduler = optimizer, lr_scheduler
        self._layers.train()
        return data

    def forward_backward_pipeline(
        self, data: Any, scaler: GradScaler | None = None, static_scheduler: bool = False,
        return_micro_batch_loss: bool = False,
    ) -> Any:  # fmt: skip
        """The forward and backward passes of ``data``, whose gradients are added to those that parameters have; the
        loss as :meth:`train_batch` gives it. What updates them is the caller's. With ``static_scheduler`` nothing runs,
        and the text of :meth:`get_static_scheduler` is returned."""
        if static_scheduler:
            return self.get_static_scheduler()
        self._layers.train()
        scaled = scaler if scaler is not None and scaler.is_enable() else None
        loss = self._make_pipeline().accumulate(self._set(data, 0), scaled)
        self.total_loss = self._losses(loss, return_micro_batch_loss)
        return self.total_loss

    def get_static_scheduler(self) -> str:
        """What this rank runs, in order: ``f1;b0;`` are the forward pass of microbatch 1 and the backward pass of 0
        (``b`` its gradients of inputs and ``w`` those of weights, where they are apart). With several stages on a rank
        their number there follows, ``f1_vp0;``."""
        settings, chunks = self._make_pipeline().settings, self._layers.get_num_virtual_stages()
        orders = settings.orders(self.num_stages * settings.chunks)
        own = orders[self._hcg.get_stage_id()]
        place = {stage: f"_vp{i}" if chunks > 1 else "" for i, stage in enumerate(sorted({r.chunk for r in own}))}
        return "".join(f"{_LETTERS[run.piece]}{run.microbatch}{place[run.chunk]};" for run in own)

    def eval_batch(
        self, data: Any, compute_loss: bool = False, loss_fn_idx: int = 0, return_host_tensor: bool = False
    ) -> Any:
        """The outputs for the inputs of ``data`` on every rank, or with ``compute_loss`` the mean loss, as
        :meth:`train_batch` gives it. ``return_host_tensor`` changes nothing."""
        self._layers.eval()
        entries = self._set(data, loss_fn_idx)
        with no_grad():
            if compute_loss:
                return self._losses(self._make_pipeline().evaluate(entries))
            outputs = self._make_pipeline().predict([*entries[: self._batch_form.inputs], entries[-1]])
            return outputs[0] if len(outputs) == 1 else outputs

    def peak_bytes(self) -> PeakBytes:
        """How much memory a step takes on this rank at most. Raises RuntimeError before the first one."""
        return self._make_pipeline().peak_bytes(self._optimizer)

    def is_pipeline_first_stage(self, ignore_virtual: bool = False) -> bool:
        """Whether this rank has the first stage."""
        return self._hcg.get_stage_id() == 0

    def is_pipeline_last_stage(self, ignore_virtual: bool = False) -> bool:
        """Whether this rank has the last stage; of those in a V with DualPipeV that is the first rank."""
        last = self._layers._num_layers - 1
        return bool(self._layers.get_stage_from_index(last) == self._hcg.get_stage_id())

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """Names and parameters of this rank's stages."""
        own = {id(x) for x in self._layers.parameters()}
        return (pair for pair in super().named_parameters(*args, **kwargs) if id(pair[1]) in own)

    def parameters(self, include_sublayers: bool = True) -> list[Tensor]:
        """The parameters of this rank's stages."""
        return self._layers.parameters(include_sublayers)

    # ---- hooks

    def register_hook(self, location: PipelineParallelMicroStepLocations, hook: Callable[..., Any]) -> None:
        """Call ``hook`` around passes: see :meth:`PipelineParallelMicroStepCallback.register_hook`."""
        self._hooks.callbacks.register_hook(location, hook)

    def register_forward_pipeline_parallel_hook(self, location: int, hook: Callable[[int], Any]) -> None:
        """Call ``hook(location)`` before the forward pass of that number in a step. Raises ValueError for a number that
        there is not."""
        self._hooks.forward.register_hook(location, hook)

    def register_backward_pipeline_parallel_hook(self, location: int, hook: Callable[[int], Any]) -> None:
        """As :meth:`register_forward_pipeline_parallel_hook`, before a backward pass."""
        self._hooks.backward.register_hook(location, hook)

    def register_bubble_pipeline_parallel_hook(self, location: int, hook: Callable[[int], Any]) -> None:
        """Raises ValueError, as the wheel's does: nothing says when a rank waits."""
        raise ValueError("Bubble hooks are not supported yet.")

    @property
    def forward_pipeline_parallel_hook_capacity(self) -> int:
        """How many forward passes a step has on this rank."""
        return self._hooks.forward.hooks_capacity

    @property
    def backward_pipeline_parallel_hook_capacity(self) -> int:
        """How many backward passes a step has on this rank."""
        return self._hooks.backward.hooks_capacity

    @property
    def bubble_pipeline_parallel_hook_capacity(self) -> int:
        """0."""
        return 0

    # ---- what a microbatch is

    def _make_pipeline(self) -> Pipeline:
        if self._pipeline is None:
            configs = self._strategy.pipeline_configs
            mode = self._schedule or configs.get("schedule_mode", "1F1B")
            chunks = self._layers.get_num_virtual_stages()
            settings = PipelineSettings(mode, self.accumulate_steps, self.micro_batch_size, chunks)
            self._pipeline = Pipeline(
                settings, self._loss_of, self._outputs_of, self._update, "CINN", self._meshes(), self._copies,
                self._shards, self._hcg.expert_ranks() if self._sharding is None else None, self._sharding,
            )  # fmt: skip
            self._pipeline.shared = self._layers.shared_weights()
            self._pipeline.hooks = self._hooks
        return self._pipeline

    def _set(self, data: Any, loss_number: int) -> list[Any]:
        if isinstance(data, PipelineDatasetPreprocessor):
            data = data()
        if not isinstance(data, (tuple, list)) or len(data) != 2:
            raise ValueError(
                "PipelineParallel: data is a pair of inputs and labels, each a tensor or a tuple of them, or a list of "
                "microbatches in the place of a tensor"
            )
        inputs, labels = (tuple(map(self._batch, _tuple(given))) for given in data)
        tuples = isinstance(data[0], tuple), isinstance(data[1], tuple)
        self._batch_form = _BatchForm(len(inputs), tuples[0], tuples[1], loss_number)
        self._hooks.inputs = len(inputs)
        return [*self._entries([*inputs, *labels]), tuple(self._batch_form)]  # a plain value of the capture's key

    def _batch(self, given: Any) -> Any:
        """The batch of which a list gives the microbatches."""
        if not isinstance(given, list):
            return given
        if len(given) != self.accumulate_steps:
            raise ValueError(
                f"PipelineParallel: {len(given)} microbatches for accumulate_steps {self.accumulate_steps}"
            )
        return get_operator("concat")(given, 0)

    def _entries(self, tensors: Sequence[Any]) -> list[Any]:
        """The batch of this pipeline as part of that of all copies."""
        if self._is_line:
            return list(tensors)
        mesh = next(mesh for mesh in self._meshes() if mesh.contains(context().rank))
        return [_part_of_all(x, mesh) if type(x) is Tensor and x.ndim else x for x in tensors]

    def _loss_of(self, entries: Sequence[Any]) -> Any:
        *tensors, given_form = entries
        form = _BatchForm(*given_form)
        functions = self._layers._loss_fn
        if not 0 <= form.loss < len(functions) or functions[form.loss] is None:
            raise ValueError(f"PipelineParallel: the PipelineLayer has no loss_fn of number {form.loss}")
        labels, outputs = tensors[form.inputs :], self._outputs_of([*tensors[: form.inputs], given_form])
        given = tuple(labels) if form.has_label_tuple else labels[0]
        made = [loss(outputs, given) for loss in functions]
        trained = made.pop(form.loss)
        return [trained, *(other.detach().reshape([1]) for other in made)]

    def _outputs_of(self, entries: Sequence[Any]) -> Any:
        *inputs, form = entries
        return self._layers(tuple(inputs) if _BatchForm(*form).has_input_tuple else inputs[0])

    def _update(self) -> None:
        self._optimizer.step()
        self._optimizer.clear_grad()


class DualPipeVParallel(PipelineParallel):
    """A ``PipelineLayer`` made with ``use_dualpipev``: two stages on each rank, by the schedule DualPipeV."""

    _schedule = "DualPipeV"


class NoPipelineParallel(PipelineParallel):
    """A ``PipelineLayer`` of one stage: ``train_batch`` and the like as of several; called it computes eagerly, and
    gradients of backward passes are means over the copies."""

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the layers give."""
        made = vars(self).get("_eager")  # no sublayer: parameters are those of the layers
        if made is None:
            copies = self._hcg.get_dp_sep_parallel_group()
            made = vars(self)["_eager"] = DataParallel(self._layers) if copies.nranks > 1 else self._layers
        return made(*inputs, **kwargs)


def _tuple(given: Any) -> tuple[Any, ...]:
    return given if isinstance(given, tuple) else (given,)


def _part_of_all(x: Tensor, mesh: ProcessMesh) -> Tensor:
    payload = x.payload
    shape = (payload.shape[0] * mesh.size, *payload.shape[1:])
    layout = Layout(mesh, [Shard(0)] * mesh.ndim)
    return Tensor._wrap(ShardedArray(payload, shape, payload.dtype, layout), x.stop_gradient)
