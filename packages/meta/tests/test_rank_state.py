"""What belongs to a rank is the rank's: ranks that are threads of one process may differ in it."""

import threading

import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy.distributed import fleet
from argosy.distributed.debug import run_ranks
from argosy.distributed.fleet.layers.mpu.random import get_rng_state_tracker, model_parallel_random_seed
from argosy.nn.initializer import Constant, set_global_initializer
from argosy_phi_ops.context import AMBIENT, own_context


def _meet():
    """All ranks have come here: what one did before, the others could see after."""
    dist.barrier()


def test_each_rank_has_a_strategy_and_groups():
    """``fleet.init`` of one rank changes nothing of another's, nor of the process's."""

    def program():
        rank = dist.get_rank()
        with pytest.raises(RuntimeError, match=r"fleet\.init"):
            fleet.get_hybrid_communicate_group()
        strategy = fleet.DistributedStrategy()
        strategy.fuse_grad_size_in_MB = 1 + rank
        fleet.init(is_collective=True, strategy=strategy)
        _meet()
        model = fleet.distributed_model(paddle.nn.Linear(2, 2))
        return model._buffer_bytes >> 20, fleet.get_hybrid_communicate_group().get_data_parallel_rank()

    assert run_ranks(program, 2) == [(1, 0), (2, 1)]


def test_one_rank_may_lack_a_strategy():
    """Rank 0 calls ``fleet.init``; rank 1 is told that it did not."""

    def program():
        if dist.get_rank() == 0:
            fleet.init(is_collective=True)
        _meet()
        try:
            return fleet.distributed_optimizer("an optimizer")
        except RuntimeError as error:
            return str(error)

    first, second = run_ranks(program, 2)
    assert first == "an optimizer"
    assert "call fleet.init" in second


def test_each_rank_has_random_states_by_name():
    """Ranks draw from states of their own, though they have one name and are drawn from at one time."""

    def program():
        model_parallel_random_seed(100 * (1 + dist.get_rank()))
        _meet()
        drawn = []
        for _ in range(3):
            with get_rng_state_tracker().rng_state():
                drawn.append(paddle.rand([2]).tolist())
            _meet()
        return drawn

    together = run_ranks(program, 2)
    assert together[0] != together[1]
    for rank, drawn in enumerate(together):
        model_parallel_random_seed(100 * (1 + rank))
        with get_rng_state_tracker().rng_state():
            assert [paddle.rand([2]).tolist() for _ in range(3)] == drawn


def test_each_rank_has_initialisers():
    """The global one of rank 1 fills no parameter of rank 0."""

    def program():
        if dist.get_rank():
            set_global_initializer(Constant(3.0), Constant(4.0))
        _meet()
        layer = paddle.nn.Linear(1, 1)
        return layer.weight.item() == 3.0, layer.bias.item()

    assert run_ranks(program, 2) == [(False, 0.0), (True, 4.0)]
    assert paddle.nn.Linear(1, 1).bias.item() == 0.0


def test_what_a_rank_leaves_is_gone_with_it():
    """Ranks that come later, and threads of the process, begin anew."""

    def program():
        had = fleet.job.current_job.value
        fleet.init(is_collective=True)
        return had

    assert run_ranks(program, 2) == run_ranks(program, 2) == [None, None]
    seen = []
    thread = threading.Thread(target=lambda: seen.append(fleet.job.current_job.value))
    thread.start()
    thread.join()
    assert seen == [fleet.job.current_job.value]


@pytest.fixture
def process_default():
    yield
    paddle.set_default_dtype("float32")


def _in_turn(work):
    """``work()`` of rank 0, of rank 1, of rank 0 again, and so on: what one leaves behind meets the other."""
    made = []
    for turn in range(6):
        if turn % 2 == dist.get_rank():
            made.append(work())
        _meet()
    return made


def _dtypes(work, first="float32", second="float64"):
    """What ``work`` gives on two ranks with default dtypes of their own, each in turn."""

    def program():
        paddle.set_default_dtype(("float32", "float64")[dist.get_rank()])
        return _in_turn(work)

    assert run_ranks(program, 2) == [[first] * 3, [second] * 3]


INTEGERS = paddle.to_tensor([1, 2, 3])
DEFAULT_DTYPE_WORK = {
    "to_tensor": lambda: paddle.to_tensor([0.5]),
    "zeros": lambda: paddle.zeros([2]),
    "full": lambda: paddle.full([2], 0.5),
    "eye": lambda: paddle.eye(2),
    "linspace": lambda: paddle.linspace(0, 1, 3),
    "arange": lambda: paddle.arange(0.0, 1.0, 0.5),
    "rand": lambda: paddle.rand([2]),
    "randn": lambda: paddle.randn([2]),
    "unary": lambda: INTEGERS.exp(),
    "number": lambda: INTEGERS + 0.5,
    "activation": lambda: paddle.nn.functional.sigmoid(INTEGERS),
    "mean": lambda: paddle.exp(INTEGERS).mean(),
    "where": lambda: paddle.where(INTEGERS > 1, 0.5, 1.5),
    "one_hot": lambda: paddle.nn.functional.one_hot(INTEGERS, 4),
    "layer": lambda: paddle.nn.Linear(1, 1).weight,
    "no_grad": lambda: paddle.no_grad()(lambda: INTEGERS * 0.5)(),
}


@pytest.mark.parametrize("name", DEFAULT_DTYPE_WORK)
def test_each_rank_has_a_default_dtype(name):
    """Eager operators and what makes tensors follow the rank's own, whatever other ranks or the process did before."""
    work = DEFAULT_DTYPE_WORK[name]
    before = [work().dtype.name for _ in range(3)]
    _dtypes(lambda: work().dtype.name)
    assert before == [work().dtype.name for _ in range(3)] == ["float32"] * 3


@pytest.mark.parametrize("name", DEFAULT_DTYPE_WORK)
def test_captured_functions_follow_the_default_dtype_of_a_rank(name):
    """One function, captured for each."""
    f = paddle.jit.to_static(DEFAULT_DTYPE_WORK[name])
    assert f().dtype.name == "float32"
    _dtypes(lambda: f().dtype.name)
    assert f().dtype.name == "float32"


def test_calls_without_gradients_follow_the_default_dtype_of_a_rank():
    """The short way to what the process has captured is not that of rank 0."""
    f = paddle.jit.to_static(paddle.no_grad()(lambda x: x + 0.25))
    with paddle.no_grad():
        assert {f(INTEGERS).dtype.name for _ in range(4)} == {"float32"}
        _dtypes(paddle.no_grad()(lambda: f(INTEGERS).dtype.name), "float32")

    def program():
        paddle.set_default_dtype("float64")
        with paddle.no_grad():
            return {f(INTEGERS).dtype.name for _ in range(4)}

    assert run_ranks(program, 1) == [{"float64"}]


def test_contexts_of_compilers_have_the_default_dtype_of_a_rank():
    """What is applied there is no application of other ranks, nor one for them."""
    assert [(INTEGERS - 0.5).dtype.name for _ in range(3)] == ["float32"] * 3

    def work():
        with own_context():
            return (INTEGERS - 0.5).dtype.name, (INTEGERS - 0.125).dtype.name

    _dtypes(work, ("float32",) * 2, ("float64",) * 2)
    assert (INTEGERS - 0.125).dtype.name == "float32"


def test_captured_functions_follow_the_default_dtype_of_the_process(process_default):
    f = paddle.jit.to_static(lambda x: x * 0.5 + paddle.zeros([3]))
    for name in ("float32", "float64", "float32", "float64"):
        paddle.set_default_dtype(name)
        assert [f(INTEGERS).dtype.name for _ in range(4)] == [name] * 4
        with paddle.no_grad():
            assert [f(INTEGERS).dtype.name for _ in range(4)] == [name] * 4


def test_gradients_follow_the_default_dtype_of_a_rank():
    def work():
        x = paddle.ones([3])
        x.stop_gradient = False
        ((INTEGERS * 0.5) * x).sum().backward()
        assert x.grad.tolist() == [0.5, 1, 1.5]
        return x.grad.dtype.name

    work()
    _dtypes(work)
    assert work() == "float32"


def test_native_calls_do_not_meet_the_default_dtype_of_a_rank():
    """What a rank applied first, many times over, is no plan of native code for the process."""

    def program():
        paddle.set_default_dtype("float64")
        return {(paddle.full([5, 2], 0.25) + (INTEGERS.sum() * 0.3)).dtype.name for _ in range(200)}

    assert run_ranks(program, 1) == [{"float64"}]
    made = {(paddle.full([5, 2], 0.25) + (INTEGERS.sum() * 0.3)).dtype.name for _ in range(200)}
    assert made == {"float32"}
    assert run_ranks(program, 1) == [{"float64"}]


def test_a_rank_without_a_default_dtype_has_that_of_the_process(process_default):
    def program():
        if dist.get_rank():
            paddle.set_default_dtype("float16")
        _meet()
        return paddle.get_default_dtype(), paddle.ones([1]).dtype.name, (INTEGERS * 0.5).dtype.name

    paddle.set_default_dtype("float64")
    assert run_ranks(program, 2) == [("float64",) * 3, ("float16",) * 3]
    assert paddle.get_default_dtype() == "float64"
    paddle.set_default_dtype("float32")
    assert run_ranks(program, 2) == [("float32",) * 3, ("float16",) * 3]


def test_a_rank_with_a_default_dtype_leaves_no_trace():
    """When it has ended, nothing departs from plain eager execution any more."""
    word = AMBIENT.word
    _dtypes(lambda: paddle.get_default_dtype())
    assert AMBIENT.word == word


def test_a_default_dtype_of_a_rank_is_a_floating_type():
    def program():
        with pytest.raises(TypeError, match="must be float16, bfloat16, float32 or float64"):
            paddle.set_default_dtype("int32")
        return paddle.get_default_dtype()

    assert run_ranks(program, 1) == ["float32"]


def test_distributed_tensors_follow_the_default_dtype_of_a_rank():
    def work():
        mesh = dist.ProcessMesh([0, 1], ["x"])
        x = dist.shard_tensor(paddle.to_tensor([1, 2, 3, 4]), mesh, [dist.Shard(0)])
        return (x * 0.5).dtype.name

    def program(name):
        paddle.set_default_dtype(name)
        return [work() for _ in range(3)]

    for name in ("float32", "float64", "float32"):
        assert run_ranks(lambda name=name: program(name), 2) == [[name] * 3] * 2
