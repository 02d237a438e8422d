"""Ranks whose tensors are on devices of their own: collectives bring the values through the host, counted."""

import numpy as np

import argosy as paddle
import argosy.distributed as dist
from argosy.distributed import fleet
from argosy.distributed.buffers import staged
from argosy.distributed.debug import run_ranks

X = np.random.default_rng(0).standard_normal((4, 6)).astype("float32")


def on_devices(program, count=2):
    """What ``program`` gives on each rank, whose new tensors are on a virtual device of its own."""

    def rank():
        with paddle.device.device_guard(f"virtual:{dist.get_rank()}"):
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
