"""Captured functions refuse the indices that eager execution refuses: with operator, value and line, before states
change."""

import threading

import numpy as np
import pytest

import argosy as paddle
import argosy.nn.functional as F
from argosy_phi_ops.errors import AxisError

BACKENDS = [None, "CINN"]
ROWS = paddle.ones([3, 2])


def ids(*values, dtype="int64"):
    return paddle.to_tensor(np.array(values, dtype))


CALLS = {
    "cross_entropy": (lambda i: F.cross_entropy(paddle.ones([1, 3]), i), [7]),
    "cross_entropy with weights": (lambda i: F.cross_entropy(ROWS, i, weight=paddle.ones([2])), [0, -1, 1]),
    "nll_loss": (lambda i: F.nll_loss(paddle.ones([1, 3]), i), [3]),
    "softmax_with_cross_entropy": (lambda i: F.softmax_with_cross_entropy(ROWS, i.unsqueeze(1)), [0, 2, 1]),
    "one_hot": (lambda i: F.one_hot(i, 3), [1, 3]),
    "embedding": (lambda i: F.embedding(i, ROWS), [99]),
    "embedding with padding": (lambda i: F.embedding(i, ROWS, padding_idx=0), [0, -1]),
    "gather": (lambda i: paddle.gather(ROWS, i), [0, 3]),
    "gather along": (lambda i: paddle.gather(ROWS, i, axis=1), [-3]),
    "index_select": (lambda i: paddle.index_select(ROWS, i), [-4]),
    "index_sample": (lambda i: paddle.index_sample(paddle.ones([1, 3]), i.unsqueeze(0)), [3]),
    "gather_nd": (lambda i: paddle.gather_nd(ROWS, i.reshape([-1, 2])), [0, 1, 1, 2]),
    "take_along_axis": (lambda i: paddle.take_along_axis(ROWS, i.reshape([1, 2]), 0), [0, 3]),
    "take": (lambda i: paddle.take(ROWS, i), [0, 6]),
    "getitem": (lambda i: ROWS[i], [2, -4]),
    "getitem of two": (lambda i: ROWS[i, i], [0, 2]),
    "put_along_axis": (lambda i: paddle.put_along_axis(ROWS, i.reshape([1, 2]), 5.0, 0), [0, 3]),
    "scatter": (lambda i: paddle.scatter(ROWS, i, ROWS[:2]), [0, 3]),
    "scatter_nd_add": (lambda i: paddle.scatter_nd_add(ROWS, i.reshape([-1, 1]), ROWS[:2]), [0, 3]),
    "scatter_nd": (lambda i: paddle.scatter_nd(i.reshape([-1, 1]), ROWS[:2], [4, 2]), [0, 4]),
    "index_add": (lambda i: paddle.index_add(ROWS, i, 0, ROWS[:2]), [0, 3]),
    "index_fill": (lambda i: paddle.index_fill(ROWS, i, 0, 5.0), [0, -4]),
    "index_put": (lambda i: paddle.index_put(ROWS, (i,), paddle.ones([2])), [0, 3]),
}


def written(x, i):
    y = x * 1
    y[i] = 5.0
    return y


CALLS["setitem"] = (lambda i: written(ROWS, i), [0, 3])


def refused(function, *args):
    with pytest.raises(IndexError) as caught:
        function(*args)
    return str(caught.value)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CALLS)
def test_what_eager_execution_refuses_is_refused(name, backend):
    """These were clamped where they read, and dropped where they wrote."""
    function, wrong = CALLS[name]
    captured = paddle.jit.to_static(function, backend=backend, full_graph=True)
    good = ids(*[0] * len(wrong))
    expected = function(good)
    np.testing.assert_allclose(captured(good).numpy(), expected.numpy(), rtol=1e-6)
    eager, said = refused(function, ids(*wrong)), refused(captured, ids(*wrong))
    assert "is out of range; expected " in said
    assert f"at {__file__}:" in said
    if "getitem" not in name and "index_put" not in name and name != "setitem":  # there numpy speaks
        assert said.partition(", at ")[0] == eager.partition(" [given ")[0]
    np.testing.assert_allclose(captured(good).numpy(), expected.numpy(), rtol=1e-6)
    int32 = paddle.jit.to_static(function, backend=backend, full_graph=True)
    assert refused(int32, ids(*wrong, dtype="int32")).partition(", at ")[0] == said.partition(", at ")[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_operators_allow_on_purpose_stays(backend):
    def kept(i):
        return (
            F.cross_entropy(paddle.ones([2, 3]), i, reduction="sum"),
            F.cross_entropy(paddle.ones([2, 3]), i.clip(-1), ignore_index=-1, reduction="sum"),
            paddle.take(ROWS, i, mode="clip"),
            paddle.take(ROWS, i, mode="wrap"),
        )

    captured = paddle.jit.to_static(kept, backend=backend, full_graph=True)
    for made, expected in zip(captured(ids(1, -100)), kept(ids(1, -100)), strict=True):
        np.testing.assert_allclose(made.numpy(), expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_step_that_is_refused_changes_no_state(backend):
    paddle.seed(0)
    model = paddle.nn.Sequential(paddle.nn.Embedding(5, 4), paddle.nn.Linear(4, 3))
    optimizer = paddle.optimizer.AdamW(0.1, parameters=model.parameters())

    @paddle.jit.to_static(backend=backend, full_graph=True)
    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    def states():
        moments = [v.numpy().copy() for v in optimizer.state_dict().values() if isinstance(v, paddle.Tensor)]
        return [p.numpy().copy() for p in model.parameters()] + moments

    step(ids(1, 2), ids(1, 2))
    before = states()
    assert "embedding: index 5 is out of range; expected 0 to 4" in refused(step, ids(1, 5), ids(1, 2))
    assert "cross_entropy: index 3 is out of range; expected 0 to 2 for an axis of 3, or -100" in refused(
        step, ids(1, 2), ids(1, 3)
    )
    for old, new in zip(before, states(), strict=True):
        np.testing.assert_array_equal(old, new)
    step(ids(1, 2), ids(1, -100))
    assert any((old != new).any() for old, new in zip(before, states(), strict=True))


@pytest.mark.parametrize("backend", BACKENDS)
def test_branches_and_loops_refuse_what_they_reach(backend):
    x = paddle.arange(3).astype("float32")

    @paddle.jit.to_static(backend=backend, full_graph=True)
    def branch(i, flag):
        if flag.sum() > 0:
            y = paddle.gather(x, i)
        else:
            y = paddle.zeros([2])
        return y

    assert branch(ids(1, 3), -paddle.ones([1])).tolist() == [0, 0]
    assert "gather: index 3" in refused(branch, ids(1, 3), paddle.ones([1]))
    assert branch(ids(1, 2), paddle.ones([1])).tolist() == [1, 2]

    @paddle.jit.to_static(backend=backend, full_graph=True)
    def loop(n):
        total, k = paddle.zeros([]), paddle.zeros([], "int64")
        while k < n:
            total = total + paddle.gather(x, k.reshape([1])).sum()
            k = k + 1
        return total

    assert float(loop(paddle.to_tensor(3))) == 3
    assert "gather: index 3" in refused(loop, paddle.to_tensor(100))  # the first one, not the last

    @paddle.jit.to_static(backend=backend, full_graph=True)
    def search(x):
        k = paddle.zeros([], "int64")
        while x[k] >= 0:  # without an end where none is below zero, but for the refusal
            k = k + 1
        return k

    assert int(search(paddle.to_tensor([1.0, -1.0]))) == 1
    assert "getitem: index 2 is out of range" in refused(search, paddle.ones([2]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_open_sizes_are_those_of_the_call(backend):
    spec = [paddle.static.InputSpec([None], "int64"), paddle.static.InputSpec([None, 2], "float32")]

    @paddle.jit.to_static(backend=backend, input_spec=spec, full_graph=True)
    def look(i, table):
        return F.embedding(i, table)

    look(ids(0, 4), paddle.ones([5, 2]))
    assert "index 5 is out of range; expected 0 to 4 for an axis of 5" in refused(look, ids(5), paddle.ones([5, 2]))
    assert "index 5 is out of range; expected 0 to 2 for an axis of 3" in refused(look, ids(1, 5), paddle.ones([3, 2]))
    assert look(paddle.zeros([0], "int64"), ROWS).shape == [0, 2]


def test_compiled_parts_around_graph_breaks_refuse():
    @paddle.jit.to_static(full_graph=False)
    def parts(i):
        rows = F.embedding(i, ROWS)
        if float(rows.sum()) > 100:
            return rows
        return rows * 2

    for _ in range(3):
        assert parts(ids(1)).tolist() == [[2, 2]]
        assert "embedding: index 3" in refused(parts, ids(3))


def test_hot_eager_operators_go_on_refusing():
    """Forward and back, small and large, far beyond where their kernels are compiled."""
    large = paddle.ones([3, 300])
    large.stop_gradient = False
    for table in (ROWS, large):
        for _ in range(300):
            F.embedding(ids(1, 2), table).sum().backward() if not table.stop_gradient else F.embedding(ids(1), table)
            paddle.gather(table, ids(1, -3))
        refused(lambda table=table: F.embedding(ids(1, 3), table))
        refused(lambda table=table: paddle.gather(table, ids(1, -4)))


def test_threads_get_their_own_refusals():
    """Calls of one program at once have a record each."""
    captured = paddle.jit.to_static(lambda i: F.embedding(i, ROWS), full_graph=True)
    captured(ids(1))
    wrong = []

    def run(number):
        for _ in range(200):
            try:
                said = captured(ids(number)).tolist()
            except AxisError as error:
                said = str(error)
            expected = [[1.0, 1.0]] if number < 3 else f"index {number} is out of range"
            if (said != expected) if number < 3 else (expected not in said):
                wrong.append((number, said))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_flag_leaves_the_checks_out():
    captured = paddle.jit.to_static(lambda i: F.embedding(i, ROWS), full_graph=True)
    assert captured(ids(1)).tolist() == [[1, 1]]
    assert paddle.get_flags("FLAGS_check_index") == {"FLAGS_check_index": True}
    refused(captured, ids(7))
    try:
        paddle.set_flags({"FLAGS_check_index": False})
        for _ in range(3):
            assert captured(ids(7)).tolist() == [[1, 1]]
    finally:
        paddle.set_flags({"FLAGS_check_index": True})
    for _ in range(3):
        refused(captured, ids(7))
    assert len(captured.compiled) == 2


def test_indices_that_are_in_range_by_the_way_they_are_made_are_not_checked():
    x = paddle.rand([4, 5])

    @paddle.jit.to_static(full_graph=True)
    def chosen(x):
        best = paddle.take_along_axis(x, x.argmax(1, keepdim=True), 1)
        _, order = paddle.topk(x, 2, axis=1)
        places = paddle.arange(x.shape[0]) % 2
        return best, paddle.take_along_axis(x, order, 1), paddle.gather(x, places), x[places]

    chosen(x)
    assert "check_index" not in str(chosen.compiled[0].program)


def test_a_saved_program_refuses(tmp_path):
    layer = paddle.nn.Embedding(3, 2)
    path = str(tmp_path / "table")
    paddle.jit.save(layer, path, input_spec=[paddle.static.InputSpec([None], "int64")])
    loaded = paddle.jit.load(path)
    loaded(ids(1, 2))
    assert "embedding: index 3 is out of range" in refused(loaded, ids(1, 3))


def test_static_programs_refuse_indices_and_values_that_do_not_fit():
    """2**32 + 5 used to be fed as 5."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        i = paddle.static.data("i", [None], "int32")
        rows = F.embedding(i, paddle.static.nn.fc(paddle.ones([3, 2]), 2))
        executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(startup)

    def look(*values):
        return executor.run(main, feed={"i": np.array(values)}, fetch_list=[rows])[0]

    assert look(0, 2).shape == (2, 2)
    assert "embedding: index 3 is out of range" in refused(look, 0, 3)
    with pytest.raises(ValueError, match="'i' holds 4294967297, which int32 does not"):
        look(2**32 + 1)


def test_a_memory_budget_keeps_the_checks():
    """What is computed again is not checked again, and the record keeps its place."""
    paddle.seed(0)
    table = paddle.nn.Embedding(50, 64)
    layers = paddle.nn.Sequential(*[paddle.nn.Sequential(paddle.nn.Linear(64, 64), paddle.nn.Tanh()) for _ in range(6)])

    def made(**options):
        @paddle.jit.to_static(full_graph=True, **options)
        def gradient(x):
            return paddle.grad(layers(table(x)).square().sum(), table.weight)[0]

        return gradient

    x = paddle.to_tensor(np.arange(1024) % 50)
    expected, limited = made(), made(memory_budget=1_600_000)
    np.testing.assert_array_equal(limited(x).numpy(), expected(x).numpy())
    assert limited.compiled[0].executable.report()["recomputed"]["steps"] > 0
    x[1000] = 50
    assert "embedding: index 50 is out of range" in refused(limited, x)
