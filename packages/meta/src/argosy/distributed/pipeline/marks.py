"""Where a model is cut: layers with which another stage begins, told to the capture as it reaches them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from argosy.nn.layer import Layer
from argosy_phi_ops.capture.tracer import active_tracer

__all__ = [
    "SplitPoint",
    "begin_stages",
    "cut_at_class",
    "enter_stage",
    "even_points",
    "split_model",
    "stage_count",
    "stages_of_layers",
]

_COUNT = "_pipeline_stages"


class SplitPoint(Enum):
    """Where a layer cuts a model: another stage begins before it, or after it."""

    BEGINNING = 0
    END = 1


def begin_stages() -> None:
    """Let the capture that is active mark operations with their stage, 0 at first."""
    tracer = active_tracer()
    if tracer is not None:
        tracer.stage = 0


def enter_stage(stage: int) -> None:
    """What is captured from here on belongs to ``stage``, where stages are asked for."""
    tracer = active_tracer()
    if tracer is not None and tracer.stage is not None:
        tracer.stage = stage


def stage_count(model: Layer) -> int:
    """Into how many stages :func:`split_model` or a model of its own has cut; 1 for others."""
    return int(getattr(model, _COUNT, 1))


def split_model(model: Layer, points: Mapping[str, SplitPoint]) -> int:
    """Cut ``model`` at layers by name, in the order in which they are called; returns the number of stages.

    Raises ValueError for names of no layer, TypeError for other values than split points.
    """
    layers = dict(model.named_sublayers())
    if stage_count(model) > 1:
        raise ValueError(f"{type(model).__name__} is cut already, into {stage_count(model)} stages")
    for name, point in points.items():
        if not isinstance(point, SplitPoint):
            raise TypeError(f"the split of {name!r} is SplitPoint.BEGINNING or SplitPoint.END, not {point!r}")
        if name not in layers:
            raise ValueError(f"a model is cut at its layers; {name!r} is none of {list(layers)[:8]}")
    ordered = sorted(points.items(), key=lambda item: list(layers).index(item[0]))
    for stage, (name, point) in enumerate(ordered, 1):
        if point is SplitPoint.BEGINNING:
            layers[name].register_forward_pre_hook(_enter_hook(stage))
        else:
            layers[name].register_forward_post_hook(_enter_hook(stage))
    vars(model)[_COUNT] = len(points) + 1
    return len(points) + 1


def even_points(model: Layer, chosen: Callable[[str, Layer], bool], what: str, stages: int) -> dict[str, SplitPoint]:
    """Where to cut a model into ``stages`` with as many of the ``chosen`` layers each as may be: before the first of
    each. Raises ValueError for fewer such layers than stages."""
    names = [name for name, layer in model.named_sublayers() if chosen(name, layer)]
    if len(names) < stages:
        raise ValueError(f"{len(names)} {what} do not make {stages} stages")
    each, more = divmod(len(names), stages)
    firsts = [stage * each + min(stage, more) for stage in range(1, stages)]
    return {names[first]: SplitPoint.BEGINNING for first in firsts}


def cut_at_class(model: Layer, name: str, stages: int) -> None:
    """Cut ``model`` evenly before layers of a class, by its name. Raises ValueError for fewer of them than stages."""
    points = even_points(model, lambda _, layer: type(layer).__name__ == name, f"layers of class {name}", stages)
    split_model(model, points)


def stages_of_layers(model: Layer, points: Mapping[str, SplitPoint]) -> dict[str, int]:
    """The stage of each layer by name, where layers are called in the order in which the model has them."""
    found: dict[str, int] = {}
    stage, ends = 0, ""
    for name, _ in model.named_sublayers(include_self=True):
        if ends and not name.startswith(ends + "."):
            stage, ends = stage + 1, ""
        point = points.get(name)
        stage += point is SplitPoint.BEGINNING
        ends = name if point is SplitPoint.END else ends
        found[name] = stage
    return found


def _enter_hook(stage: int) -> Any:
    def hook(*_: Any) -> None:
        enter_stage(stage)

    return hook
