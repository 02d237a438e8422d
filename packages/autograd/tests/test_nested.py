"""Gradients of gradients asked for one by one: from the third time on in one sweep, and the same in every respect."""

import gc
from itertools import pairwise

import numpy as np
import pytest

import argosy_autograd as ag
from argosy_autograd import history
from argosy_autograd.errors import DifferentiationError, UnusedInput
from argosy_phi_ops import get_operator
from argosy_tensorcore.tensor import Tensor

STEPS = 6
tanh, matmul, cos, concat = (get_operator(name) for name in ("tanh", "matmul", "cos", "concat"))


def leaf(array, **options):
    """A tensor that wants gradients."""
    return Tensor(np.asarray(array, np.float64), stop_gradient=False, **options)


def parameters(rng, *sizes):
    return [leaf(rng.standard_normal(shape) / shape[0] ** 0.5) for shape in pairwise(sizes)]


def network(x, weights):
    for w in weights[:-1]:
        x = tanh(matmul(x, w))
    return matmul(x, weights[-1])


def slope(u, x, i=0, **options):
    (g,) = ag.grad(u, x, create_graph=True, **options)
    return g[:, i : i + 1]


def by_replay(tensor):
    """Whether a captured program made the tensor."""
    node = tensor._node
    while node.name in ("slice", "getitem"):
        node = node.edges[0][0]
    return node.name == "gradient"


def repeated(loss, weights, *points):
    """The gradients of every step, which must agree; whether a sweep made the derivative that the last one tells of."""
    found = []
    for _ in range(STEPS):
        inputs = [leaf(p) for p in points]
        value, first = loss(*inputs)
        captured = by_replay(first)
        value.backward()
        found.append([value.numpy(), *(t.grad.numpy().copy() for t in (*weights, *inputs))])
        for w in weights:
            w.clear_grad(set_to_zero=False)
    for step in found[1:]:
        for got, expected in zip(step, found[0], strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11)
    return captured


@pytest.fixture
def weights():
    return parameters(np.random.default_rng(0), 2, 5, 5, 1)


@pytest.fixture
def points():
    return np.random.default_rng(1).uniform(-1, 1, (7, 2))


def test_a_training_step_of_second_order(weights, points):
    """Burgers' residual and a condition at the border: loss, gradients of parameters and of points."""

    def loss(x):
        u = network(x, weights)
        residual = slope(u, x, 1) + u * slope(u, x) - 0.1 * slope(slope(u, x), x)
        return (residual * residual).mean() + (u[:3] * u[:3]).mean(), slope(u, x)

    assert repeated(loss, weights, points)


def test_fourth_order(weights, points):
    """The beam's equation, with conditions on lower orders."""

    def loss(x):
        orders = [network(x, weights)]
        for _ in range(4):
            orders.append(slope(orders[-1], x))
        return (orders[4] * orders[4]).mean() + (orders[2][:2] * orders[3][:2]).sum(), orders[2]

    assert repeated(loss, weights, points)


def test_coordinates_in_tensors_of_their_own(weights, points):
    """Mixed derivatives by two leaves, one of which the outer request alone differentiates by."""

    def loss(x, t):
        u = network(concat([x, t], axis=1), weights)
        first = slope(u, x)
        mixed = slope(first * t, t)
        both = ag.grad(first, [x, t], create_graph=True)
        return (mixed * mixed + both[0] * both[1] + u).mean(), first

    assert repeated(loss, weights, points[:, :1], points[:, 1:])


@pytest.mark.parametrize("constant", [True, False])
def test_weights_of_outputs(weights, points, constant):
    """Given cotangents count as they are; those that move leave all to the tape."""

    def loss(x):
        u = network(x, weights)
        given = cos(x[:, :1]).detach() if constant else cos(x[:, :1])
        first = slope(u, x, grad_outputs=given)
        return (slope(first, x) * u).mean(), first

    assert repeated(loss, weights, points) == constant


def test_requests_without_others_nested_in_them_stay(weights, points):
    """A gradient penalty is no derivative of a derivative."""

    def loss(x):
        first = slope(network(x, weights), x)
        return (first * first).mean(), first

    assert not repeated(loss, weights, points[:4])  # of a size that no other test has


def test_hooks_are_called_every_time(weights, points):
    """On a value, on a first derivative, and on a parameter."""
    seen = []
    weights[1].register_hook(lambda g: seen.append("w"))

    def loss(x):
        u = network(x, weights)
        u.register_hook(lambda g: seen.append("u"))
        first = slope(u, x)
        first.register_hook(lambda g: seen.append("first"))
        return (slope(first, x) * first).mean(), first

    repeated(loss, weights, points)
    once = seen[: len(seen) // STEPS]
    assert {"w", "u", "first"} <= set(once)
    assert seen == once * STEPS


def test_retained_gradients_are_kept(weights, points):
    found = []

    def loss(x):
        u = network(x, weights)
        u.retain_grads()
        value = (slope(slope(u, x), x) * u).mean()
        found.append(u)
        return value, u

    repeated(loss, weights, points)
    for u in found:
        np.testing.assert_allclose(u.grad.numpy(), found[0].grad.numpy(), rtol=1e-9)


def test_what_was_changed_in_place_is_noticed(weights, points):
    """Each time: before the second request, and before the backward pass."""
    for _ in range(STEPS):
        x = leaf(points)
        u = network(x, weights)
        first = slope(u, x)
        second = slope(first, x)
        with ag.no_grad():
            weights[1].copy_(weights[1] * 1.0)
        with pytest.raises(DifferentiationError, match="changed in place"):
            slope(first, x)
        with pytest.raises(DifferentiationError, match="changed in place"):
            (second * second).mean().backward()


@pytest.mark.parametrize("moved", ["points", "seeds"])
def test_changed_points_and_seeds_are_noticed(weights, points, moved):
    """As by the tape: an error, or what the changed values give, is the same each time."""
    found = []
    for _ in range(STEPS):
        x, seed = leaf(points), Tensor(np.ones((len(points), 1)))
        first = slope(network(x, weights), x, grad_outputs=seed)
        slope(first, x)
        with ag.no_grad():
            (x if moved == "points" else seed).multiply_(Tensor(np.asarray(2.0)))
        try:
            found.append(slope(first, x).numpy())
        except DifferentiationError as error:
            found.append(str(error).rpartition(" tensor of ")[2])
    for each in found[1:]:
        np.testing.assert_array_equal(type(each), type(found[0]))
        if not isinstance(each, str):
            np.testing.assert_allclose(each, found[0])


def test_the_graph_is_freed_by_the_backward_pass(weights, points):
    """And kept with ``retain_graph``: gradients add up."""
    for _ in range(STEPS):
        x = leaf(points)
        first = slope(network(x, weights), x)
        value = (slope(first, x) * first).mean()
        value.backward(retain_graph=True)
        once = x.grad.numpy().copy()
        value.backward()
        np.testing.assert_allclose(x.grad.numpy(), 2 * once, rtol=1e-12)
        with pytest.raises(DifferentiationError, match="second time"):
            value.backward()
        with pytest.raises(DifferentiationError, match="second time"):
            ag.grad(first.sum(), x)


def test_gradients_through_sweeps_can_be_asked_for_once_more(weights, points):
    """A second derivative by the parameters of a loss of second derivatives."""
    found = []
    for _ in range(STEPS):
        x = leaf(points)
        value = (slope(slope(network(x, weights), x), x) ** 2).mean()
        gradients = ag.grad(value, weights, create_graph=True)
        (again,) = ag.grad(sum((g * g).sum() for g in gradients), weights[0])
        found.append(again.numpy())
        np.testing.assert_allclose(found[-1], found[0], rtol=1e-8)


def test_an_input_that_drops_out_is_an_error_each_time(points):
    """The slope of a linear function does not depend on the point."""
    w = Tensor(np.ones((2, 1)))
    for _ in range(STEPS):
        x = leaf(points)
        first = slope(matmul(x, w), x)
        with pytest.raises(UnusedInput):
            slope(first, x)


def test_marks_go_with_their_nodes(weights, points):
    """Nothing is remembered of a graph that is gone."""
    gc.collect()
    before = len(history._marks)
    x = leaf(points)
    first = slope(network(x, weights), x)
    assert len(history._marks) > before
    del first, x
    gc.collect()
    assert len(history._marks) == before
