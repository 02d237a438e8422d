"""Errors of eager derivatives name what let no gradient pass: the operation, its line and the order.

Each chain is applied often enough to take the short ways, native ones where there is native code.
"""

import copy
import gc
import inspect
import pickle
import weakref

import numpy as np
import pytest

import argosy_autograd as ag
from argosy_autograd.errors import UnusedInput
from argosy_phi_ops import get_operator
from argosy_phi_ops.eager.gradient_blockers import MOST, GradientBlocker, join_blockers
from argosy_tensorcore.tensor import Tensor

OFTEN = 60


def leaf(data):
    return Tensor(np.asarray(data, np.float32), stop_gradient=False)


def op(name):
    return get_operator(name)


def here() -> int:
    return inspect.currentframe().f_back.f_lineno


def silent(x):
    with ag.no_grad():
        return x * 2.0


CHAINS = {
    "argmax": lambda x: op("argmax")(x, axis=-1).astype("float32"),
    "argsort": lambda x: op("argsort")(x).astype("float32"),
    "greater_than": lambda x: (x > 1.5).astype("float32"),
    "astype": lambda x: x.astype("int32").astype("float32"),
    "detach": lambda x: x.detach(),
    "no_grad": silent,
    "topk": lambda x: op("topk")(x, 1)[1].astype("float32"),
    "isfinite": lambda x: op("isfinite")(x).astype("float32"),
}


@pytest.mark.parametrize("after", [lambda y: y, lambda y: (-y * 3.0 + y).exp().sum()], ids=["at once", "later"])
@pytest.mark.parametrize("of_leaf", [True, False], ids=["leaf", "result"])
@pytest.mark.parametrize("name", CHAINS)
def test_the_operation_in_the_way_is_named_with_its_line_and_the_order(name, of_leaf, after):
    x = leaf([1.0, 2.0, 1.25])
    for _ in range(OFTEN):
        y = after(CHAINS[name](x if of_leaf else x * 2.0))
    assert y.stop_gradient
    assert y.is_leaf == (y._node is None)
    line = inspect.getsourcelines(CHAINS[name])[1] + (name == "no_grad")
    with pytest.raises(UnusedInput) as error:
        ag.grad(y, x)
    told = str(error.value)
    assert f"on the way, {name} ({__file__}:{line} in" in told
    assert "derivative of order 1 (" in told
    assert "counted from" not in told


def test_what_else_wants_gradients_does_not_hide_the_wall():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    for _ in range(OFTEN):
        y, line = w * (x * x).detach() + w, here()
    with pytest.raises(UnusedInput, match=rf"input 0 .*on the way, detach \({__file__}:{line} in"):
        ag.grad(y.sum(), x)
    np.testing.assert_array_equal(ag.grad(y.sum(), w)[0].numpy(), [2.0, 5.0])


def test_of_several_walls_the_one_before_the_input_is_named():
    x, z = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    squares, cubes = x * x, z * z * z
    y = squares.detach() + op("argmax")(cubes).astype("float32")
    with pytest.raises(UnusedInput) as error:
        ag.grad(y.sum(), z)
    assert "argmax" in str(error.value)
    assert "detach" not in str(error.value)
    with pytest.raises(UnusedInput) as error:
        ag.grad(y.sum(), x)
    assert "detach" in str(error.value)
    assert "argmax" not in str(error.value)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_before_the_wall_count(order):
    x = leaf([1.0, 2.0])
    y = (x * x * x * x).sum()
    for _ in range(order - 1):
        (y,) = ag.grad(y.sum(), x, create_graph=True)
    hidden = op("argmax")(y).astype("float32") * 2.0
    with pytest.raises(UnusedInput, match=rf"derivative of order {order} \(.*on the way, argmax"):
        ag.grad(hidden, x)


class Squared(ag.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        return 2.0 * x * g


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_custom_functions_count(order):
    x = leaf([1.0, 2.0])
    y = Squared.apply(x) * x * x
    for _ in range(order - 1):
        (y,) = ag.grad((y * 1.5).sum(), x, create_graph=True)
    hidden = op("argmax")(y * 2.0).astype("float32")
    with pytest.raises(UnusedInput, match=rf"derivative of order {order} \(.*on the way, argmax"):
        ag.grad(hidden, x)


def test_functions_that_record_nothing_are_named_where_they_are_defined():
    @ag.no_grad()
    def double(x):
        return x * 2.0

    x = leaf([1.0])
    with pytest.raises(UnusedInput, match=rf"no_grad \({__file__}:\d+ in double\) records nothing"):
        ag.grad(double(x), x)
    with ag.no_grad(), ag.enable_grad():
        y = x * 3.0
    assert y._gradient_blockers is None
    ag.grad(y, x)
    with ag.no_grad():
        with ag.enable_grad():
            pass
        y, line = x * 3.0, here() - 3
    with pytest.raises(UnusedInput, match=rf"no_grad \({__file__}:{line} in"):
        ag.grad(y, x)


class Marked(ag.PyLayer):
    @staticmethod
    def forward(ctx, x):
        rest = x * 0.5
        ctx.mark_non_differentiable(rest)
        return x * 2.0, rest

    @staticmethod
    def backward(ctx, g, _):
        return g * 2.0


def test_results_that_a_custom_function_marks_are_named():
    x = leaf([1.0])
    y, rest = Marked.apply(x)
    assert y._gradient_blockers is None
    with pytest.raises(UnusedInput, match=r"Marked \(.*marks a result as constant"):
        ag.grad(rest, x)


def test_walls_keep_no_history_and_leave_what_is_a_leaf_alone():
    x = leaf(np.ones(4))
    y = x * x
    history = weakref.ref(y._node)
    cut = y.detach() * 2.0
    del y
    gc.collect()
    assert history() is None
    with pytest.raises(UnusedInput, match="on the way, detach"):
        ag.grad(cut, x)
    cut.stop_gradient = False
    assert cut.is_leaf
    (slope,) = ag.grad((cut * cut).sum(), cut)
    np.testing.assert_array_equal(slope.numpy(), 2 * cut.numpy())
    again = pickle.loads(pickle.dumps(cut.detach()))
    np.testing.assert_array_equal(again.numpy(), cut.numpy())
    assert copy.deepcopy(cut)._gradient_blockers is None


def test_in_place_writes_add_no_walls_and_loops_no_more_than_a_few():
    x = leaf(np.ones(4))
    total = Tensor(np.zeros(4, np.float32))
    for _ in range(OFTEN):
        total.add_(x.detach())
    assert total._gradient_blockers is None
    state = Tensor(np.zeros(4, np.float32))
    for _ in range(OFTEN):
        state = state + x.detach()
    assert len(state._gradient_blockers) == MOST


def test_joined_walls_share_tuples():
    a, b, c = ((GradientBlocker(name, ""),) for name in "abc")
    ab = join_blockers(a, b)
    assert join_blockers(ab, a) is ab
    assert join_blockers(b, ab) is ab
    assert join_blockers(None, a) is a
    assert [blocker.name for blocker in join_blockers(ab, c)] == ["a", "b", "c"]


def test_like_tensors_are_constants_without_a_wall():
    x = leaf([1.0, 2.0])
    for _ in range(OFTEN):
        y = op("zeros_like")(x)
    assert y._gradient_blockers is None
    with pytest.raises(UnusedInput, match="no operation is recorded"):
        ag.grad(y, x)
