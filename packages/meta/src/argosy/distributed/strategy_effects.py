"""What parts of a ``Strategy`` do to the programs of a ``DistModel``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

from argosy.amp.casting import auto_cast
from argosy.amp.scaler import GradScaler
from argosy.distributed.sharded_optimizer import ShardingStage1, ShardingStage2, ShardingStage3, shard_optimizer
from argosy.distributed.strategy import AMP, Recompute, Sharding, Strategy
from argosy.optimizer.optimizer import Optimizer
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_pir import Operation

__all__ = ["GradientMerge", "merging_of", "precision_of", "regions_of", "scaler_of", "shard_states"]

_STAGES = {1: ShardingStage1, 2: ShardingStage2, 3: ShardingStage3}


class GradientMerge(NamedTuple):
    """Gradients of ``steps`` batches make one update, of their mean or their sum."""

    steps: int
    mean: bool


def merging_of(strategy: Strategy, optimizer: Optimizer | None) -> GradientMerge:
    """What ``gradient_merge`` says, or ``shard_optimizer(gradient_accumulation_steps)``."""
    merge = strategy.gradient_merge
    if merge.enable:
        return GradientMerge(merge.k_steps, merge.avg)
    return GradientMerge(getattr(optimizer, "_merged_steps", 1), True)


def precision_of(amp: AMP) -> AbstractContextManager[Any]:
    """The block in which forward passes are captured."""
    if not amp.enable:
        return nullcontext()
    return auto_cast(True, amp.custom_white_list or None, amp.custom_black_list or None, amp.level.upper(), amp.dtype)


def scaler_of(amp: AMP) -> GradScaler | None:
    """What scales losses; None where nothing does."""
    if not amp.enable or amp.dtype.lower() != "float16":
        return None
    return GradScaler(
        True, amp.init_loss_scaling, amp.incr_ratio, amp.decr_ratio, amp.incr_every_n_steps,
        amp.decr_every_n_nan_or_inf, amp.use_dynamic_loss_scaling,
    )  # fmt: skip


@contextmanager
def regions_of(settings: Recompute) -> Iterator[None]:
    """A block in whose capture regions are computed again. Raises ValueError where there are none."""
    tracer = active_tracer()
    if not settings.enable or tracer is None:
        yield
        return
    tracer.recomputes, tracer.kept_regions = True, settings.no_recompute_segments
    yield
    if not tracer.regions:
        raise ValueError(
            "Strategy.recompute: nothing to compute again: call fleet.recompute in the model, or name layers of it in "
            "recompute.checkpoints"
        )
    for pattern in settings.refined_ops_patterns:
        _keep(list(tracer.program.block), pattern)


def _keep(operations: Sequence[Operation], pattern: Mapping[str, Any]) -> None:
    """Annotate the main operators of the chains of a pattern, which regions keep."""
    before, main, behind = (list(pattern.get(name, ())) for name in ("pre_ops", "main_ops", "suf_ops"))
    most = int(pattern.get("num", 0))
    found: dict[Any, int] = {}
    for op in operations:
        region = op.annotations.get("recompute")
        if region is None:
            continue
        for chain in _chains(op, [*before, *main, *behind]):
            if found.get(region, 0) == most:
                break
            found[region] = found.get(region, 0) + 1
            for kept in chain[len(before) : len(before) + len(main)]:
                kept.annotate(kept=True)


def _chains(op: Operation, names: Sequence[str]) -> Iterator[list[Operation]]:
    """The chains of operations of these names, each using what the one before makes, that begin with ``op``."""
    if op.kind != names[0]:
        return
    if len(names) == 1:
        yield [op]
        return
    for user in dict.fromkeys(user for result in op.results for user in result.users):
        yield from ([op, *rest] for rest in _chains(user, names[1:]))


def shard_states(optimizer: Optimizer, sharding: Sharding) -> None:
    """Split the optimizer's states along the mesh dimension of ``degree`` ranks, as ``stage`` says.

    Raises ValueError where no parameter is distributed, or no dimension of its mesh has so many ranks.
    """
    mesh = next((p.process_mesh for p in optimizer._parameter_list if p.process_mesh is not None), None)
    if mesh is None:
        raise ValueError("Strategy.sharding: no parameter is distributed; shard_layer(model, mesh) puts them on a mesh")
    if sharding.degree not in mesh.shape:
        raise ValueError(f"Strategy.sharding.degree={sharding.degree}: no dimension of {mesh!r} has so many ranks")
    shard_optimizer(optimizer, _STAGES[sharding.stage](mesh.dim_names[mesh.shape.index(sharding.degree)]))
