"""``Model``: a network with its optimizer, loss and metrics, and the loops that train, evaluate and predict."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.argument_repr import ArgumentRepr
from argosy.framework.random import get_rng_state, set_rng_state
from argosy.framework.serialization import load, loadable_path, save_together
from argosy.hapi.callbacks import Callbacks, LRScheduler, ModelCheckpoint, default_callbacks
from argosy.hapi.precision import Precision
from argosy.hapi.progress import ProgBarLogger
from argosy.hapi.summary import summary
from argosy.io.dataloader.loader import DataLoader
from argosy.io.dataset import Dataset, IterableDataset
from argosy.jit.export import save as export
from argosy.metric.metric import Metric
from argosy.nn.layer import Layer
from argosy.nn.state import misfit
from argosy.optimizer.checkpoint import GENERATOR
from argosy_autograd.modes import no_grad
from argosy_phi_ops.eager.creation import creation_device
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.place import place_of
from argosy_tensorcore.tensor import Tensor

__all__ = ["Model", "count_steps"]


class Model(ArgumentRepr):
    """A network with ``prepare``, ``fit``, ``evaluate`` and ``predict``.

    inputs, labels: InputSpecs; how many there are says how a batch is divided. Without labels the last entry of a batch
    of several is the label.
    """

    def __init__(self, network: Layer, inputs: Any = None, labels: Any = None) -> None:
        if not isinstance(network, Layer):
            raise TypeError(f"Model takes a Layer, not {type(network).__name__}")
        self.network = network
        self.stop_training = False
        self._inputs, self._labels = _specs("inputs", inputs), _specs("labels", labels)
        self._optimizer: Any = None
        self._loss: Callable[..., Any] | None = None
        self._metrics: list[Metric] = []
        self._precision = Precision(None)

    def prepare(self, optimizer: Any = None, loss: Any = None, metrics: Any = None, amp_configs: Any = None) -> None:
        """Set optimizer, loss (a layer or function of outputs and labels) and metrics.

        amp_configs: mixed precision for training, see :class:`~argosy.hapi.precision.Precision`: a level, or a dict of
        ``level`` and arguments of ``amp.auto_cast`` and ``amp.GradScaler``; at level ``O2`` the network is converted.
        Raises TypeError for what is no loss or metric, ValueError for levels and names that are not known.
        """
        precision = Precision(amp_configs)
        if loss is not None and not callable(loss):
            raise TypeError(f"Model.prepare(): loss must be callable, not {type(loss).__name__}")
        if optimizer is not None and not hasattr(optimizer, "step"):
            raise TypeError(f"Model.prepare(): optimizer must be an Optimizer, not {type(optimizer).__name__}")
        for metric in _as_list(metrics):
            if not isinstance(metric, Metric):
                raise TypeError(f"Model.prepare(): metrics must be Metric objects, not {type(metric).__name__}")
        precision.convert(self.network, optimizer)
        self._optimizer, self._loss, self._metrics = optimizer, loss, _as_list(metrics)
        self._precision = precision

    def parameters(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """The parameters of the network."""
        return self.network.parameters(*args, **kwargs)

    def summary(self, input_size: Any = None, dtype: Any = None) -> dict[str, int]:
        """See :func:`argosy.summary`; the size is by default that of ``inputs``."""
        if input_size is None and not self._inputs:
            raise ValueError("Model.summary(): argument 'input_size' is needed, as the Model was made without inputs")
        return summary(self.network, self._inputs if input_size is None else input_size, dtype)

    # ---- batches

    def train_batch(self, inputs: Any, labels: Any = None, update: bool = True) -> Any:
        """One training step: the losses, or (losses, metrics). With ``update=False`` gradients add up."""
        if self._optimizer is None or self._loss is None:
            raise RuntimeError("Model.train_batch() needs an optimizer and a loss: call prepare() first")
        self.network.train()
        outputs = self._forward(inputs)
        wanted = _tensors(labels)
        losses = _as_list(self._loss(*outputs, *wanted))
        total = losses[0]
        for more in losses[1:]:
            total = total + more
        self._precision.backward(total)
        if update:
            self._precision.update(self._optimizer)
            self._optimizer.clear_grad()
        return self._results(losses, outputs, wanted)

    def eval_batch(self, inputs: Any, labels: Any = None) -> Any:
        """The losses, metrics, or both of a batch, without training."""
        self.network.eval()
        with no_grad():
            outputs, wanted = self._forward(inputs), _tensors(labels)
            losses = _as_list(self._loss(*outputs, *wanted)) if self._loss is not None and wanted else []
            return self._results(losses, outputs, wanted)

    def predict_batch(self, inputs: Any) -> list[Any]:
        """The outputs for a batch, as arrays."""
        self.network.eval()
        with no_grad():
            return [to_numpy(x) for x in self._forward(inputs)]

    def _forward(self, inputs: Any) -> list[Any]:
        with self._precision.casting():
            return _as_list(self.network(*_tensors(inputs)))

    def _results(self, losses: list[Any], outputs: list[Any], labels: list[Any]) -> Any:
        values = [to_numpy(x) for x in losses]
        figures = []
        for metric in self._metrics:
            with no_grad():
                found = _as_list(metric.compute(*outputs, *labels))
                figures.append(metric.update(*[to_numpy(x) if isinstance(x, Tensor) else x for x in found]))
        return (values, figures) if values and figures else figures or values

    # ---- loops

    @validate_call
    def fit(
        self,
        train_data: Any = None,
        eval_data: Any = None,
        batch_size: int = 1,
        epochs: int = 1,
        eval_freq: int = 1,
        log_freq: int = 10,
        save_dir: str | None = None,
        save_freq: int = 1,
        verbose: int = 2,
        drop_last: bool = False,
        shuffle: bool = True,
        num_workers: int = 0,
        callbacks: Any = None,
        accumulate_grad_batches: int = 1,
        num_iters: int | None = None,
    ) -> None:
        """Train on a Dataset, or on what gives batches (a DataLoader, a list), evaluating every ``eval_freq`` epochs
        and saving every ``save_freq``.

        num_iters: train that many batches altogether, whatever ``epochs`` says. Raises TypeError without data.
        """
        loader = _loader(train_data, batch_size, shuffle, drop_last, num_workers, "fit")
        evaluation = None if eval_data is None else _loader(eval_data, batch_size, False, False, num_workers, "fit")
        defaults = {"rate": LRScheduler(), "saving": ModelCheckpoint(save_freq, save_dir)}
        chosen = default_callbacks(callbacks, ProgBarLogger(log_freq, verbose), **defaults)
        if num_iters is not None and (whole := count_steps(loader, None)):
            epochs = num_iters // whole + 1
        params = _params(verbose, batch_size, epochs, count_steps(loader, num_iters), self._names())
        run = Callbacks(chosen, self, {**params, "save_dir": save_dir})
        self.stop_training = False
        left, logs = num_iters, {}
        run.call("train_begin", None)
        for epoch in range(epochs):
            run.call("epoch_begin", epoch, None)
            logs = self._epoch(loader, run, "train", left, accumulate_grad_batches)
            run.call("epoch_end", epoch, logs)
            if evaluation is not None and epoch % eval_freq == 0:
                self._evaluate(evaluation, run, None)
            left = None if left is None else left - (logs.get("step", -1) + 1)
            if self.stop_training or (left is not None and left <= 0):
                break
        run.call("train_end", logs)

    def evaluate(
        self,
        eval_data: Any,
        batch_size: int = 1,
        log_freq: int = 10,
        verbose: int = 2,
        num_workers: int = 0,
        callbacks: Any = None,
        num_iters: int | None = None,
    ) -> dict[str, Any]:
        """The loss (of the last batch, in a list) and the metrics over ``eval_data``."""
        loader = _loader(eval_data, batch_size, False, False, num_workers, "evaluate")
        params = _params(verbose, batch_size, None, count_steps(loader, num_iters), self._names())
        run = Callbacks(default_callbacks(callbacks, ProgBarLogger(log_freq, verbose)), self, params)
        logs = self._evaluate(loader, run, num_iters)
        return {key: value for key, value in logs.items() if key not in ("step", "batch_size")}

    def _evaluate(self, loader: Iterable[Any], run: Callbacks, limit: int | None) -> dict[str, Any]:
        run.call("eval_begin", {"steps": count_steps(loader, limit), "metrics": self._names()})
        logs = self._epoch(loader, run, "eval", limit, 1)
        run.call("eval_end", logs)
        return logs

    def _epoch(self, loader: Iterable[Any], run: Callbacks, mode: str, limit: int | None, every: int) -> dict[str, Any]:
        for metric in self._metrics:
            metric.reset()
        logs: dict[str, Any] = {}
        total = count_steps(loader, limit)
        for step, batch in _batches(loader, limit):
            run.call(f"{mode}_batch_begin", step, logs)
            inputs, labels = self._divide(batch)
            if mode == "train":
                result = self.train_batch(inputs, labels, (step + 1) % every == 0 or step + 1 == total)
            else:
                result = self.eval_batch(inputs, labels)
            logs = {**self._logs(result), "step": step, "batch_size": len(inputs[0])}
            run.call(f"{mode}_batch_end", step, logs)
        return logs

    def _logs(self, result: Any) -> dict[str, Any]:
        losses = result[0] if isinstance(result, tuple) else [] if self._metrics else result
        logs: dict[str, Any] = {"loss": [float(x) for x in losses]} if losses else {}
        for metric in self._metrics:
            names, values = _as_list(metric.name()), _as_list(metric.accumulate())
            logs.update(zip(names, values, strict=True))
        return logs

    def predict(
        self,
        test_data: Any,
        batch_size: int = 1,
        num_workers: int = 0,
        stack_outputs: bool = False,
        verbose: int = 1,
        callbacks: Any = None,
    ) -> list[Any]:
        """For each output a tuple of the batches' arrays, or with ``stack_outputs`` one array."""
        loader = _loader(test_data, batch_size, False, False, num_workers, "predict")
        steps = count_steps(loader, None)
        params = _params(verbose, batch_size, None, steps, [])
        run = Callbacks(default_callbacks(callbacks, ProgBarLogger(1, verbose)), self, params)
        run.call("predict_begin", {"steps": steps})
        collected: list[Any] = []
        logs: dict[str, Any] = {}
        for step, batch in _batches(loader, None):
            run.call("predict_batch_begin", step, logs)
            inputs, _ = self._divide(batch)
            collected.append(self.predict_batch(inputs))
            logs = {"step": step, "batch_size": len(inputs[0])}
            run.call("predict_batch_end", step, logs)
        run.call("predict_end", logs)
        outputs = [tuple(arrays) for arrays in zip(*collected, strict=True)]
        return [np.concatenate(arrays) for arrays in outputs] if stack_outputs else outputs

    def _divide(self, batch: Any) -> tuple[list[Any], list[Any]]:
        parts = _as_list(batch)
        if self._inputs:
            return parts[: len(self._inputs)], parts[len(self._inputs) :]
        if self._labels:
            return parts[: -len(self._labels)], parts[-len(self._labels) :]
        return (parts[:-1], parts[-1:]) if len(parts) > 1 else (parts, [])

    def _names(self) -> list[str]:
        return ["loss"] * (self._loss is not None) + [n for metric in self._metrics for n in _as_list(metric.name())]

    # ---- files

    @validate_call
    def save(self, path: str, training: bool = True) -> None:
        """``<path>.pdparams``, and ``<path>.pdopt`` where the optimizer has a state, with that of the random generator;
        with ``training=False`` the program that ``jit.save`` writes. Both are replaced at once.
        """
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        if training:
            save_together({f"{path}{end}": state for end, state in self._states().items()})
        else:
            export(self.network, path, self._inputs or None)

    def _states(self) -> dict[str, dict[str, Any]]:
        """What is saved, by the ends of the names of files."""
        found = {".pdparams": self.network.state_dict()}
        if self._optimizer is not None and (states := self._optimizer.state_dict()):
            found[".pdopt"] = {**states, GENERATOR: get_rng_state()[0].tolist()}
        return found

    @validate_call
    def load(self, path: str, skip_mismatch: bool = False, reset_optimizer: bool = False) -> None:
        """Read what :meth:`save` wrote. With ``skip_mismatch`` names that are missing or misshaped are warned about,
        else ValueError says which; what the network does not have is left out. The random generator goes on where it
        was with the optimizer, so that training does.
        """
        state = load(f"{path}.pdparams")
        if not skip_mismatch:
            found = [misfit(name, tensor, state.get(name)) for name, tensor in self.network.state_dict().items()]
            if wrong := [text for text in found if text is not None]:
                raise ValueError(f"{path}.pdparams does not fit {type(self.network).__name__}: {' '.join(wrong)}")
        self.network.set_state_dict(state)
        if self._optimizer is not None and not reset_optimizer and os.path.exists(loadable_path(f"{path}.pdopt")):
            found = load(f"{path}.pdopt")
            self._optimizer.set_state_dict(found)
            if GENERATOR in found:
                set_rng_state([Tensor(np.array(found[GENERATOR], np.uint64))])


def _specs(name: str, given: Any) -> list[Any]:
    for spec in (found := _as_list(given)):
        if not hasattr(spec, "shape"):
            raise TypeError(f"Model(): argument {name!r} must be an InputSpec or a list of them, got {spec!r:.80}")
    return found


def _as_list(x: Any) -> list[Any]:
    return [] if x is None else list(x) if isinstance(x, (list, tuple)) else [x]


def _tensors(x: Any) -> list[Any]:
    """The entries of a batch, where new tensors are made."""
    found = [item if type(item) is Tensor else Tensor(np.asarray(item)) for item in _as_list(x)]
    device = creation_device()
    return found if device is None else [item.to(place_of(device)) for item in found]


def _params(verbose: int, batch_size: int, epochs: int | None, steps: int | None, metrics: list[str]) -> dict[str, Any]:
    """What callbacks are told."""
    return {"batch_size": batch_size, "epochs": epochs, "steps": steps, "verbose": verbose, "metrics": metrics}


def _loader(data: Any, batch_size: int, shuffle: bool, drop_last: bool, workers: int, method: str) -> Iterable[Any]:
    if isinstance(data, Dataset):
        shuffle = shuffle and not isinstance(data, IterableDataset)
        return DataLoader(data, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last, num_workers=workers)
    if not isinstance(data, Iterable):
        raise TypeError(f"Model.{method}() takes a Dataset or an iterable of batches, not {type(data).__name__}")
    return data


def count_steps(loader: Any, limit: int | None) -> int | None:
    """How many batches there are, ``limit`` at most; None where nobody knows."""
    try:
        steps = len(loader)
    except TypeError:  # a stream
        return limit
    return steps if limit is None else min(steps, limit)


def _batches(loader: Iterable[Any], limit: int | None) -> Iterator[tuple[int, Any]]:
    for step, batch in enumerate(loader):
        if limit is not None and step >= limit:
            return
        yield step, batch
