"""``parallelize``: a model of one device and a plan by layer names, in place of annotations in the model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from argosy.distributed.pipeline.marks import even_points, split_model, stages_of_layers
from argosy.distributed.plans import PlanBase
from argosy.distributed.semi_auto import get_mesh, replicate_parameters, set_mesh
from argosy.distributed.sharded_optimizer import ShardingStage1, ShardingStage2, ShardingStage3, shard_optimizer
from argosy.nn.layer import Layer
from argosy.optimizer.optimizer import Optimizer
from argosy_autoparallel import ProcessMesh
from argosy_tensorcore.tensor import Tensor

__all__ = ["in_auto_parallel_align_mode", "parallelize"]

_STAGES: dict[int, Any] = {0: None, 1: ShardingStage1, 2: ShardingStage2, 3: ShardingStage3}
_PARTS = ("dp_config", "mp_config", "pp_config", "cp_config")


def parallelize(
    model: Layer,
    optimizer: Optimizer | None = None,
    mesh: ProcessMesh | None = None,
    config: Mapping[str, Any] | None = None,
) -> tuple[Layer, Optimizer | None]:
    """Put ``model`` on a mesh as ``config`` says; returns model and optimizer, both changed in place.

    mesh: by default that of ``set_mesh``. config::

        {"dp_config": {"sharding_level": 1},                        # 0 to 3: ZeRO's stages along "dp"
         "mp_config": {"parallelize_plan": {                        # along "mp"
             "blocks.*.wide": dist.ColWiseParallel(),
             "blocks.*.narrow": dist.RowWiseParallel()}},
         "cp_config": {"parallelize_plan": {                        # along "sep"
             "": dist.PrepareContextParallel("all2all"),
             "blocks.*.attend": dist.ContextParallel("all2all")}},
         "pp_config": {"split_spec": "blocks"}}                     # along "pp": cut between the blocks, evenly

    ``split_spec`` may also name the layers to cut at: ``{"blocks.3": dist.SplitPoint.END}``. A model that is cut runs
    by ``distributed.to_static`` with ``Strategy.pipeline``. ``global_spec`` names layers whose outputs all stages read,
    which is no matter here: what a stage reads is sent to it.

    The plan's keys are names of sublayers, or regular expressions that match them whole, with ``.<parameter>`` behind
    them for one parameter; its values are plans or lists of plans. What no plan places is replicated.

    Raises TypeError for what is no layer, mesh or plan, ValueError for keys that match no layer and for meshes without
    the dimension that is asked for.
    """
    if not isinstance(model, Layer):
        raise TypeError(f"parallelize takes a Layer, not {type(model).__name__}")
    parts = _checked_parts(config or {})
    if mesh is not None:
        set_mesh(mesh)
    chosen = get_mesh()
    if chosen is None:
        raise ValueError("parallelize needs a mesh: give it, or set_mesh(mesh) before")
    mesh_of = _meshes_of_layers(model, chosen, parts["pp_config"])
    for part, dim in (("mp_config", "mp"), ("cp_config", "sep")):
        for name, layer, plan, parameters in _matches(model, parts[part].get("parallelize_plan") or {}):
            _require(chosen, dim, f"the plan of {name!r}")
            plan.apply(layer, mesh_of[name], parameters)
    for name, layer in model.named_sublayers(include_self=True):
        replicate_parameters(layer, mesh_of[name])
    level = _level(parts["dp_config"].get("sharding_level", 0))
    if optimizer is not None:
        shard_optimizer(optimizer, _stage(level, chosen))
    return model, optimizer


def in_auto_parallel_align_mode() -> bool:
    """Whether Paddle would give up speed for losses that equal those of hand-written parallelism: never, as losses do
    not depend on the layout here."""
    return False


def _meshes_of_layers(model: Layer, mesh: ProcessMesh, config: Mapping[str, Any]) -> dict[str, ProcessMesh]:
    """The mesh of each layer by name: all of it, or the part of the layer's stage along "pp", once the model is cut."""
    names = [name for name, _ in model.named_sublayers(include_self=True)]
    spec = config.get("split_spec")
    if not spec:
        return dict.fromkeys(names, mesh)
    _require(mesh, "pp", "pp_config")
    ranks = mesh.get_dim_size("pp")
    if isinstance(spec, str):
        pattern = re.compile(rf"{re.escape(spec)}\.\d+")
        spec = even_points(model, lambda name, _: pattern.fullmatch(name) is not None, f"layers {spec}.*", ranks)
    stages = split_model(model, spec)
    if stages % ranks:
        raise ValueError(f"parallelize: pp_config makes {stages} stages, which {ranks} ranks along 'pp' do not share")
    parts = [mesh.get_mesh_with_dim("pp", i) for i in range(ranks)]
    return {name: parts[stage % ranks] for name, stage in stages_of_layers(model, spec).items()}


def _checked_parts(config: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    unknown = [name for name in config if name not in _PARTS]
    if unknown:
        raise ValueError(f"parallelize: config has no part {unknown}; it has {list(_PARTS)}")
    return {name: config.get(name) or {} for name in _PARTS}


def _level(given: Any) -> int:
    level = int(given) if isinstance(given, str) and given.isdecimal() else given
    if level not in _STAGES:
        raise ValueError(f"parallelize: dp_config's sharding_level is 0, 1, 2 or 3, not {given!r}")
    return int(level)


def _stage(level: int, mesh: ProcessMesh) -> Any:
    if not level:
        return None
    _require(mesh, "dp", f"sharding_level={level}")
    return _STAGES[level]("dp")


def _require(mesh: ProcessMesh, dim: str, what: str) -> None:
    if dim not in mesh.dim_names:
        raise ValueError(f"parallelize: {what} needs a mesh dimension {dim!r}; {mesh!r} has {mesh.dim_names}")


def _matches(model: Layer, plans: Mapping[str, Any]) -> list[tuple[str, Layer, PlanBase, list[str]]]:
    """Each layer with each of its plans and the parameters that are meant."""
    found = []
    for key, given in plans.items():
        chosen = list(given) if isinstance(given, (list, tuple)) else [given]
        wrong = [plan for plan in chosen if not isinstance(plan, PlanBase)]
        if wrong:
            raise TypeError(f"parallelize: the plan of {key!r} is {wrong[0]!r}, not one as ColWiseParallel()")
        try:
            re.compile(key)
        except re.error as error:
            raise ValueError(f"parallelize: {key!r} is no regular expression ({error}): '.*' stands for any") from None
        layers = model.named_sublayers(include_self=True)
        hits = [
            (name, layer, meant)
            for name, layer in layers
            if (meant := _matching_parameters(key, name, layer)) is not None
        ]
        if not hits:
            names = [name for name, _ in model.named_sublayers()]
            raise ValueError(f"parallelize: {key!r} matches no layer; there are {names[:8]}{' ...' * (len(names) > 8)}")
        found += [(name, layer, plan, meant) for name, layer, meant in hits for plan in chosen]
    return found


def _matching_parameters(key: str, name: str, layer: Layer) -> list[str] | None:
    """The parameters of ``layer`` that ``key`` names (none: the whole layer); None where it names something else."""
    if key == name or re.fullmatch(key, name):
        return []
    owner, _, last = key.rpartition(".")
    if owner and isinstance(getattr(layer, last, None), Tensor) and (owner == name or re.fullmatch(owner, name)):
        return [last]
    return None
