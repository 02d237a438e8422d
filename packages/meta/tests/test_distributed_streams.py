"""Collectives by the names of ``communication.stream``, places of ranks by those of ``fleet``, and what a `DistModel`
gives and takes back."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed import fleet
from argosy.distributed.communication import stream
from argosy.distributed.debug import run_ranks
from argosy.utils import unique_name


def numbers(*values):
    return paddle.to_tensor(np.array(values, np.float32))


def test_streams_do_what_the_functions_do():
    def body():
        rank = dist.get_rank()
        x = numbers(rank + 1, 2)
        stream.broadcast(x, 1)
        stream.reduce(y := numbers(rank, 1), dst=0)
        parts = []
        stream.gather(numbers(rank), parts, dst=1)
        stream.alltoall_single(swapped := numbers(0, 0), numbers(10 * rank, 10 * rank + 1))
        stream.all_reduce(total := numbers(rank, 1), op=dist.ReduceOp.MAX)
        if rank == 0:
            stream.send(numbers(7), 1)
        else:
            stream.recv(got := numbers(0), 0)
            assert got.item() == 7
        dist.wait(total)
        return [t.numpy().tolist() for t in (x, y, swapped, total, *parts)]

    zero, one = run_ranks(body, 2)
    assert zero[:4] == [[2, 2], [1, 2], [0, 10], [1, 1]]
    assert [one[0], *one[2:]] == [[2, 2], [1, 11], [1, 1], [0], [1]]


def test_groups_are_left():
    def body():
        group = dist.new_group([0, 1])
        dist.all_reduce(x := numbers(1), group=group)
        dist.destroy_process_group(group)
        assert dist.is_available()
        with pytest.raises(ValueError, match="no group"):
            dist.get_group(group.id)
        return x.item()

    assert run_ranks(body, 2) == [2, 2]


def test_tensors_of_a_mesh_are_made_by_functions():
    def body():
        mesh = dist.ProcessMesh([0, 1], ["x"])
        made = dist.dtensor_from_fn(paddle.ones, mesh, [dist.Shard(0)], [4, 3])
        assert mesh.unique_id == dist.ProcessMesh([0, 1], ["y"]).unique_id != dist.ProcessMesh([1, 0]).unique_id
        return made.shape, dist.dtensor_to_local(made).shape

    assert run_ranks(body, 2) == [([4, 3], [2, 3])] * 2


def test_places_of_a_grid(capsys):
    def body():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"mp_degree": 2, "pp_degree": 2, "sharding_degree": 2}
        fleet.init(is_collective=True, strategy=strategy)
        grid, me = fleet.get_hybrid_communicate_group(), dist.get_rank()
        fleet.util.print_on_rank(f"I am {me}", 3)
        assert (grid.get_global_rank(), fleet.fleet.is_worker(), fleet.fleet.node_num()) == (me, True, 1)
        assert fleet.fleet.server_endpoints() == []
        assert len(fleet.fleet.worker_endpoints()) == len(fleet.fleet.worker_endpoints(to_string=True).split(","))
        environment = dist.ParallelEnv()
        assert environment.dev_id == fleet.fleet.local_rank()
        assert environment.current_endpoint in (*environment.trainer_endpoints, "")
        assert fleet.CommunicateTopology().get_dim_size("data") == 1
        return (
            grid.get_check_parallel_group().ranks, grid.get_check_parallel_group(sharding=True).ranks,
            grid.get_pp_mp_parallel_group().ranks, grid.get_model_parallel_group_src_rank(),
            grid.get_sharding_parallel_group_src_rank(), grid.get_data_parallel_group_src_rank(),
            grid.get_sep_parallel_rank(), grid.get_sep_parallel_group().ranks,
        )  # fmt: skip

    places = run_ranks(body, 8)
    assert capsys.readouterr().out == "I am 3\n"
    for me, (parts, with_states, together, *others) in enumerate(places):
        assert me in parts
        assert len(parts) == 4
        assert set(parts) == set(together)
        assert with_states == list(range(8))
        assert others == [me - me % 2, me - 2 * (me // 2 % 2), me, 0, [me]]


def test_collectives_are_timed():
    def body():
        fleet.init(is_collective=True)
        kinds = ("allreduce", "reduce", "broadcast", "allgather", "reduce_scatter")
        return [getattr(fleet.fleet, f"{kind}_perf")(2, None, None, 64, 1e9) for kind in kinds]

    assert all(0 < seconds < float("inf") for each in run_ranks(body, 2) for seconds in each)


def test_the_state_of_a_model_is_taken_back():
    """A second model goes on where the first one stopped: losses and moments of Adam are those of one that goes on."""
    rng = np.random.default_rng(0)
    batches = rng.standard_normal((4, 8, 4)).astype(np.float32)

    def made():
        paddle.seed(3)
        mesh = dist.ProcessMesh([0, 1], ["dp"])
        with unique_name.guard():  # states are found by the names of their parameters
            layer = dist.shard_layer(nn.Linear(4, 4), mesh)
        adam = paddle.optimizer.Adam(0.1, parameters=layer.parameters())
        adam = dist.shard_optimizer(adam, dist.ShardingStage1("dp"))
        data = [[paddle.to_tensor(x), paddle.to_tensor(x * x)] for x in batches]
        loader = dist.shard_dataloader(data, mesh, shard_dims="dp")
        return dist.to_static(layer, loader, nn.MSELoss(), adam), list(loader)

    def body():
        model, given = made()
        for batch in given[:2]:
            model(*batch)
        state = {name: np.array((dist.unshard_dtensor(x) if x.is_dist() else x).numpy())
                 for name, x in model.state_dict().items() if isinstance(x, paddle.Tensor)}  # fmt: skip
        assert {*model.state_dict("param")} | {*model.state_dict("opt")} == {*model.state_dict()}
        going_on = [float(model(*batch)) for batch in given[2:]]
        again, given = made()
        again(*given[0])  # has states of its own, which are overwritten
        again.set_state_dict({name: paddle.to_tensor(value) for name, value in state.items()})
        return going_on, [float(again(*batch)) for batch in given[2:]]

    for going_on, again in run_ranks(body, 2):
        np.testing.assert_allclose(again, going_on, rtol=1e-6)
