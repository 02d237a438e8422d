"""``decorate``: models and optimizers made ready for level O2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from argosy.nn import state
from argosy.nn.layer import Layer
from argosy.optimizer.optimizer import Optimizer
from argosy_tensorcore.dtype import DType, as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["decorate"]

_NORMS = frozenset({"_BatchNorm", "BatchNorm", "LayerNorm", "_InstanceNormBase", "InstanceNorm1D", "InstanceNorm2D"})
"""Layers (and what derives from them) whose parameters and statistics stay in float32."""


def decorate(
    models: Any,
    optimizers: Any = None,
    level: str = "O1",
    dtype: object = "float16",
    master_weight: bool | None = None,
    save_dtype: object = None,
    master_grad: bool = False,
    excluded_layers: Any = None,
) -> Any:
    """Models (and optimizers) as they were given; at level O2 with parameters converted to ``dtype``, in place.

    Normalisation layers and ``excluded_layers`` (layers or layer classes) keep float32. Optimizers update float32
    master copies unless ``master_weight`` is False. master_grad: gradients of the converted parameters are float32, so
    that sums over batches, clipping and decay are. save_dtype: the floating type that state dicts give from now on.
    Raises ValueError for other levels and types, TypeError for what are no layers or optimizers.
    Returns what was given, with an optimizer a tuple.
    """
    if level not in ("O0", "OD", "O1", "O2"):
        raise ValueError(f"decorate(level={level!r}): expected 'O1' or 'O2'")
    half = as_dtype(dtype)
    if half.name not in ("float16", "bfloat16"):
        raise ValueError(f"decorate(dtype={half.name!r}): expected 'float16' or 'bfloat16'")
    layers, updaters = _list(models, Layer, "models"), _list(optimizers, Optimizer, "optimizers")
    if level == "O2":
        for model in layers:
            _convert(model, half, _Float32Layers(excluded_layers))
            if master_grad:
                _widen_gradients(model, half)
        for optimizer in updaters:
            optimizer._multi_precision = master_weight is not False
    if save_dtype is not None:
        for model in layers:
            _save_as(model, as_dtype(save_dtype))
    return models if optimizers is None else (models, optimizers)


def _list(given: Any, kind: type, argument: str) -> Sequence[Any]:
    items = [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]
    for item in items:
        if not isinstance(item, kind):
            raise TypeError(f"decorate(): {argument} takes a {kind.__name__} or a list of them, not {item!r:.80}")
    return items


class _Float32Layers:
    """Which layers keep float32."""

    def __init__(self, given: Any) -> None:
        items: Iterable[Any] = () if given is None else given if isinstance(given, (list, tuple)) else (given,)
        self._classes = tuple(item for item in items if isinstance(item, type))
        self._layers = {id(sub) for item in items if isinstance(item, Layer) for sub in item.sublayers(True)}

    def __contains__(self, layer: Layer) -> bool:
        named = any(cls.__name__ in _NORMS for cls in type(layer).__mro__)
        return named or id(layer) in self._layers or isinstance(layer, self._classes)


def _convert(model: Layer, half: DType, excluded: _Float32Layers) -> None:
    for layer in model.sublayers(include_self=True):
        if layer not in excluded:
            layer.__dict__["_dtype"] = half.name
            for tensor in (*layer.parameters(include_sublayers=False), *layer.buffers(include_sublayers=False)):
                if tensor.dtype.name == "float32":
                    state.convert(tensor, half)


def _widen_gradients(model: Layer, half: DType) -> None:
    for parameter in model.parameters():
        if parameter.dtype is half and not parameter.stop_gradient:
            parameter.register_hook(lambda grad: grad.cast("float32"))


def _save_as(model: Layer, wanted: DType) -> None:
    def hook(found: dict[str, Tensor]) -> dict[str, Tensor]:
        for name, tensor in found.items():
            if tensor.dtype.kind == "f" and tensor.dtype is not wanted:
                found[name] = tensor.detach().cast(wanted.name)
                found[name].name = tensor.name
        return found

    model.register_state_dict_hook(hook)
