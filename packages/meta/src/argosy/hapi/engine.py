"""``Engine``: the loops of ``argosy.Model`` around a ``DistModel``, whose steps are one compiled program per rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from argosy.distributed.dist_model import DistModel
from argosy.distributed.environment import environment
from argosy.distributed.semi_auto import get_mesh, shard_layer, shard_tensor
from argosy.distributed.strategy import Strategy
from argosy.framework.serialization import save_together
from argosy.hapi.callbacks import Callbacks, History, LRScheduler, ModelCheckpoint, default_callbacks
from argosy.hapi.model import Model, count_steps
from argosy.hapi.progress import ProgBarLogger
from argosy.io.dataloader.loader import DataLoader
from argosy.io.dataset import Dataset
from argosy.metric.metric import Metric
from argosy.nn.layer import Layer
from argosy.optimizer.optimizer import Optimizer
from argosy_autoparallel import ProcessMesh, Replicate, Shard
from argosy_phi_ops.context import context
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = ["Engine"]

_MODES = ("train", "eval", "predict")


class Engine(Model):
    """A model, annotated or not, with ``fit``, ``evaluate``, ``predict``, ``prepare``, ``run``, ``save`` and ``load``.

    loss: called with outputs and labels. ``optimizer``: what ``fit`` needs; ``metrics`` are those of ``Model``, and
    ``strategy`` says how steps run. Of a ``model`` without annotations each rank has a copy. Batches are global: each
    rank is given what the mesh dimension "dp" leaves it of one, all of it where there is none. ``cluster`` is accepted
    for compatibility: nothing is searched for. Raises TypeError for arguments of other kinds.
    """

    def __init__(
        self,
        model: Layer,
        loss: Callable[..., Any] | None = None,
        optimizer: Optimizer | None = None,
        metrics: Metric | Sequence[Metric] | None = None,
        cluster: Any = None,
        strategy: Strategy | None = None,
    ) -> None:
        super().__init__(model)
        super().prepare(None, loss, metrics)
        if not (optimizer is None or isinstance(optimizer, Optimizer)):
            raise TypeError(f"Engine: optimizer is an Optimizer, not {type(optimizer).__name__}")
        if not (strategy is None or isinstance(strategy, Strategy)):
            raise TypeError(f"Engine: strategy is a Strategy, not {type(strategy).__name__}")
        size = environment().communicator.size
        if size > 1 and not any(p.is_dist() for p in model.parameters()):
            shard_layer(model, ProcessMesh(list(range(size)), ["dp"]))
        self._optimizer = optimizer
        self._mesh: ProcessMesh | None = next((p.process_mesh for p in model.parameters() if p.is_dist()), get_mesh())
        self._mode = "train" if loss is not None and optimizer is not None else "eval" if loss else "predict"
        self._dist_model = DistModel(model, None, loss, optimizer, strategy, self._metrics)
        self._split: int | None = None
        self.history: History | None = None

    # ---- batches

    def train_batch(self, inputs: Any, labels: Any = None, update: bool = True) -> Any:
        """One step with a global batch: the losses, or (losses, metrics)."""
        return self._batch("train", inputs, labels)

    def eval_batch(self, inputs: Any, labels: Any = None) -> Any:
        """The losses of a batch, or (losses, metrics)."""
        return self._batch("eval", inputs, labels)

    def predict_batch(self, inputs: Any) -> list[Any]:
        """The outputs for a batch, as arrays."""
        found = self._run_step("predict", inputs)
        return [to_numpy(x) for x in (found if isinstance(found, (list, tuple)) else [found])]

    def _batch(self, mode: str, inputs: Any, labels: Any) -> Any:
        losses = [to_numpy(self._run_step(mode, inputs, labels))]
        return (losses, [m.accumulate() for m in self._metrics]) if self._metrics else losses

    def _run_step(self, mode: str, *entries: Any) -> Any:
        self.to_mode(mode)
        return self._dist_model(*[self._lay_out(x) for given in entries if given is not None for x in _as_list(given)])

    def _lay_out(self, x: Any) -> Any:
        if (isinstance(x, Tensor) and x.is_dist()) or self._mesh is None:
            return x
        names = self._mesh.dim_names
        return shard_tensor(x, self._mesh, [Shard(0) if name == "dp" else Replicate() for name in names])

    def _divide(self, batch: Any) -> tuple[list[Any], list[Any]]:
        parts = _as_list(batch)
        return super()._divide(parts) if self._split is None else (parts[: self._split], parts[self._split :])

    def to_mode(self, mode: str) -> None:
        """What :meth:`run` does from now on: "train", "eval" or "predict". Raises RuntimeError without the loss or the
        optimizer that takes."""
        if mode not in _MODES:
            raise ValueError(f"Engine: mode is one of {list(_MODES)}, not {mode!r}")
        if self._dist_model.mode != mode:
            getattr(self._dist_model, mode)()
        self._mode = mode

    # ---- loops

    def fit(  # type: ignore[override]
        self,
        train_data: Any,
        train_sample_split: int | None = None,
        batch_size: int = 1,
        epochs: int = 1,
        steps_per_epoch: int | None = None,
        log_freq: int = 10,
        save_dir: str | None = None,
        save_freq: int = 1,
        valid_data: Any = None,
        valid_sample_split: int | None = None,
        valid_freq: int = 1,
        valid_steps: int | None = None,
        collate_fn: Callable[..., Any] | None = None,
        callbacks: Any = None,
        verbose: int = 2,
        nvprof_range: Sequence[int] = (-1, -1),
    ) -> History:
        """Train on a Dataset, or on what gives batches; of a batch the first ``train_sample_split`` entries are inputs
        (default: all but the last). Evaluates every ``valid_freq`` epochs. Returns the figures of all epochs.
        ``nvprof_range`` is accepted for compatibility.
        """
        loader = self._batches(train_data, batch_size, collate_fn, steps_per_epoch)
        self.history, self.stop_training = History(), False
        more = {"rate": LRScheduler(), "saving": ModelCheckpoint(save_freq, save_dir), "history": self.history}
        run = self._callbacks(callbacks, loader, batch_size, log_freq, verbose, epochs, **more)
        run.call("train_begin", None)
        logs: dict[str, Any] = {}
        for epoch in range(epochs):
            run.call("epoch_begin", epoch, None)
            self._split = train_sample_split
            logs = self._epoch(loader, run, "train", None, 1)
            if valid_data is not None and (epoch + 1) % valid_freq == 0:
                found = self.evaluate(
                    valid_data, valid_sample_split, batch_size, valid_steps, log_freq, collate_fn, None, verbose
                )
                logs.update({f"val_{name}": value for name, value in found.items()})
            run.call("epoch_end", epoch, logs)
            if self.stop_training:
                break
        run.call("train_end", logs)
        return self.history

    def evaluate(  # type: ignore[override]
        self,
        valid_data: Any,
        valid_sample_split: int | None = None,
        batch_size: int = 1,
        steps: int | None = None,
        log_freq: int = 10,
        collate_fn: Callable[..., Any] | None = None,
        callbacks: Any = None,
        verbose: int = 2,
    ) -> dict[str, Any]:
        """The loss of the last batch, in a list, and the metrics over all of them."""
        loader = self._batches(valid_data, batch_size, collate_fn, steps)
        self._split = valid_sample_split
        logs = self._evaluate(loader, self._callbacks(callbacks, loader, batch_size, log_freq, verbose), None)
        return {key: value for key, value in logs.items() if key not in ("step", "batch_size")}

    def predict(  # type: ignore[override]
        self,
        test_data: Any,
        test_sample_split: int | None = None,
        batch_size: int = 1,
        steps: int | None = None,
        collate_fn: Callable[..., Any] | None = None,
        callbacks: Any = None,
        verbose: int = 2,
    ) -> list[list[Any]]:
        """For each batch its outputs, as arrays."""
        loader = self._batches(test_data, batch_size, collate_fn, steps)
        self._split = test_sample_split
        return [list(row) for row in zip(*super().predict(loader, verbose=verbose, callbacks=callbacks), strict=True)]

    def _batches(self, data: Any, batch_size: int, collate_fn: Any, limit: int | None) -> _FirstBatches:
        if isinstance(data, Dataset):
            data = self.dataloader(data, batch_size, collate_fn=collate_fn, drop_last=False)
        if not isinstance(data, Iterable):
            raise TypeError(f"Engine takes a Dataset or an iterable of batches, not {type(data).__name__}")
        return _FirstBatches(data, limit)

    def _callbacks(
        self,
        given: Any,
        loader: Any,
        batch_size: int,
        log_freq: int,
        verbose: int,
        epochs: int | None = None,
        **more: Any,
    ) -> Callbacks:
        verbose = verbose if context().rank == 0 else 0
        params = {
            "batch_size": batch_size, "epochs": epochs, "steps": count_steps(loader, None), "verbose": verbose,
            "metrics": self._names(),
        }  # fmt: skip
        return Callbacks(default_callbacks(given, ProgBarLogger(log_freq, verbose), **more), self, params)

    # ---- one step at a time

    def dataloader(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = True,
        collate_fn: Callable[..., Any] | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        use_shared_memory: bool = True,
        timeout: int = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        epochs: int = 1,
        steps_per_epoch: int | None = None,
        sample_split: int = 1,
        mode: str | None = None,
        places: Any = None,
    ) -> DataLoader:
        """A loader of global batches, whose first ``sample_split`` entries are inputs for :meth:`run`."""
        if mode is not None:
            self.to_mode(mode)
        self._split = sample_split
        return DataLoader(
            dataset, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last, collate_fn=collate_fn,
            num_workers=num_workers, use_buffer_reader=use_buffer_reader, use_shared_memory=use_shared_memory,
            timeout=timeout, worker_init_fn=worker_init_fn,
        )  # fmt: skip

    def prepare(
        self,
        inputs_spec: Any = None,
        labels_spec: Any = None,
        inputs: Any = None,
        labels: Any = None,
        main_program: Any = None,
        startup_program: Any = None,
        mode: str | None = None,
        init_parameters: bool = True,
    ) -> None:
        """Choose a mode, and say what batches look like: one that differs is refused. Programs are made by the first
        batch, and parameters when the model is. Raises NotImplementedError for tensors and programs of static mode.
        """
        given = {"inputs": inputs, "labels": labels, "main_program": main_program, "startup_program": startup_program}
        if named := [name for name, value in given.items() if value is not None]:
            raise NotImplementedError(f"Engine.prepare({', '.join(named)}) is not implemented: a model is a Layer here")
        if mode is not None:
            self.to_mode(mode)
        if inputs_spec is not None or labels_spec is not None:
            self._inputs, self._labels = _as_list(inputs_spec), _as_list(labels_spec)
            self._dist_model.expect([self._inputs, self._labels])

    def run(
        self, data: Any = None, feed: Any = None, fetch_list: Any = None, mode: str | None = None
    ) -> dict[str, Any]:
        """One batch in the present mode: {"loss": ..., or "outputs": [...], and metrics by name}. ``data`` or ``feed``
        has inputs and labels by name, or as a list. Raises NotImplementedError for a ``fetch_list``.
        """
        if fetch_list:
            raise NotImplementedError("Engine.run(fetch_list) is not implemented: let the model return what is wanted")
        if mode is not None:
            self.to_mode(mode)
        batch = data if feed is None else feed
        entries = list(batch.values()) if isinstance(batch, Mapping) else _as_list(batch)
        if self._mode == "predict":
            return {"outputs": self.predict_batch(entries)}
        found = self._batch(self._mode, entries, None)
        return {**self._logs(found), "loss": (found[0] if self._metrics else found)[0]}

    @property
    def main_program(self) -> Any:
        """This rank's program of the present mode, once a batch has run."""
        return self._dist_model.dist_main_program(self._mode)

    @property
    def optimizer(self) -> Optimizer | None:
        """The optimizer."""
        return self._optimizer  # type: ignore[no-any-return]

    def cost(self, inputs_spec: Any = None, labels_spec: Any = None, mode: str | None = None) -> tuple[None, int]:
        """(None, the most bytes that any rank takes in a step of a mode): no time is estimated. All ranks call. Raises
        RuntimeError before the mode's first batch. ``inputs_spec`` and ``labels_spec`` are accepted for compatibility.
        """
        if mode is not None:
            self.to_mode(mode)
        most = np.zeros(1, np.int64)
        own = np.array([self._dist_model.peak_bytes().total], np.int64)
        environment().communicator.all_reduce(own, most, "max")
        return None, int(most[0])

    @property
    def inputs(self) -> list[Any]:
        """The specifications of inputs that :meth:`prepare` was given."""
        return _as_list(self._inputs)

    @property
    def labels(self) -> list[Any]:
        """The specifications of labels that :meth:`prepare` was given."""
        return _as_list(self._labels)

    def get_dist_main_program(self, mode: str) -> Any:
        """This rank's program of a mode, once a batch has run."""
        return self._dist_model.dist_main_program(mode)

    def get_dist_startup_program(self, mode: str) -> Any:
        """Raises NotImplementedError: parameters have values from the start."""
        return self._dist_model.dist_startup_program(mode)

    def get_serial_main_program(self, mode: str) -> Any:
        """Raises NotImplementedError: the program before it was partitioned is not kept."""
        return self._dist_model.serial_main_program(mode)

    def get_serial_startup_program(self, mode: str) -> Any:
        """Raises NotImplementedError: parameters have values from the start."""
        return self._dist_model.serial_startup_program(mode)

    @property
    def startup_program(self) -> Any:
        """Raises NotImplementedError: parameters have values from the start."""
        return self._dist_model.dist_startup_program(self._mode)

    # ---- files

    def save(self, path: str, training: bool = True) -> None:
        """``<path>.pdparams`` and ``<path>.pdopt`` of whole tensors, which rank 0 writes. Raises NotImplementedError
        without ``training`` where parameters are distributed: load them in one process and use ``jit.save``.
        """
        if not training and self._mesh is not None:
            raise NotImplementedError(
                "Engine.save(training=False) of distributed parameters is not implemented: save for training, load "
                "that in one process, and use jit.save"
            )
        if self._mesh is None:
            super().save(path, training)
            return
        states = {f"{path}{end}": _gather_state(state) for end, state in self._states().items()}
        if context().rank == 0:
            save_together(states)
        environment().communicator.barrier()

    def load(self, path: str, strict: bool = True, load_optimizer: bool = True) -> None:
        """Read what :meth:`save` wrote; each rank keeps its part. Without ``strict`` what does not fit is warned
        about."""
        super().load(path, not strict, not load_optimizer)


class _FirstBatches:
    """The first ``limit`` batches of ``data``, or all of them."""

    def __init__(self, data: Iterable[Any], limit: int | None) -> None:
        self._data, self._limit = data, limit

    def __iter__(self) -> Iterator[Any]:
        return islice(iter(self._data), self._limit)

    def __len__(self) -> int:
        """Raises TypeError for a stream without a limit."""
        try:
            length = len(self._data)  # type: ignore[arg-type]
        except TypeError:
            if self._limit is None:
                raise
            return self._limit
        return length if self._limit is None else min(length, self._limit)


def _as_list(x: Any) -> list[Any]:
    return [] if x is None else list(x) if isinstance(x, (list, tuple)) else [x]


def _gather_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state whose tensors every rank has."""
    return {k: Tensor(to_numpy(x)) if isinstance(x, Tensor) and x.is_dist() else x for k, x in state.items()}
