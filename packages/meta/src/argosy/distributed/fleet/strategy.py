"""``DistributedStrategy``: what :func:`fleet.init` is told. Each switch does what it says, or says by name that it does
not; what a switch does to models and optimizers is in ``strategy_effects``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from argosy.argument_repr import ArgumentRepr
from argosy.distributed.fleet.prototxt import format_message, parse_message

__all__ = ["AXES", "DistributedStrategy"]

AXES = {"dp": "data", "pp": "pipe", "sharding": "sharding", "sep": "sep", "cp": "context", "mp": "model"}
"""From the names of ``hybrid_configs["order"]`` to those of the grid, in the order that they have by default."""
_DEGREES = ("dp_degree", "mp_degree", "pp_degree", "sharding_degree", "sep_degree", "cp_degree", "ep_degree")

_SETTINGS: dict[str, Any] = {
    "find_unused_parameters": False, "fuse_all_reduce_ops": True, "fuse_grad_size_in_MB": 32,
    "last_comm_group_size_MB": 1, "nccl_comm_num": 1, "sync_nccl_allreduce": True, "cudnn_exhaustive_search": False,
    "conv_workspace_size_limit": 512, "cudnn_batchnorm_spatial_persistent": False, "without_graph_optimization": True,
    "fuse_grad_size_in_num": 8, "hierarchical_allreduce_inter_nranks": 1, "split_data": True,
}  # fmt: skip
"""Settings that change no result, and one how gradients travel: ``fuse_grad_size_in_MB``, the size of their buckets."""
_CONFIGS: dict[str, dict[str, Any]] = {
    "amp": {
        "init_loss_scaling": 32768.0, "incr_every_n_steps": 1000, "decr_every_n_nan_or_inf": 2, "incr_ratio": 2.0,
        "decr_ratio": 0.8, "use_dynamic_loss_scaling": True, "custom_white_list": [], "custom_black_list": [],
        "custom_black_varnames": [], "use_pure_fp16": False, "use_pure_bf16": False, "use_fp16_guard": True,
        "use_optimizer_fp16": False,
    },
    "adaptive_localsgd": {"init_k_steps": 1, "begin_step": 1},
    "asp": {},
    "dgc": {"rampup_begin_step": 0, "rampup_step": 1, "sparsity": [0.999]},
    "fp16_allreduce": {},
    "gradient_merge": {"k_steps": 1, "avg": True},
    "lamb": {"lamb_weight_decay": 0.01, "exclude_from_weight_decay": []},
    "lars": {
        "lars_coeff": 0.001, "lars_weight_decay": 0.0005, "epsilon": 0.0, "exclude_from_weight_decay": [],
    },
    "localsgd": {"k_steps": 1, "begin_step": 1},
    "pipeline": {
        "accumulate_steps": 1, "micro_batch_size": 1, "schedule_mode": "1F1B", "p2p_cache_shape": True,
        "enable_partial_send_recv": True,
    },
    "qat": {
        "channel_wise_abs_max": True, "weight_bits": 8, "activation_bits": 8, "not_quant_pattern": [], "algo": "",
    },
    "recompute": {
        "checkpoints": [], "enable_offload": False, "checkpoint_shape": [], "enable_tuning": False,
        "refined_ops_patterns": [],
    },
    "sharding": {
        "sharding_segment_strategy": "segment_broadcast_MB", "segment_broadcast_MB": 32.0, "segment_anchors": [],
        "sharding_degree": 8, "mp_degree": 1, "dp_degree": 1, "hybrid_dp": False, "gradient_merge_acc_step": 1,
        "optimize_offload": False, "pp_allreduce_in_optimize": False, "pp_degree": 1, "optimize_cast": False,
        "stage": 1, "enable_tuning": False, "use_calc_stream": False, "_dp_as_optimizer_sharding": False,
    },
    "tensor_parallel": {"tensor_parallel_degree": 1, "tensor_init_seed": -1},
    "sync_batch_norm": {},
}  # fmt: skip
"""Switches that act, with the defaults of their ``..._configs``."""
_SCRIPT = "the script scales losses, by amp.GradScaler"
_BUFFERS = "what one rank owns goes to it in buckets"
_IDLE_KEYS: dict[str, dict[str, str]] = {
    "amp_configs": dict.fromkeys(
        ("init_loss_scaling", "incr_every_n_steps", "decr_every_n_nan_or_inf", "incr_ratio", "decr_ratio",
         "use_dynamic_loss_scaling"), _SCRIPT,
    ) | dict.fromkeys(("use_fp16_guard", "use_optimizer_fp16"), "parameters stay float32")
    | {"custom_black_varnames": "operators are named, by custom_black_list"},
    "gradient_scale_configs": {"scale_gradient": "gradients are means over ranks"},
    "hybrid_configs": {
        "enable_optimizer_timer": "profiler.Profiler times", "split_norm_comm": "norms meet in one sum a group",
        "moe_sharding_degree": "each rank has the states of its own experts",
        "cp_sharding_degree": "parts of sequences are parts of the sharding group",
    } | dict.fromkeys(
        ("mp_configs", "pp_configs", "sharding_configs", "dp_comm_configs", "ep_configs", "cp_configs", "dp_configs",
         "sep_configs", "dp_sep_configs", "pp_tp_configs", "moe_sharding_configs", "default_comm_group_configs",
         "cp_sharding_configs", "dp_cp_configs", "cp_mp_configs"),
        "groups communicate in buckets by themselves",
    ),
    "pipeline_configs": dict.fromkeys(
        ("p2p_cache_shape", "enable_partial_send_recv"), "shapes are known before the first message"
    ),
    "recompute_configs": {
        "checkpoint_shape": "what is kept has the shape of its tensor", "enable_tuning": "nothing is searched for",
    },
    "sharding_configs": dict.fromkeys(
        ("sharding_segment_strategy", "segment_broadcast_MB", "segment_anchors", "optimize_cast", "use_calc_stream",
         "pp_allreduce_in_optimize"), _BUFFERS,
    ) | {"enable_tuning": "nothing is searched for"},
}  # fmt: skip
"""Keys of ``..._configs`` that are taken and do nothing, and why."""
_ACTING_FIELDS = {"sharding_configs": {"split_param", "comm_buffer_size_MB"}}
"""Fields of ``hybrid_configs``' ``..._configs`` that do what they say."""
_REFUSED_KEYS: dict[str, dict[str, str]] = {
    "gradient_scale_configs": {"scale_strategy": "the mean over ranks ('avg'), or scale the loss"},
    "recompute_configs": {"refined_ops_patterns": "Strategy.recompute.refined_ops_patterns with distributed.to_static"},
    "sharding_configs": dict.fromkeys(
        ("mp_degree", "dp_degree", "pp_degree", "hybrid_dp", "_dp_as_optimizer_sharding"), "hybrid_configs"
    ) | {
        "gradient_merge_acc_step": "gradient_merge",
        "optimize_offload": "group_sharded_parallel(offload=True)",
    },
}  # fmt: skip
"""Keys of ``..._configs`` that take no other value than their own, and what scripts may take for them."""


class FieldsOfConfigs(dict[str, Any]):
    """Fields of ``hybrid_configs``' ``..._configs``, as keys and as attributes; False where nobody has set them."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name, False)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


_SUB_CONFIGS = [name for name in _IDLE_KEYS["hybrid_configs"] if name.endswith("_configs")]
_KNOWN: dict[str, dict[str, Any]] = {
    **{f"{name}_configs": given for name, given in _CONFIGS.items() if given},
    "gradient_scale_configs": {"scale_strategy": "avg", "scale_gradient": False},
    "hybrid_configs": {
        **dict.fromkeys(_DEGREES, 1), "dp_degree": -1, "order": [*AXES], "enable_optimizer_timer": False,
        "split_norm_comm": False, "moe_sharding_degree": 1, "cp_sharding_degree": 1,
        **{name: FieldsOfConfigs() for name in _SUB_CONFIGS},
    },
}  # fmt: skip
"""All ``..._configs`` of a new strategy."""
_IDLE = {
    "auto": "ranks have copies of the model; distributed.to_distributed lays it out over them",
    "semi_auto": "tensors of distributed.shard_tensor act with it and without it",
    "use_hierarchical_allreduce": "MPI chooses how it reduces",
    "fuse_grad_merge": "gradients are added where they are",
    "heter_ccl_mode": "there is one kind of link",
    "auto_search": "nothing is searched for",
    "build_strategy": "the compiler fuses by itself",
}
"""Switches that are taken and do nothing, and why."""
_INSTEAD = {
    "a_sync_configs": "is_collective=True: there are no parameter servers",
    "a_sync": "is_collective=True: there are no parameter servers",
    "is_fl_ps_mode": "is_collective=True: there are no parameter servers",
    "is_with_coordinator": "is_collective=True: there are no parameter servers",
    "trainer_desc_configs": "is_collective=True: there are no parameter servers",
    "fleet_desc_configs": "is_collective=True: there are no parameter servers",
    "sparse_table_configs": "nn.Embedding: there are no parameter servers",
    "fs_client_param": "fleet.utils.LocalFS",
    "adam_d2sum": "optimizer.Adam",
    "elastic": "distributed.checkpoint, and start the job again",
}
"""What scripts may take for a switch that is not implemented."""


def _check_keys(name: str, value: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Raise ValueError for keys that there are not, NotImplementedError for values that are not built; warn of values
    that do nothing."""
    if unknown := value.keys() - known.keys():
        raise ValueError(f"DistributedStrategy.{name} has no {sorted(unknown)}; it has {sorted(known)}")
    for key, given in value.items():
        if given == known[key]:
            continue
        if other := _REFUSED_KEYS.get(name, {}).get(key):
            raise NotImplementedError(f"DistributedStrategy.{name}: {key}={given!r} is not implemented; use {other}")
        if isinstance(given, Mapping) and given.keys() <= _ACTING_FIELDS.get(key, set()):
            continue
        if why := _IDLE_KEYS.get(name, {}).get(key):
            warnings.warn(f"DistributedStrategy.{name}: {key}={given!r} does nothing here: {why}", stacklevel=3)


class DistributedStrategy(ArgumentRepr):
    """How :func:`init` is to train: by default copies of the model on all ranks, each with data of its own.

    ``hybrid_configs`` are degrees of a grid, of whose groups ``cp_degree`` and ``ep_degree`` cut some; with
    ``split_param`` of its ``sharding_configs`` ranks have the states of equal slices, not of whole parameters.
    ``amp`` runs forward passes under ``auto_cast`` (bfloat16 with ``use_pure_bf16``, else float16, where the script
    scales losses itself), ``gradient_merge`` updates in every ``k_steps``-th step, ``localsgd`` averages parameters
    after every ``k_steps`` steps instead of gradients, ``lamb`` makes Lamb of Adam, ``lars`` LARS of Momentum,
    ``adaptive_localsgd`` is localsgd with as many steps as the loss says, ``dgc`` exchanges the largest entries of
    gradients alone, ``recompute`` computes the layers whose names (of ``named_sublayers``) are ``checkpoints``
    again in the backward pass instead of keeping what they compute, what they are given in host memory with
    ``enable_offload``, ``fp16_allreduce`` rounds them for the way, ``sharding`` is ``sharding_degree``, of
    pipelines with ``stage`` 2 and 3 of ZeRO, too, and ``tensor_parallel`` is ``mp_degree`` by another name,
    ``sync_batch_norm`` converts the layers of what :func:`distributed_model` is given, ``qat`` rounds what its
    layers multiply, but those with a part of ``not_quant_pattern`` in their names, ``asp`` keeps the zeros of
    ``incubate.asp.prune_model``.

    What does nothing here may be set to anything, and says so once. Raises
    NotImplementedError, with what to use instead, where another switch is on or a key has a value that is not built;
    ValueError for keys of ``..._configs`` that there are not.
    """

    def __init__(self) -> None:
        self.__dict__.update(_SETTINGS, **deepcopy(_KNOWN), **dict.fromkeys(_CONFIGS, False))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _KNOWN:
            _check_keys(name, value, _KNOWN[name])
            fields = {key: FieldsOfConfigs(given) for key, given in value.items() if key in _SUB_CONFIGS}
            self.__dict__[name] = {**getattr(self, name), **value, **fields}
        elif name in _CONFIGS:
            self.__dict__[name] = value
        elif name in _SETTINGS or name in _IDLE:
            self.__dict__[name] = value
            if value != _SETTINGS.get(name, False) and name != "fuse_grad_size_in_MB":
                why = _IDLE.get(name, "it changes no result")
                warnings.warn(f"DistributedStrategy.{name} does nothing here: {why}", stacklevel=2)
        elif value:
            other = _INSTEAD.get(name)
            raise NotImplementedError(
                f"DistributedStrategy.{name} is not implemented" + (f"; use {other}" if other else "")
            )

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"DistributedStrategy has no attribute {name!r}")

    @property
    def averages_later(self) -> bool:
        """Whether the optimizer makes ranks alike, and no backward pass."""
        return bool(self.localsgd or self.adaptive_localsgd or self.dgc)

    def save_to_prototxt(self, output: str) -> None:
        """Write what differs from a new strategy to a file, in the text format of Paddle's protocol buffer."""
        Path(output).write_text(format_message(_difference(vars(self), vars(DistributedStrategy()))), "utf-8")

    def load_from_prototxt(self, pb_file: str) -> None:
        """Set what a file of :meth:`save_to_prototxt`, or of Paddle's, says. Raises ValueError with the line for what
        is no such text, and as setting does."""
        for name, value in parse_message(Path(pb_file).read_text("utf-8"), _REPEATED).items():
            setattr(self, name, value)

    def degrees(self) -> dict[str, int]:
        """The sizes of the grid by the names of ``order``; -1 as many copies as fill it."""
        configs = self.hybrid_configs
        found = {axis: int(configs.get(f"{axis}_degree", 1)) if axis != "cp" else 1 for axis in AXES}
        found = {axis: degree if axis == "dp" and degree == -1 else max(1, degree) for axis, degree in found.items()}
        if self.tensor_parallel:
            found["mp"] = int(self.tensor_parallel_configs["tensor_parallel_degree"])
        if self.sharding:
            found["sharding"] = int(self.sharding_configs["sharding_degree"])
        return found


class _Field:
    """A setting as an attribute of the class: of a strategy that has not set it nothing, or False."""

    def __init__(self, name: str) -> None:
        self._name, why = name, _IDLE.get(name) or _INSTEAD.get(name)
        self.__doc__ = f"Setting {name!r}." if why is None else f"Not implemented: {why}."

    def __get__(self, strategy: DistributedStrategy | None, kind: type) -> Any:
        if strategy is None:
            return self
        return {} if self._name.endswith("_configs") else False


for _name in (*_KNOWN, *_SETTINGS, *_CONFIGS, *_IDLE, *_INSTEAD):
    setattr(DistributedStrategy, _name, _Field(_name))

_REPEATED = frozenset({name for given in _CONFIGS.values() for name, value in given.items() if isinstance(value, list)})
"""Fields of the protocol buffer that are lists."""


def _difference(given: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """What ``given`` has that ``usual`` has not, mappings in it included. The order of a grid is no field."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        before = usual.get(name)
        if isinstance(value, Mapping):
            value = _difference(value, before if isinstance(before, Mapping) else {})
        if name != "order" and value != before and value != {}:
            found[name] = value
    return found
