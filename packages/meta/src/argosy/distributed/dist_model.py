"""``distributed.to_static``: a whole training step as one program, cut into one for each rank.

What is captured is the step of one device; the layouts that tensors were annotated with decide the rest. See
:mod:`argosy.jit.partitioned_program`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NoReturn

from argosy.distributed.environment import environment
from argosy.distributed.fleet.recompute.recompute import recompute_layers
from argosy.distributed.pipeline.marks import cut_at_class, stage_count
from argosy.distributed.pipeline.memory import PeakBytes, local_bytes, state_bytes
from argosy.distributed.pipeline.trainer import Pipeline, PipelineSettings
from argosy.distributed.pipeline.whole_step import ScheduledFunction
from argosy.distributed.semi_auto import reshard, shard_tensor
from argosy.distributed.sharded_optimizer import ShardingStage3
from argosy.distributed.strategy import Strategy
from argosy.distributed.strategy_effects import merging_of, precision_of, regions_of, scaler_of, shard_states
from argosy.nn.layer import Layer
from argosy.optimizer.optimizer import Optimizer
from argosy_autograd.modes import no_grad
from argosy_autoparallel import ProcessMesh, Replicate
from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.declare.signature import ATTRIBUTE
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = ["DistModel", "to_static"]

_MODES = ("train", "eval", "predict")
_PROGRAMS = (*_MODES, "merge")


def to_static(
    layer: Layer,
    loader: Any = None,
    loss: Callable[..., Any] | None = None,
    optimizer: Optimizer | None = None,
    strategy: Strategy | None = None,
    input_spec: Sequence[Any] | None = None,
) -> DistModel:
    """The model whose calls run as compiled programs, one for each of its modes.

    loss: called with the outputs of ``layer`` and the labels, as many of them as it takes. ``loader`` is accepted for
    compatibility: shapes are taken from the batches. ``input_spec``: what batches look like, as
    :meth:`DistModel.expect` says. Raises NotImplementedError for parts of ``strategy`` that are enabled and not built,
    TypeError for another kind of layer or optimizer.
    """
    chosen = strategy if strategy is not None else Strategy()
    chosen.check_implemented()
    environment()
    return DistModel(layer, loader, loss, optimizer, chosen, None, input_spec)


class DistModel:
    """A layer with its loss and optimizer as compiled programs: call it with a batch.

    Modes: ``train()`` updates and returns the loss from before, ``eval()`` the loss, ``predict()`` the outputs. Where
    gradients of several batches are merged every so many calls update. ``metrics`` are updated by each call that has
    labels.
    """

    def __init__(
        self,
        layer: Layer,
        loader: Any,
        loss: Callable[..., Any] | None = None,
        optimizer: Optimizer | None = None,
        strategy: Strategy | None = None,
        metrics: Sequence[Any] | None = None,
        input_spec: Sequence[Any] | None = None,
    ) -> None:
        if not isinstance(layer, Layer) or not (optimizer is None or isinstance(optimizer, Optimizer)):
            given = f"{type(layer).__name__} and {type(optimizer).__name__}"
            raise TypeError(f"distributed.to_static takes a Layer and an Optimizer, or None for that, not {given}")
        self.network = layer
        self._loader = loader
        self._loss = loss
        self._optimizer = optimizer
        self._strategy = Strategy() if strategy is None else strategy
        self._steps = {mode: ScheduledFunction(getattr(self, f"_{mode}_step"), "CINN", mode) for mode in _PROGRAMS}
        self.mode = "predict"
        self._metrics = list(metrics or ())
        self._specs: list[Any] = []
        if input_spec is not None:
            self.expect(input_spec)
        self._merging = merging_of(self._strategy, optimizer)
        self._batches = 0
        self._scaler = scaler_of(self._strategy.amp)
        if (recomputing := self._strategy.recompute).enable and recomputing.checkpoints:
            recompute_layers(layer, recomputing.checkpoints, "Strategy.recompute")
        if optimizer is not None and self._strategy.sharding.enable:
            shard_states(optimizer, self._strategy.sharding)
        self._pipeline = self._make_pipeline() if self._strategy.pipeline.enable else None
        for step in self._steps.values():
            step.overlap = self._strategy.overlaps
            step.reshard_after_use = isinstance(getattr(optimizer, "_placing", None), ShardingStage3)
        if loss is not None:
            self.train() if optimizer is not None else self.eval()

    # ---- modes

    def train(self) -> None:
        """Calls train. Raises RuntimeError without a loss or an optimizer."""
        if self._loss is None or self._optimizer is None:
            raise RuntimeError("train() needs a loss and an optimizer: give them to distributed.to_static")
        self.mode = "train"
        self.network.train()

    def eval(self) -> None:
        """Calls compute the loss. Raises RuntimeError without one."""
        if self._loss is None:
            raise RuntimeError("eval() needs a loss: give it to distributed.to_static")
        self.mode = "eval"
        self.network.eval()

    def predict(self) -> None:
        """Calls compute the outputs."""
        self.mode = "predict"
        self.network.eval()

    # ---- calls

    def expect(self, specs: Sequence[Any]) -> None:
        """Refuse batches whose entries have other shapes (None and -1 stand for any size) or dtypes than ``specs``:
        InputSpecs of inputs and labels, or a list of each. One that has a ``mesh`` and ``placements`` says where its
        entry lies, which may be given as an ordinary tensor.
        """
        self._specs = _flatten(specs)

    def __call__(self, *args: Any) -> Any:
        """Run a batch: inputs, then labels; lists, tuples and dicts are taken apart. Raises ValueError for one that is
        not as expected."""
        entries = _flatten(args)
        entries = [_conform(i, x, spec) for i, (x, spec) in enumerate(zip_longest(entries, self._specs))]
        if self._pipeline is not None:
            return self._run_pipeline(self._pipeline, entries)
        if self.mode == "train":
            self._batches += 1
            step = self._steps["merge" if self._batches % self._merging.steps else "train"]
            return self._note_metrics(step(*entries), entries)
        with no_grad():
            made = self._steps[self.mode](*entries)
            return made if self.mode == "predict" else self._note_metrics(made, entries)

    def _note_metrics(self, made: Any, entries: Sequence[Any]) -> Any:
        """The loss of what a step has made."""
        if not self._metrics:
            return made
        loss, outputs = made
        inputs, count = self._positions(entries, outputs)
        labels = entries[inputs : inputs + count]
        if self._pipeline is not None:
            labels = [_on_every_rank(x) for x in labels]
        with no_grad():
            for metric in self._metrics:
                found = metric.compute(*outputs, *labels)
                parts = found if isinstance(found, (list, tuple)) else [found]
                metric.update(*[to_numpy(x) if isinstance(x, Tensor) else x for x in parts])
        return loss

    def _positions(self, entries: Sequence[Any], outputs: Sequence[Any]) -> tuple[int, int]:
        """How many of the entries are inputs, and how many of the others labels."""
        inputs = min(_positions(self.network.forward), len(entries))
        return inputs, max(0, _positions(self._loss) - len(outputs))

    def _make_pipeline(self) -> Pipeline:
        given = self._strategy.pipeline
        stages = given.pp_degree * given.vpp_degree
        if stage_count(self.network) == 1 and given.vpp_seg_method and stages > 1:
            cut_at_class(self.network, given.vpp_seg_method, stages)
        settings = PipelineSettings(
            given.schedule_mode, given.accumulate_steps, given.micro_batch_size, given.vpp_degree,
            given.memory_limit_times,
        )  # fmt: skip
        return Pipeline(
            settings, self._loss_of, lambda entries: self._predict_step(*entries), self._update_step,
            sharding=getattr(self._optimizer, "_placing", None),
        )  # fmt: skip

    def _run_pipeline(self, pipeline: Pipeline, entries: Sequence[Any]) -> Any:
        if self.mode == "train":
            if self._scaler is None:
                loss = pipeline.train(entries)
            else:
                loss = pipeline.train_scaled(entries, self._scaler, self._optimizer)
            return self._note_metrics((loss, pipeline.outputs) if self._metrics else loss, entries)
        with no_grad():
            if self.mode == "eval":
                loss = pipeline.evaluate(entries)
                return self._note_metrics((loss, pipeline.outputs) if self._metrics else loss, entries)
            outputs = pipeline.predict(entries)
            return outputs[0] if len(outputs) == 1 else outputs

    def _train_step(self, *entries: Any) -> Any:
        loss = self._merge_step(*entries)
        self._update_step()
        return loss

    def _update_step(self) -> None:
        assert self._optimizer is not None
        if self._scaler is None:
            self._optimizer.step()
        else:
            self._scaler.step(self._optimizer)
            self._scaler.update()
        self._optimizer.clear_grad()

    def _merge_step(self, *entries: Any) -> Any:
        loss, outputs = self._run_forward(entries)
        share = self._merging.steps if self._merging.mean else 1
        mean = loss if share == 1 else loss / share
        (mean if self._scaler is None else self._scaler.scale(mean)).backward()
        return (loss, outputs) if self._metrics else loss

    def _eval_step(self, *entries: Any) -> Any:
        loss, outputs = self._run_forward(entries)
        return (loss, outputs) if self._metrics else loss

    def _predict_step(self, *entries: Any) -> Any:
        with precision_of(self._strategy.amp):
            return self.network(*entries[: _positions(self.network.forward)])

    def _loss_of(self, entries: Sequence[Any]) -> Any:
        loss, outputs = self._run_forward(entries)
        return [loss, *outputs] if self._metrics else loss

    def _run_forward(self, entries: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The loss and the outputs."""
        assert self._loss is not None
        with precision_of(self._strategy.amp), regions_of(self._strategy.recompute):
            made = self.network(*entries[: min(_positions(self.network.forward), len(entries))])
            outputs = list(made) if isinstance(made, (list, tuple)) else [made]
            inputs, labels = self._positions(entries, outputs)
            return self._loss(*outputs, *entries[inputs : inputs + labels]), outputs

    # ---- what is inside

    def dist_main_program(self, mode: str | None = None) -> Any:
        """This rank's program of a mode (default: the present one), as it was compiled. Raises RuntimeError before the
        mode's first call, ValueError for another mode.
        """
        chosen = self.mode if mode is None else mode
        if chosen not in _MODES:
            raise ValueError(f"dist_main_program: mode is one of {list(_MODES)}, not {mode!r}")
        if not self._steps[chosen].compiled:
            raise RuntimeError(f"there is no program of mode {chosen!r} yet: its first call with a batch makes it")
        return self._steps[chosen].main_program

    def peak_bytes(self) -> PeakBytes:
        """How much memory a step of the present mode takes on this rank at most. Raises RuntimeError before the mode's
        first call."""
        if self._pipeline is not None:
            return self._pipeline.peak_bytes(self._optimizer)
        network, step = self.network, self._steps[self.mode]
        kept = [p._grad for p in network.parameters() if p._grad is not None]
        held = local_bytes([*network.parameters(), *network.buffers()])
        return PeakBytes(held, local_bytes(kept), state_bytes(self._optimizer), step.peak_of_values)

    def dist_startup_program(self, mode: str | None = None) -> Any:
        """Raises NotImplementedError: parameters have values from the start, so that no program makes them."""
        return _no_program("dist_startup_program", "parameters have values from the start: no program makes them")

    def serial_main_program(self, mode: str | None = None) -> Any:
        """Raises NotImplementedError: the program before it was partitioned is not kept."""
        return _no_program("serial_main_program", "it is not kept; jit.to_static in one process has main_program")

    def serial_startup_program(self, mode: str | None = None) -> Any:
        """Raises NotImplementedError, as :meth:`dist_startup_program`."""
        return _no_program("serial_startup_program", "parameters have values from the start: no program makes them")

    def state_dict(self, mode: str = "all", split_fusion: bool = True) -> dict[str, Any]:
        """Parameters and buffers (``"param"``), optimizer states (``"opt"``), or ``"all"``."""
        if mode not in ("all", "param", "opt"):
            raise ValueError(f"state_dict: mode is 'all', 'param' or 'opt', not {mode!r}")
        found: dict[str, Any] = {}
        if mode != "opt":
            found.update(self.network.state_dict())
        if mode != "param" and self._optimizer is not None:
            found.update(self._optimizer.state_dict())
        return found

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Put back what :meth:`state_dict` gave."""
        own = self.network.state_dict()
        self.network.set_state_dict({name: value for name, value in state_dict.items() if name in own})
        rest = {name: value for name, value in state_dict.items() if name not in own}
        if rest and self._optimizer is not None:
            self._optimizer.set_state_dict(rest)


def _on_every_rank(x: Any) -> Any:
    """A tensor as an ordinary one, on ranks outside of its mesh, too, as the outputs of pipelines are. All call."""
    if not (isinstance(x, Tensor) and x.is_dist()):
        return x
    everyone = ProcessMesh(list(range(environment().communicator.size)))
    return reshard(x, everyone, [Replicate()])._local_value()


def _no_program(name: str, why: str) -> NoReturn:
    raise NotImplementedError(f"DistModel.{name} is not implemented: {why}")


def _flatten(args: Sequence[Any]) -> list[Any]:
    entries: list[Any] = []
    for x in args:
        if isinstance(x, (list, tuple)):
            entries += _flatten(x)
        elif isinstance(x, dict):
            entries += _flatten(list(x.values()))
        else:
            entries.append(x)
    return entries


def _conform(number: int, x: Any, spec: Any) -> Any:
    """An entry of a batch that is as ``spec`` says (None: anything), where it says."""
    if spec is None:
        return x
    if x is None:
        raise ValueError(f"DistModel: the batch has no entry {number}, which input_spec has: {spec}")
    shape, dtype = list(x.shape), as_dtype(spec.dtype)
    wanted = [None if n in (None, -1) else n for n in spec.shape]
    if len(wanted) != len(shape) or any(n not in (None, m) for n, m in zip(wanted, shape, strict=True)):
        raise ValueError(f"DistModel: entry {number} of the batch has shape {shape}, input_spec says {wanted}")
    if as_dtype(x.dtype) != dtype:
        raise ValueError(
            f"DistModel: entry {number} of the batch is {as_dtype(x.dtype).name}, not {dtype.name} as in input_spec"
        )
    mesh = getattr(spec, "mesh", None)
    if mesh is None or (isinstance(x, Tensor) and x.is_dist()):
        return x
    return shard_tensor(x, mesh, spec.placements)


def _positions(function: Any) -> int:
    """How many tensors a function takes by position."""
    if isinstance(function, Layer):
        return _positions(function.forward)
    if isinstance(function, Operator):
        return sum(p.kind != ATTRIBUTE for p in function.signature.parameters)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return 1 << 16
    return sum(p.kind in kinds for p in parameters)
