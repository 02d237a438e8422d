"""Ranks whose tensors are on devices of their own: collectives bring the values through the host, counted, unless the
communicator takes the buffers themselves.
"""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy.distributed import debug, environment, fleet
from argosy.distributed.buffers import staged
from argosy.distributed.debug import run_ranks
from argosy_hwadapt.testing.device_buffers import AddressedCommunicator

X = np.random.default_rng(0).standard_normal((4, 6)).astype("float32")


def on_devices(program, count=2):
    """What ``program`` gives on each rank, whose new tensors are on a virtual device: of two ranks each has its own."""

    def rank():
        with paddle.device.device_guard(f"virtual:{dist.get_rank() % 2}"):
            return program()

    return run_ranks(rank, count)


def test_results_are_where_their_operands_are():
    def program():
        rank, parts, swapped = dist.get_rank(), [], []
        x = paddle.full([3], rank + 1.0)
        dist.all_reduce(x)
        dist.all_gather(parts, x * (rank + 1))
        dist.alltoall(swapped, [x + rank, x - rank])
        y = paddle.to_tensor([7.0 * rank])
        dist.broadcast(y, src=1)
        (dist.send if rank else dist.recv)(y, 1 - rank)
        tensors = [x, *parts, *swapped, y]
        return [t.tolist() for t in tensors], {str(t.place) for t in tensors}

    staged.clear()
    (zero, places), (one, others) = on_devices(program)
    assert zero == [[3] * 3, [3] * 3, [6] * 3, [3] * 3, [4] * 3, [7]]
    assert one == [[3] * 3, [3] * 3, [6] * 3, [3] * 3, [2] * 3, [7]]
    assert (places, others) == ({"Place(virtual:0)"}, {"Place(virtual:1)"})
    assert staged["all_reduce", "virtual:0"] == [1, 12]
    assert {kind for kind, _ in staged} == {"all_reduce", "all_gather", "alltoall", "broadcast", "send", "recv"}


def every_collective():
    rank, results = dist.get_rank(), []

    def new(*shape, by=1.0):
        return paddle.arange(np.prod(shape), dtype="float32").reshape(shape) * by + rank

    def parts():
        return [new(2, 3), new(2, 3, by=-1.0)]

    def keep(*tensors):
        results.extend(tensors)

    for reduction in (dist.ReduceOp.SUM, dist.ReduceOp.MAX):
        x, y = new(2, 3), new(2, 3)
        dist.all_reduce(x, reduction)
        dist.reduce(y, 1, reduction)
        keep(x, y)
    x, empty, given, gathered = new(2, 3), [], parts(), []
    dist.broadcast(x, 1)
    dist.all_gather(empty, new(2, 3))
    dist.all_gather(given, new(2, 3))
    dist.gather(new(2, 3), gathered, 1)
    keep(x, *empty, *given, *gathered)
    x, y, swapped, z, w = new(2, 3), new(2, 3), [], new(2, 3), new(3, 2)
    dist.reduce_scatter(x, parts())
    dist.scatter(y, parts(), 1)
    dist.alltoall(swapped, parts())
    dist.alltoall_single(z, new(2, 3))
    dist.alltoall_single(w, new(3, 2), *[[1, 2], [1, 2]] if rank == 0 else [[2, 1], [2, 1]])
    keep(x, y, *swapped, z, w)
    x = new(2, 3)
    (dist.send if rank else dist.recv)(x, 1 - rank)
    keep(x)
    return [r.tolist() for r in results], {str(r.place) for r in results}


def test_a_communicator_that_takes_buffers_gets_them(monkeypatch):
    """Not a byte passes through memory of the host, and results are those of the other way."""
    staged.clear()
    wanted = on_devices(every_collective)
    assert {kind for kind, _ in staged} == {
        "all_reduce", "reduce", "broadcast", "all_gather", "gather", "reduce_scatter", "scatter", "alltoall",
        "alltoall_single", "send", "recv",
    }  # fmt: skip
    assert staged["reduce", "virtual:0"] == [2, 48]
    assert staged["all_gather", "virtual:0"] == [6, 144]  # two operands, four results
    join = environment.join
    monkeypatch.setattr(debug, "join", lambda ambient, comm: join(ambient, AddressedCommunicator(comm)))
    staged.clear()
    assert on_devices(every_collective) == wanted
    assert staged == {}


def test_what_is_not_adjacent_in_memory_goes_through_the_host(monkeypatch):
    """Of a communicator that takes buffers, too."""

    def program():
        x = paddle.arange(6, dtype="float32").reshape([2, 3]).t()
        dist.all_reduce(x)
        with pytest.raises(ValueError, match="does not fit"):
            dist.all_gather([paddle.zeros([1]), paddle.zeros([1])], paddle.ones([2]))
        return x.tolist()

    join = environment.join
    monkeypatch.setattr(debug, "join", lambda ambient, comm: join(ambient, AddressedCommunicator(comm)))
    staged.clear()
    assert on_devices(program) == [[[0, 6], [2, 8], [4, 10]]] * 2
    assert {kind for kind, _ in staged} == {"all_reduce"}


def steps(net, x, wrap=lambda net: net):
    """Losses of three steps."""
    optimizer, losses = paddle.optimizer.SGD(0.05, parameters=net.parameters()), []
    net = wrap(net)
    for _ in range(3):
        loss = (net(x) ** 2).sum()
        losses.append(float(loss))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    return losses


def model():
    paddle.seed(0)
    return paddle.nn.Sequential(paddle.nn.Linear(6, 8), paddle.nn.Tanh(), paddle.nn.Linear(8, 2))


def test_data_parallel_steps_are_those_of_one_device():
    def program():
        mine = paddle.to_tensor(X[2 * dist.get_rank() :][:2])
        losses = steps(model(), mine, paddle.DataParallel)
        return losses

    wanted = steps(model(), paddle.to_tensor(X), lambda net: lambda x: net(x) / 2**0.5)  # gradients are averages
    halves = on_devices(program)
    np.testing.assert_allclose(np.sum(halves, axis=0) / 2, wanted, rtol=1e-5)


def test_tensor_parallel_layers_are_those_of_one_device():
    def program():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"dp_degree": 1, "mp_degree": 2, "pp_degree": 1}
        fleet.init(is_collective=True, strategy=strategy)
        whole, rank = model(), dist.get_rank()
        first = fleet.meta_parallel.ColumnParallelLinear(6, 8, has_bias=True, gather_output=False)
        last = fleet.meta_parallel.RowParallelLinear(8, 2, input_is_parallel=True, has_bias=True)
        first.weight.set_value(whole[0].weight[:, 4 * rank : 4 * rank + 4])
        last.weight.set_value(whole[2].weight[4 * rank : 4 * rank + 4])
        return steps(paddle.nn.Sequential(first, paddle.nn.Tanh(), last), paddle.to_tensor(X))

    wanted = steps(model(), paddle.to_tensor(X))
    for losses in on_devices(program):
        np.testing.assert_allclose(losses, wanted, rtol=1e-5)


def test_stages_of_a_pipeline_are_on_devices_of_their_own():
    """Activations go one way, their gradients the other."""

    def program():
        whole, x = model(), paddle.to_tensor(X)
        half = whole[:2] if dist.get_rank() == 0 else whole[2:]
        optimizer, losses = paddle.optimizer.SGD(0.05, parameters=half.parameters()), []
        for _ in range(3):
            if dist.get_rank() == 0:
                y = half(x)
                dist.send(y, 1)
                slope = paddle.zeros(y.shape)
                dist.recv(slope, 1)
                y.backward(slope)
            else:
                y = paddle.zeros([4, 8])
                dist.recv(y, 0)
                y.stop_gradient = False
                loss = (half(y) ** 2).sum()
                losses.append(float(loss))
                loss.backward()
                dist.send(y.grad, 0)
            optimizer.step()
            optimizer.clear_grad()
        return losses

    np.testing.assert_allclose(on_devices(program)[1], steps(model(), paddle.to_tensor(X)), rtol=1e-5)


@pytest.mark.parametrize("copies", [1, 2])
def test_trained_stages_are_on_devices_of_their_own(copies):
    """``train_batch`` of a model of layers: parameters, sums and updates stay where each stage's rank computes."""

    def program():
        strategy = fleet.DistributedStrategy()
        strategy.hybrid_configs = {"dp_degree": copies, "pp_degree": 2}
        strategy.pipeline_configs = {"accumulate_steps": 2, "micro_batch_size": 2 // copies}
        fleet.init(is_collective=True, strategy=strategy)
        net = fleet.meta_parallel.PipelineLayer(
            list(model()), num_stages=2, loss_fn=lambda x, y: (x - y).square().mean()
        )
        optimizer = fleet.distributed_optimizer(paddle.optimizer.Adam(0.05, parameters=net.parameters()))
        net = fleet.distributed_model(net)
        mine = (
            slice(None)
            if copies == 1
            else slice(fleet.get_hybrid_communicate_group().get_data_parallel_rank(), None, 2)
        )
        x, y = paddle.to_tensor(X[mine]), paddle.ones([4 // copies, 2])
        losses = [float(net.train_batch([x, y], optimizer)) for _ in range(3)]
        held = {str(p.place) for p in net.parameters() if p.payload.is_held}
        return losses, held, net.eval_batch([x, y], compute_loss=False).numpy()

    alone, found = run_ranks(program, 2 * copies), on_devices(program, 2 * copies)
    for rank, ((wanted, _, outputs), (losses, places, made)) in enumerate(zip(alone, found, strict=True)):
        np.testing.assert_allclose(losses, wanted, rtol=1e-5)
        np.testing.assert_allclose(made, outputs, rtol=1e-4, atol=1e-6)
        assert places == {f"Place(virtual:{rank % 2})"}


@pytest.fixture(params=["staged", "direct"])
def way(request, monkeypatch):
    """Whether communicators take the buffers of devices."""
    join = environment.join
    if request.param == "direct":
        monkeypatch.setattr(debug, "join", lambda ambient, comm: join(ambient, AddressedCommunicator(comm)))
    monkeypatch.setenv("ARGOSY_FALLBACK", "error")
    staged.clear()
    return request.param


def test_captured_collectives_run_between_launches(way):
    """They fall back to nothing; what the communicator takes moves no byte through the host."""

    def collectives(x):
        rank, parts, swapped = dist.get_rank(), [], []
        y, z = x * 2 + rank, paddle.zeros([2])
        dist.all_reduce(y)
        dist.all_gather(parts, y + rank)
        dist.alltoall(swapped, [y + rank, y - rank])
        dist.reduce_scatter(z, [y[:2] + rank, y[1:] * rank])
        dist.broadcast(y, src=1)
        dist.barrier()
        return y.exp(), paddle.concat(parts), paddle.concat(swapped), z

    def program():
        x = paddle.arange(3, dtype="float32")
        return [
            ([r.tolist() for r in run(x)], {str(r.place) for r in run(x)})
            for run in (paddle.jit.to_static(collectives, full_graph=True), collectives)
        ]

    for rank, (captured, eager) in enumerate(on_devices(program)):
        for one, other in zip(captured[0], eager[0], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        assert captured[1] == eager[1] == {f"Place(virtual:{rank})"}
    kinds = {kind for kind, _ in staged}
    assert kinds == set() if way == "direct" else kinds > {"all_reduce", "all_gather", "all_to_all"}


@pytest.mark.parametrize("captured", [False, True], ids=["eager", "captured"])
def test_means_of_gradients_stay_on_the_device(way, captured):
    """Where the communicator takes its buffers, in steps of one program, too."""

    def program():
        net = model()
        mine, wrapped = paddle.to_tensor(X[2 * dist.get_rank() :][:2]), paddle.DataParallel(net)
        optimizer = paddle.optimizer.SGD(0.05, parameters=net.parameters())
        staged.clear()

        def step(x):
            loss = (wrapped(x) ** 2).sum()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        step = paddle.jit.to_static(step, full_graph=True) if captured else step
        return [float(step(mine)) for _ in range(3)]

    wanted = steps(model(), paddle.to_tensor(X), lambda net: lambda x: net(x) / 2**0.5)
    np.testing.assert_allclose(np.sum(on_devices(program), axis=0) / 2, wanted, rtol=1e-5)
    assert bool(staged) == (way == "staged")


def test_programs_that_span_devices_communicate(way):
    """Each rank has two devices, and sums on either; gradients go back through copies and sums."""

    def program():
        there = f"virtual:{1 - dist.get_rank()}"
        w = paddle.to_tensor(X[:3, :3] + dist.get_rank(), stop_gradient=False)

        def run(x):
            half = paddle.tanh(x @ w)
            dist.all_reduce(half)
            far = half.to(there) * 2
            dist.all_reduce(far)
            return (far.exp().to(x.place) * half).sum(), far

        made = []
        for function in (paddle.jit.to_static(run, full_graph=True), run):
            total, far = function(paddle.to_tensor(X[1:3, 2:5]))
            made.append([float(total), far.tolist(), str(far.place)])
        return made

    for rank, (captured, eager) in enumerate(on_devices(program)):
        np.testing.assert_allclose(captured[0], eager[0], rtol=1e-5)
        np.testing.assert_allclose(captured[1], eager[1], rtol=1e-5)
        assert captured[2] == eager[2] == f"Place(virtual:{1 - rank})"
    assert bool(staged) == (way == "staged")


def test_values_of_a_program_on_a_mesh_may_be_elsewhere():
    """Each rank's part goes to a device and back, between what is summed over the ranks."""
    arrays = [np.arange(n, dtype="float32").reshape(shape) / 10 for n, shape in ((12, (3, 4)), (8, (4, 2)))]

    def program():
        mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
        w, v = (dist.shard_tensor(paddle.to_tensor(a), mesh, [dist.Shard(1 - i)]) for i, a in enumerate(arrays))

        def run(x):
            far = paddle.tanh(x @ w).to("virtual") * 2
            return paddle.tanh(far.cpu() @ v).sum()

        x = dist.shard_tensor(paddle.ones([2, 3]), mesh, [dist.Replicate()])
        return float(paddle.jit.to_static(run, full_graph=True)(x))

    wanted = np.tanh(np.tanh(np.ones((2, 3)) @ arrays[0]) * 2 @ arrays[1]).sum()
    np.testing.assert_allclose(run_ranks(program, 2), [wanted] * 2, rtol=1e-5)
