"""``Strategy``: what ``distributed.to_static`` should do to a program, as typed fields.

Each group of fields has ``enable``. Enabling one that does nothing yet is allowed, because models are configured far
from where they are built; using such a strategy raises NotImplementedError naming the field. What the others do is in
``strategy_effects``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

__all__ = ["Strategy"]


class Config:
    """Fields with defaults, each of the type of its default (None: anything). Unknown names and other types raise.
    Those in ``idle``, whose keys are names with spaces between, are taken, do nothing and say why, once."""

    _fields: ClassVar[dict[str, Any]]
    _choices: ClassVar[dict[str, tuple[Any, ...]]]
    _idle: ClassVar[dict[str, str]]

    def __init_subclass__(
        cls, choices: dict[str, tuple[Any, ...]] | None = None, idle: dict[str, str] | None = None
    ) -> None:
        cls._fields = {name: cls.__dict__.get(name) for name in cls.__annotations__}
        cls._choices = choices or {}
        cls._idle = {name: why for names, why in (idle or {}).items() for name in names.split()}

    def __init__(self, **given: Any) -> None:
        for name, value in given.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        owner = type(self).__name__
        if name not in self._fields:
            raise AttributeError(f"{owner} has no field {name!r}; it has {sorted(self._fields)}")
        choices = self._choices.get(name)
        if choices is not None and value not in choices:
            raise ValueError(f"{owner}.{name} is one of {list(choices)}, not {value!r}")
        value = _convert_value(f"{owner}.{name}", value, self._fields[name])
        object.__setattr__(self, name, value)
        if name in self._idle and value != self._fields[name]:
            warnings.warn(f"{owner}.{name}={value!r} does nothing here: {self._idle[name]}", stacklevel=2)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._fields)})"

    def get(self, k: str, d: Any = None) -> Any:
        """The field ``k``, or ``d`` where there is none of that name."""
        return self.to_dict().get(k, d)

    def from_dict(self, config_dict: Mapping[str, Any]) -> None:
        """Set these fields. Raises as setting them does."""
        for name, value in config_dict.items():
            setattr(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {name: getattr(self, name) for name in self._fields}


def _convert_value(what: str, value: Any, default: Any) -> Any:
    if default is None or isinstance(value, type(default)):
        return value
    if type(default) is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(default) is tuple and isinstance(value, list):
        return tuple(value)
    raise TypeError(f"{what} takes {type(default).__name__}, not {value!r}")


_BUCKETS = "gradients are summed in buckets"


class Sharding(
    Config, choices={"stage": (1, 2, 3)}, idle={
        "enable_tensor_fusion param_bucket_size_numel grad_bucket_size_numel comm_buffer_size_MB": _BUCKETS,
        "enable_hierarchical_comm": "the communicator chooses how it reduces",
        "enable_tuning tuning_range": "nothing is searched for",
        "param_comm_stream_num grad_comm_stream_num": "a collective is started and waited for, without streams",
        "partition_algor": "each parameter is split evenly",
        "release_gradients": "gradients end where they are last used",
        "save_unbalanced_param": "checkpoints know their parts",
    },
):  # fmt: skip
    """Optimizer states (stage 1), gradients (2) and parameters (3) split over ``degree`` ranks (ZeRO): those of a mesh
    dimension of that size. With ``enable_overlap`` collectives are on their way while other things are computed.
    """

    enable: bool = False
    stage: int = 1
    degree: int = 8
    enable_tensor_fusion: bool = False
    enable_overlap: bool = False
    enable_hierarchical_comm: bool = False
    enable_tuning: bool = False
    tuning_range: Sequence[int] = ()
    param_comm_stream_num: int = 1
    grad_comm_stream_num: int = 1
    param_bucket_size_numel: int = 1
    grad_bucket_size_numel: int = 1
    comm_buffer_size_MB: int = 256
    partition_algor: str = "greedy_even"
    release_gradients: bool = False
    save_unbalanced_param: bool = True


class FusedPasses(Config, idle={"enable gemm_epilogue dropout_add fused_passes_list": "the compiler fuses by itself"}):
    """Fusions by name. The compiler fuses on its own; these fields turn nothing off."""

    enable: bool = False
    gemm_epilogue: bool = False
    dropout_add: bool = False
    fused_passes_list: Sequence[str] = ()


class GradientMerge(Config):
    """Gradients of ``k_steps`` batches added (or averaged) before one update: every ``k_steps``-th call updates."""

    enable: bool = False
    k_steps: int = 1
    avg: bool = True


_SCHEDULES = ("1F1B", "DualPipeV", "Eager1F1B", "FThenB", "VPP", "ZBH1", "ZBVPP", "interleaved")


class Pipeline(
    Config, choices={"schedule_mode": _SCHEDULES}, idle={
        "generation_batch_size": "predictions take the batch that they are given",
        "enable_send_recv_overlap": "messages always do", "auto_parallel_sync_shared_params": "they always are",
        "job_schedule_profiler_range job_schedule_profiler_start job_schedule_profiler_stop":
            "profiler.Profiler records steps",
        "program_runtimes": "a search takes all passes to be equally long", "split_backward": "the schedule says it",
    },
):  # fmt: skip
    """Microbatches through the stages of a model, ``accumulate_steps`` of ``micro_batch_size`` rows each.

    A model that is not laid out on a mesh for each stage, nor cut by ``pp_config``, is cut evenly before layers of the
    class that ``vpp_seg_method`` names, into ``vpp_degree`` stages for each of ``pp_degree`` ranks. Weights that stages
    share are always kept equal, and messages overlap with what is computed. With ``memory_limit_times`` of n the
    schedule (ZBH1, or with two stages for each rank ZBVPP) is searched for: the least time in which no rank holds the
    activations of more than n times ``pp_degree`` microbatches, where all passes take equal time.
    """

    enable: bool = False
    schedule_mode: str = "1F1B"
    pp_degree: int = 1
    micro_batch_size: int = 1
    accumulate_steps: int = 1
    generation_batch_size: int = 1
    vpp_degree: int = 1
    vpp_seg_method: str = ""
    enable_send_recv_overlap: bool = False
    auto_parallel_sync_shared_params: bool = False
    job_schedule_profiler_range: Any = None
    job_schedule_profiler_start: int = -1
    job_schedule_profiler_stop: int = -1
    program_runtimes: Sequence[int] = (61, 72, 71, 34, 3)
    memory_limit_times: int = -1
    split_backward: bool = False

    def check_implemented(self) -> None:
        """Raise NotImplementedError for a field that asks for what is not built."""
        if self.memory_limit_times != -1 and self.schedule_mode not in ("ZBH1", "ZBVPP"):
            raise NotImplementedError(
                f"Strategy.pipeline.memory_limit_times={self.memory_limit_times}: 'ZBH1' and 'ZBVPP' are searched for, "
                f"not {self.schedule_mode!r}"
            )


class AMP(
    Config, idle={
        "custom_black_varnames": "operators are named, by custom_black_list",
        "use_fp16_guard use_bf16_guard": "auto_cast is around the whole model",
        "use_master_grad": "amp.decorate(master_grad=True) widens gradients",
        "use_promote": "operators of two dtypes run in the wider one",
    },
):  # fmt: skip
    """Automatic mixed precision: the forward pass is captured under ``auto_cast`` of this dtype and level. Of float16
    the loss is scaled, as by a ``GradScaler`` of these numbers. Parameters, and with them gradients, keep their dtypes:
    ``amp.decorate`` makes those of level O2 half as wide, with float32 copies; ``master_grad`` makes gradients wide."""

    enable: bool = False
    dtype: str = "float16"
    level: str = "o1"
    init_loss_scaling: float = 32768.0
    incr_every_n_steps: int = 1000
    decr_every_n_nan_or_inf: int = 2
    incr_ratio: float = 2.0
    decr_ratio: float = 0.8
    use_dynamic_loss_scaling: bool = True
    custom_white_list: Sequence[str] = ()
    custom_black_list: Sequence[str] = ()
    custom_black_varnames: Sequence[str] = ()
    use_fp16_guard: bool = False
    use_bf16_guard: bool = False
    use_master_grad: bool = False
    use_promote: bool = True

    def check_implemented(self) -> None:
        """Raise NotImplementedError naming the first field that asks for what is not built."""
        for name, built in (("dtype", ("bfloat16", "float16")), ("level", ("o1", "o2"))):
            value = getattr(self, name)
            if value.lower() not in built:
                raise NotImplementedError(f"Strategy.amp.{name}={value!r} is not implemented; there are {[*built]}")


class Recompute(Config, idle={"sr": "regions are named one by one", "enable_tuning": "nothing is searched for"}):
    """Regions of the model computed again in the backward pass instead of kept: calls of ``fleet.recompute``, and of
    the layers whose names (of ``named_sublayers``) are ``checkpoints``; but not those whose numbers in the order of
    calls, from 0, are ``no_recompute_segments``.

    Of ``refined_ops_patterns`` each is a dictionary of lists of operators' names: in each region the first ``num`` (-1:
    all) chains ``pre_ops + main_ops + suf_ops`` keep what ``main_ops`` compute.
    """

    enable: bool = False
    checkpoints: Sequence[str] = ()
    no_recompute_segments: Sequence[int] = ()
    sr: int = 0
    refined_ops_patterns: Sequence[Any] = ()
    enable_tuning: bool = False


class MPOptimization(
    Config, idle={
        "allreduce_matmul_grad_overlapping": "dp_optimization and sharding say what overlaps",
        "replace_with_c_embedding replace_with_parallel_cross_entropy": "the partitioner splits these operators",
    },
):  # fmt: skip
    """How products split over ranks are computed. The compiler chooses; these fields change nothing."""

    allreduce_matmul_grad_overlapping: bool = False
    replace_with_c_embedding: bool = False
    replace_with_parallel_cross_entropy: bool = False


class DPOptimization(
    Config, idle={
        "fuse_all_reduce_ops fuse_grad_size_in_MB": _BUCKETS,
        "gradient_sync_after_accumulate": "merged gradients are always summed once",
    },
):  # fmt: skip
    """How gradients are summed over copies of a model: in buckets, after they were merged, whatever these say; with
    ``enable`` and ``overlap_comm_cacl`` while the backward pass goes on."""

    enable: bool = False
    fuse_all_reduce_ops: bool = True
    fuse_grad_size_in_MB: int = 32
    overlap_comm_cacl: bool = True
    gradient_sync_after_accumulate: bool = False


class SPOptimization(Config, idle={"enable": "the partitioner chooses"}):
    """How split sequences are communicated. The partitioner chooses; the field changes nothing."""

    enable: bool = True


class Strategy(
    Config, idle={
        "gradient_scale_using_allreduce_avg": "the communicator chooses how it reduces",
        "use_cache": "each program is compiled once", "return_numpy all_ranks": "results are tensors with placements",
        "split_data": "shard_dataloader splits", "seed": "argosy.seed seeds", "reinit": "layers have their values",
        "full_graph": "programs are whole",
    },
):  # fmt: skip
    """All groups, and fields of the whole: ``Strategy()`` or ``Strategy({"pipeline": {"enable": True}})``.

    >>> strategy = Strategy()
    >>> strategy.gradient_merge.enable = True
    >>> strategy.gradient_merge.k_steps = 2

    Raises AttributeError for unknown names, TypeError and ValueError for values that do not fit.
    """

    sharding: Sharding
    fused_passes: FusedPasses
    gradient_merge: GradientMerge
    pipeline: Pipeline
    amp: AMP
    recompute: Recompute
    mp_optimization: MPOptimization
    dp_optimization: DPOptimization
    sp_optimization: SPOptimization
    auto_mode: str = "semi"
    gradient_scale: bool = True
    gradient_scale_using_allreduce_avg: bool = False
    use_cache: bool = True
    return_numpy: bool = True
    all_ranks: bool = False
    split_data: bool = True
    seed: int | None = None
    reinit: bool = False
    full_graph: bool = True

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        if config is not None and not isinstance(config, Mapping):
            raise ValueError(f"Strategy takes a dictionary, not {config!r}")
        given = dict(config or {})
        parts = {name: part(**given.pop(name, {})) for name, part in _PARTS.items()}
        super().__init__(**parts, **given)

    @property
    def overlaps(self) -> bool:
        """Whether collectives of compiled steps are on their way while other things are computed."""
        copies, shards = self.dp_optimization, self.sharding
        return (copies.enable and copies.overlap_comm_cacl) or (shards.enable and shards.enable_overlap)

    def check_implemented(self) -> None:
        """Raise NotImplementedError naming the first field that is enabled and does nothing yet."""
        if self.pipeline.enable:
            self.pipeline.check_implemented()
        if self.pipeline.enable and self.gradient_merge.enable:
            raise NotImplementedError(
                "Strategy.gradient_merge with pipeline: the microbatches of a step are merged; set accumulate_steps"
            )
        if self.amp.enable:
            self.amp.check_implemented()
        if not self.gradient_scale:
            raise NotImplementedError("Strategy.gradient_scale=False: gradients are those of the loss; scale the loss")
        if self.auto_mode != "semi":
            raise NotImplementedError(f"Strategy.auto_mode={self.auto_mode!r}: only 'semi' is implemented")


_PARTS: dict[str, type[Config]] = {
    "sharding": Sharding, "fused_passes": FusedPasses, "gradient_merge": GradientMerge, "pipeline": Pipeline,
    "amp": AMP, "recompute": Recompute, "mp_optimization": MPOptimization, "dp_optimization": DPOptimization,
    "sp_optimization": SPOptimization,
}  # fmt: skip
