"""``Fleet``: the job of which this process is a rank. The functions of ``argosy.distributed.fleet`` are methods of
one."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from math import prod
from time import perf_counter
from typing import Any

from argosy.api.absent import absent
from argosy.distributed import collective
from argosy.distributed.environment import ParallelEnv, get_rank, get_world_size
from argosy.distributed.fleet.base import topology
from argosy.distributed.fleet.base.topology import CommunicateTopology, HybridCommunicateGroup
from argosy.distributed.fleet.base.util_factory import util
from argosy.distributed.fleet.job import Job, current_job, require_job
from argosy.distributed.fleet.layers.mpu.random import add_state_of_parts, model_parallel_random_seed
from argosy.distributed.fleet.strategy import AXES, DistributedStrategy
from argosy.distributed.fleet.training import distributed_optimizer
from argosy.distributed.group import Group, init_parallel_env
from argosy.distributed.node_order import machine_names, ranks_by_node
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "Fleet", "all_reduce", "barrier_worker", "collective_perf", "fleet", "get_hybrid_communicate_group",
    "init", "is_coordinator", "is_first_worker", "is_server", "is_worker", "local_device_ids", "local_rank",
    "minimize", "node_num", "server_endpoints", "server_num", "worker_endpoints", "worker_index",
    "worker_num", "world_device_ids",
]  # fmt: skip

_log = logging.getLogger("argosy.distributed.fleet")


class Fleet:
    """The ranks of a job: who they are, their groups and what they train. Every rank is a worker, of which the first
    one does what one alone should; there are no servers. All instances of a rank have one job. What needs parameter
    servers, or saves through them, raises NotImplementedError.
    """

    def init(
        self,
        role_maker: object = None,
        is_collective: bool = False,
        strategy: DistributedStrategy | None = None,
        log_level: int | str = "INFO",
    ) -> Fleet:
        """Get this process ready as one of several ranks. Returns the instance.

        role_maker: a ``PaddleCloudRoleMaker``, which says no more than ``is_collective``. strategy: how to train, by
        default copies of the model. Raises NotImplementedError for parameter
        servers, which are what ``is_collective=False`` with a ``role_maker`` asks for, ValueError for degrees that do
        not make the number of ranks.
        """
        if role_maker is not None and not is_collective and not getattr(role_maker, "_is_collective", False):
            raise NotImplementedError("fleet.init(): parameter servers are not implemented; use is_collective=True")
        logging.getLogger("argosy").setLevel(log_level)
        init_parallel_env()
        chosen = DistributedStrategy() if strategy is None else strategy
        groups = HybridCommunicateGroup(_topology(chosen), chosen.hybrid_configs)
        current_job.value = Job(chosen, groups)
        topology.groups.value = groups
        if groups.get_model_parallel_world_size() > 1:
            seed = chosen.tensor_parallel_configs.get("tensor_init_seed", -1)
            add_state_of_parts() if seed == -1 else model_parallel_random_seed(seed)
        return self

    def get_hybrid_communicate_group(self) -> HybridCommunicateGroup:
        """The groups of this rank. Raises RuntimeError before :meth:`init`."""
        return require_job("get_hybrid_communicate_group").groups

    def get_hybrid_parallel_topology(self) -> CommunicateTopology:
        """The grid of ranks. Raises RuntimeError before :meth:`init`."""
        return require_job("get_hybrid_parallel_topology").groups.topology()

    def distributed_optimizer(self, optimizer: Any, strategy: DistributedStrategy | None = None) -> Any:
        """See ``fleet.distributed_optimizer``."""
        return distributed_optimizer(optimizer, strategy)

    def minimize(
        self, loss: Tensor, startup_program: object = None, parameter_list: Any = None, no_grad_set: Any = None
    ) -> Any:
        """What the last optimizer that ``distributed_optimizer`` made does with the loss: ``minimize(loss,
        startup_program, parameter_list, no_grad_set)``. Returns what that does. Raises RuntimeError without one."""
        optimizer = require_job("minimize").optimizer
        if optimizer is None:
            raise RuntimeError("fleet.minimize(): call fleet.distributed_optimizer(optimizer) first")
        return optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)

    def worker_index(self) -> int:
        """The number of this rank."""
        return get_rank()

    def worker_num(self) -> int:
        """How many ranks there are."""
        return get_world_size()

    def is_first_worker(self) -> bool:
        """Whether this is rank 0."""
        return get_rank() == 0

    def is_worker(self) -> bool:
        """True: every rank trains."""
        return True

    def is_server(self) -> bool:
        """False: there are no parameter servers."""
        return False

    def is_coordinator(self) -> bool:
        """False: there are no parameter servers, whose clients one would coordinate."""
        return False

    def server_num(self) -> int:
        """0: there are no parameter servers."""
        return 0

    def server_endpoints(self, to_string: bool = False) -> list[str] | str:
        """The parameter servers: none, as a list, or ``to_string`` as text."""
        return "" if to_string else []

    def worker_endpoints(self, to_string: bool = False) -> list[str] | str:
        """A name for each rank, as a list, or ``to_string`` as text with commas."""
        names = ParallelEnv().trainer_endpoints
        return ",".join(names) if to_string else names

    def node_num(self) -> int:
        """How many machines the ranks are on. All ranks call it."""
        return len({*machine_names()})

    def local_rank(self) -> int:
        """This rank's number on its machine."""
        return ParallelEnv().device_id

    def local_device_ids(self) -> list[int]:
        """The numbers of this rank's devices on its machine: one."""
        return [ParallelEnv().device_id]

    def world_device_ids(self) -> list[list[int]]:
        """Those of all ranks. All ranks call it."""
        return util.all_gather(self.local_device_ids())

    @property
    def user_defined_optimizer(self) -> Any:
        """What the last :meth:`distributed_optimizer` was given; None before."""
        job = current_job.value
        return None if job is None else job.given_optimizer

    def barrier_worker(self) -> None:
        """Wait until all ranks are here."""
        collective.barrier()

    def all_reduce(self, input: Any, mode: str = "sum") -> Any:
        """Returns the sum of the ranks' numbers or arrays ``input``, or by ``mode`` their ``"min"`` or ``"max"``."""
        return util.all_reduce(input, mode)

    def collective_perf(
        self, comm_type: str, round: int = 50, size_and_time: Mapping[int, float] | None = None
    ) -> dict[int, float]:
        """The mean seconds that a collective of so many bytes takes, by bytes; a warning is logged where it is more
        than it should be. All ranks call it.

        comm_type: "allreduce", "reduce", "broadcast", "allgather" or "reduce_scatter", of all ranks. round: how often.
        size_and_time: bytes, and the seconds that they may take; by default 1 MiB to 1 GiB in powers of two.
        Raises ValueError for another collective.
        """
        if comm_type not in _COLLECTIVES:
            raise ValueError(f"fleet.collective_perf(): comm_type is one of {[*_COLLECTIVES]}, not {comm_type!r}")
        sizes = {1 << power: 0.0 for power in range(20, 31)} if size_and_time is None else size_and_time
        return {size: self._perf(comm_type, round, None, None, size, limit) for size, limit in sizes.items()}

    def allreduce_perf(
        self, iteration: int, x: Tensor | None, group: Group | None, perf_size: int, perf_threshold_time: float,
        warmup: bool = False,
    ) -> float:  # fmt: skip
        """The mean seconds of ``iteration`` all-reduces of ``x``, or of ``perf_size`` bytes, over ``group`` (default:
        all ranks); with ``warmup`` nothing is logged where they are more than ``perf_threshold_time``."""
        return self._perf("allreduce", iteration, x, group, perf_size, 0 if warmup else perf_threshold_time)

    def reduce_perf(
        self, iteration: int, x: Tensor | None, group: Group | None, perf_size: int, perf_threshold_time: float
    ) -> float:
        """As :meth:`allreduce_perf`, of reductions to the first rank."""
        return self._perf("reduce", iteration, x, group, perf_size, perf_threshold_time)

    def broadcast_perf(
        self, iteration: int, x: Tensor | None, group: Group | None, perf_size: int, perf_threshold_time: float
    ) -> float:
        """As :meth:`allreduce_perf`, of broadcasts from the first rank."""
        return self._perf("broadcast", iteration, x, group, perf_size, perf_threshold_time)

    def allgather_perf(
        self, iteration: int, x: Tensor | None, group: Group | None, perf_size: int, perf_threshold_time: float
    ) -> float:
        """As :meth:`allreduce_perf`, of all-gathers."""
        return self._perf("allgather", iteration, x, group, perf_size, perf_threshold_time)

    def reduce_scatter_perf(
        self, iteration: int, x: Tensor | None, group: Group | None, perf_size: int, perf_threshold_time: float
    ) -> float:
        """As :meth:`allreduce_perf`, of reduce-scatters."""
        return self._perf("reduce_scatter", iteration, x, group, perf_size, perf_threshold_time)

    def _perf(self, kind: str, iteration: int, x: Tensor | None, group: Group | None, size: int, limit: float) -> float:
        given = get_operator("full")([max(1, size // 4)], 0, "float32") if x is None else x
        ranks = get_world_size() if group is None else group.nranks
        given = given[: max(ranks, given.shape[0] // ranks * ranks)]
        run = _COLLECTIVES[kind]
        run(given, group)
        begin = perf_counter()
        for _ in range(iteration):
            run(given, group)
        mean = (perf_counter() - begin) / max(1, iteration)
        if limit and mean > limit:
            _log.warning("fleet.collective_perf(): %s of %d bytes takes %g s, more than %g s", kind, size, mean, limit)
        return mean

    def amp_init(
        self, place: object, scope: object = None, test_program: object = None, use_fp16_test: bool = False
    ) -> None:
        """That of the last optimizer, which ``static.amp.decorate`` has made. Raises RuntimeError without one."""
        self._static_optimizer("amp_init").amp_init(place, scope, test_program, use_fp16_test)

    def get_loss_scaling(self) -> Tensor:
        """The factor of losses of such an optimizer. Raises RuntimeError without one."""
        found: Tensor = self._static_optimizer("get_loss_scaling").get_loss_scaling()
        return found

    def _static_optimizer(self, name: str) -> Any:
        optimizer = require_job(name).optimizer
        if not hasattr(optimizer, name):
            raise RuntimeError(f"fleet.{name}(): give distributed_optimizer what static.amp.decorate makes first")
        return optimizer


def _first_rank(group: Group | None) -> int:
    return 0 if group is None else group.ranks[0]


def _scatter_sum(x: Tensor, group: Group | None) -> None:
    parts = get_operator("split")(x, get_world_size() if group is None else group.nranks)
    collective.reduce_scatter(parts[0].clone(), parts, group=group)


_COLLECTIVES: dict[str, Any] = {
    "allreduce": lambda x, group: collective.all_reduce(x, group=group),
    "reduce": lambda x, group: collective.reduce(x, _first_rank(group), group=group),
    "broadcast": lambda x, group: collective.broadcast(x, _first_rank(group), group=group),
    "allgather": lambda x, group: collective.all_gather([], x, group=group),
    "reduce_scatter": _scatter_sum,
}  # fmt: skip

_SERVERS = """
    check_save_pre_patch_done get_fl_client init_coordinator init_server init_worker load_inference_model load_model
    load_one_table make_fl_strategy print_table_stat qat_init run_server save save_cache_model save_cache_table
    save_dense_params save_inference_model save_one_table save_persistables server_index set_date shrink stop_worker
"""
for _name in _SERVERS.split():
    setattr(Fleet, _name, absent(f"argosy.distributed.fleet.Fleet.{_name}", "fleet"))

fleet = Fleet()
all_reduce = fleet.all_reduce
barrier_worker = fleet.barrier_worker
collective_perf = fleet.collective_perf
get_hybrid_communicate_group = fleet.get_hybrid_communicate_group
init = fleet.init
is_coordinator = fleet.is_coordinator
is_first_worker = fleet.is_first_worker
is_server = fleet.is_server
is_worker = fleet.is_worker
local_device_ids = fleet.local_device_ids
local_rank = fleet.local_rank
minimize = fleet.minimize
node_num = fleet.node_num
server_endpoints = fleet.server_endpoints
server_num = fleet.server_num
worker_endpoints = fleet.worker_endpoints
worker_index = fleet.worker_index
worker_num = fleet.worker_num
world_device_ids = fleet.world_device_ids


def _topology(strategy: DistributedStrategy) -> CommunicateTopology:
    """The grid of ranks, those of a machine beside each other. As many copies as fill it where ``dp_degree`` is -1."""
    degrees = strategy.degrees()
    world, order = get_world_size(), list(strategy.hybrid_configs["order"])
    if unknown := {*order} - {*AXES}:
        raise ValueError(f"fleet.init(): hybrid_configs['order'] names {sorted(unknown)}; there are {[*AXES]}")
    order += [axis for axis in AXES if axis not in order]
    if degrees["dp"] == -1:
        degrees["dp"] = world // prod(size for axis, size in degrees.items() if axis != "dp")
    if prod(degrees.values()) != world:
        given = " and ".join(f"{a}_degree is {n}" for a, n in degrees.items() if n > 1 or a == "dp")
        raise ValueError(f"fleet.init(): {given}, but there are {world} ranks")
    sizes = [degrees[axis] for axis in order]
    ranks = ranks_by_node() if sum(size > 1 for size in sizes) > 1 else None  # one line of ranks has no inside
    return CommunicateTopology([AXES[axis] for axis in order], sizes, ranks)
