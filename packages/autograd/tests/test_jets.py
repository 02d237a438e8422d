"""``jet`` against closed forms and derivatives of derivatives, eager and captured; its gradients; its errors."""

from __future__ import annotations

from math import comb, factorial, gamma

import numpy as np
import pytest

import argosy_autograd as ag
from argosy_autograd.derivatives import derive
from argosy_autograd.errors import DifferentiationError
from argosy_phi_ops import get_operator
from argosy_phi_ops.ops.special.gamma import _NODES, _WEIGHTS
from argosy_pir import TensorType
from argosy_tensorcore.dtype import float64
from argosy_tensorcore.tensor import Tensor

exp, sin, tanh, matmul, log, stack = map(get_operator, ("exp", "sin", "tanh", "matmul", "log", "stack"))
POINTS = np.array([0.3, 0.7, -0.4])


def leaf(data=POINTS):
    return Tensor(np.asarray(data, np.float64), stop_gradient=False)


@pytest.mark.parametrize("order", [1, 3, 8])
def test_derivatives_of_the_exponential_are_itself(order, both):
    """Along x + t every derivative of exp(2 x) is 2^k exp(2 x)."""
    series = ((1.0, *[0.0] * (order - 1)),)
    got = both(lambda x: stack(ag.jet(lambda z: exp(2 * z), (x,), series)[1]), POINTS)
    np.testing.assert_allclose(got, [2.0**k * np.exp(2 * POINTS) for k in range(1, order + 1)], rtol=1e-12)


def power_times_exponential(a, x, order):
    """The derivative of ``x^(a-1) exp(-x) / gamma(a)``, by Leibniz's rule."""
    falling = [np.prod([a - 1 - i for i in range(k)]) for k in range(order + 1)]
    terms = (comb(order, k) * (-1) ** (order - k) * falling[k] * x ** (a - 1 - k) for k in range(order + 1))
    return sum(terms) * np.exp(-x) / gamma(a)


@pytest.mark.parametrize(("name", "sign"), [("gammainc", 1), ("gammaincc", -1)])
def test_incomplete_gamma_functions_have_the_derivatives_of_their_integral(name, sign, both):
    """On both sides of the shape, to order 8; the shape's own derivative is that of a difference."""
    op, a, x, order = get_operator(name), 1.7, np.array([0.3, 2.5, 9.0]), 8

    def function(z):
        return op(z.detach() * 0.0 + a, z)

    series = ((1.0, *[0.0] * (order - 1)),)
    got = both(lambda x: stack(ag.jet(function, (x,), series)[1]), x)
    want = [sign * power_times_exponential(a, x, k) for k in range(order)]
    np.testing.assert_allclose(got, want, rtol=1e-9)

    shape = leaf(np.full(3, a))
    (slope,) = ag.grad(op(shape, leaf(x)).sum(), shape)
    step = 1e-5
    ends = [op(Tensor(np.full(3, a + side)), Tensor(x)).numpy() for side in (step, -step)]
    np.testing.assert_allclose(slope.numpy(), (ends[0] - ends[1]) / (2 * step), rtol=1e-8)


@pytest.mark.parametrize(("order", "bound"), [(32, 4e-15), (40, 6e-13), (48, 4e-10), (64, 3e-7)])
def test_high_derivatives_of_incomplete_gamma_functions_keep_to_their_bound(order, bound):
    """A derivative of order n is that of the integrand times ``n s^(n-1)`` integrated over [0, 1] by the rule."""
    errors = [abs(n * float(np.sum(_WEIGHTS * _NODES ** (n - 1))) - 1) for n in range(1, order + 1)]
    assert max(errors) < bound


def test_the_terms_of_an_incomplete_gamma_function_are_not_differentiated():
    """Its derivative in x reads no more operations than the integrand: hundreds of terms stay constants."""
    op = get_operator("gammainc")
    program = op.expand([TensorType((3,), "float64")] * 2, {}).program
    derivative = derive((op, ((float64, (3,)),) * 2, (), (False, True)), {}).operator.expansion.program
    assert len(program.block) > 1000
    assert len(derivative.block) < 100


def test_a_curved_path_of_two_inputs(both):
    """x(t) y(t) along two curves: Leibniz's rule."""
    a = np.array([1.0, 2.0, -1.0])
    got = both(lambda x, y: ag.jet(lambda p, q: p * q, (x, y), ((1.0, 3.0), (2.0, 0.5)))[1][1], POINTS, a)
    np.testing.assert_allclose(got, 3.0 * a + 2 * 1.0 * 2.0 + POINTS * 0.5, rtol=1e-12)
    with pytest.raises(DifferentiationError, match=r"derivative 2 of primal 0 is float64 \[2\]"):
        ag.jet(sin, (leaf(),), ((1.0, Tensor(np.zeros(2))),))


def test_a_network_agrees_with_nested_gradients(both):
    """The third derivative of a tanh network by one sweep and by three reverse passes, and what the weights get."""
    rng = np.random.default_rng(0)
    w = Tensor(rng.standard_normal((1, 5)), stop_gradient=False)
    v = Tensor(rng.standard_normal((5, 1)))

    def net(z):
        return matmul(tanh(matmul(z, w)), v)

    def by_jet(x):
        return ag.jet(net, (x,), ((1.0, 0.0, 0.0),))[1][2]

    def nested(x):
        y = net(x)
        for _ in range(3):
            (y,) = ag.grad(y.sum(), x, create_graph=True)
        return y

    x = leaf(POINTS[:, None])
    np.testing.assert_allclose(both(by_jet, POINTS[:, None]), nested(x).numpy(), rtol=1e-10)
    (got,), (expected,) = ag.grad(by_jet(x).sum(), w), ag.grad(nested(x).sum(), w)
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-10)


def test_gradients_of_a_jet_by_point_and_series():
    """d/dx of f'' along a path is f''' x'^2 + f'' x'', by the series it is their coefficients."""
    x, s1 = leaf(), leaf(np.full(3, 2.0))
    second = ag.jet(sin, (x,), ((s1, 0.5),))[1][1]  # f'' s1^2 + f' s2
    gx, gs = ag.grad(second.sum(), [x, s1])
    np.testing.assert_allclose(gx.numpy(), -np.cos(POINTS) * 4 - np.sin(POINTS) * 0.5, rtol=1e-12)
    np.testing.assert_allclose(gs.numpy(), -2 * np.sin(POINTS) * 2, rtol=1e-12)


def test_several_results_and_results_that_stand_still():
    """A tuple of results gives a tuple of lists; what does not move has zero derivatives."""
    values, derivatives = ag.jet(lambda z: (log(z), z * 0 + 1), (leaf(np.abs(POINTS)),), ((1.0, 0.0, 0.0, 0.0),))
    assert len(values) == len(derivatives) == 2
    expected = -factorial(3) / np.abs(POINTS) ** 4
    np.testing.assert_allclose(derivatives[0][3].numpy(), expected, rtol=1e-12)
    assert not derivatives[1][2].numpy().any()


def test_a_gradient_within_a_jet(both):
    """Taylor mode over reverse mode: the derivatives of f' along a line."""

    def slope(z):
        return ag.grad(sin(z).sum(), z, create_graph=True)[0]

    got = both(lambda x: ag.jet(slope, (x,), ((1.0, 0.0),))[1][1], POINTS)
    np.testing.assert_allclose(got, -np.cos(POINTS), rtol=1e-12)


@pytest.mark.parametrize("several", [False, True])
def test_without_a_taylor_rule_derivatives_are_nested(several):
    """A function with a derivative of its own, along a curved path: as without it; gradients go on."""
    cube = ag.custom_vjp(lambda x: x * x * x)
    cube.defvjp(lambda x: (x * x * x, x), lambda x, g: (g * x * x * 3,))
    x = leaf()

    def along(f):
        values, derivatives = ag.jet(lambda z: (f(z), z) if several else sin(f(z)), (x,), ((1.0, 0.5, -2.0),))
        return (values[0], derivatives[0]) if several else (values, derivatives)

    value, derivatives = along(cube)
    expected_value, expected = along(lambda x: x * x * x)
    np.testing.assert_allclose(value.numpy(), expected_value.numpy())
    for got, wanted in zip(derivatives, expected, strict=True):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-13)
    got, wanted = (ag.grad(d[1].sum(), x)[0].numpy() for d in (derivatives, expected))
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda z: z.prod(),
        lambda z: get_operator("cumprod")(z * 2.0, 0).sum(),
        lambda z: get_operator("inv")(get_operator("diag")(z) + 0.1).sum(),
        lambda z: (z * 3.0).prod() * z.prod(),
    ],
    ids=["prod", "cumprod", "inv", "two products"],
)
@pytest.mark.parametrize("series", [(1.0, 0.0, 0.5, 0.0), (0.0, 1.0, 0.0, 2.0), (1.0, 1.0, 1.0, 1.0)], ids=str)
@pytest.mark.exhaustive(every=5)
def test_curves_whose_coefficients_are_constants(function, series, both):
    """What has no rule but its derivative, along curves that start straight: against derivatives by a parameter."""
    t = Tensor(np.zeros(()), stop_gradient=False)
    y = function(Tensor(POINTS) + sum(c * t**k / factorial(k) for k, c in enumerate(series, 1)))
    for k in range(len(series)):
        (y,) = ag.grad(y, t, create_graph=True)
        got = both(lambda x, k=k: ag.jet(function, (x,), (series,))[1][k], POINTS)
        np.testing.assert_allclose(got, y.numpy(), rtol=1e-9, atol=1e-9)


def test_one_tensor_as_the_slope_of_two_curves(both):
    """They part at the second order."""
    slope = Tensor(np.ones(3))

    def third(x, y):
        return ag.jet(lambda p, q: p.prod() * q.prod(), (x, y), ((slope, 0.0, 0.0), (slope, 2.0, 0.0)))[1][2]

    def curves(t):
        return (Tensor(POINTS) + t).prod() * (Tensor(POINTS + 1) + t + t * t).prod()

    t = Tensor(np.zeros(()), stop_gradient=False)
    y = curves(t)
    for _ in range(3):
        (y,) = ag.grad(y, t, create_graph=True)
    np.testing.assert_allclose(both(third, POINTS, POINTS + 1), y.numpy(), rtol=1e-10)


def test_a_function_that_reads_values():
    """Eager derivatives are nested then: the number of steps depends on the point."""

    def steps(z):
        while float(z.sum()) < 4.0:
            z = z * z + 1.0
        return z

    series = ((1.0, 0.5),)
    expected = ag.jet(lambda z: (z * z + 1.0) * (z * z + 1.0) + 1.0, (leaf(),), series)
    value, derivatives = ag.jet(steps, (leaf(),), series)
    np.testing.assert_allclose(value.numpy(), expected[0].numpy())
    np.testing.assert_allclose(derivatives[1].numpy(), expected[1][1].numpy(), rtol=1e-12)


class Square(ag.PyLayer):
    """A square whose gradient a user gives."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        return g * x * 2


def own_jvp():
    """The exponential by a rule that calls it again."""
    made = ag.custom_jvp(exp)

    @made.defjvp
    def _(primals, tangents):
        y = made(primals[0])
        return y, y * tangents[0]

    return made


def own_vjp():
    """A cube by forward and backward functions."""
    made = ag.custom_vjp(lambda x: x * x * x)
    made.defvjp(lambda x: (x * x * x, x), lambda x, g: (g * x * x * 3,))
    return made


@pytest.mark.parametrize(
    ("own", "plain"),
    [(own_vjp, lambda x: x * x * x), (own_jvp, exp), (lambda: Square.apply, lambda x: x * x)],
    ids=["custom_vjp", "custom_jvp", "PyLayer"],
)
def test_derivatives_of_a_users_own_along_a_curve(own, plain, both):
    """Eager and captured, each order and the gradient of one, beside a factor that is used outside of it, too."""
    f, series = own(), ((1.0, 0.5, -2.0),)
    for k in range(3):
        expected = ag.jet(lambda z: sin(plain(z)) * z, (leaf(),), series)[1][k].numpy()
        got = both(lambda x, k=k: ag.jet(lambda z: sin(f(z)) * z, (x,), series)[1][k], POINTS)
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12)

    def slope(g):
        return lambda x: ag.grad(ag.jet(g, (x,), series)[1][1].sum(), x)[0]

    np.testing.assert_allclose(both(slope(f), POINTS), slope(plain)(leaf()).numpy(), rtol=1e-11)


@pytest.mark.parametrize(
    ("primals", "series", "message"),
    [
        ([POINTS], ((1.0,), (1.0,)), "1 primals and series of lengths"),
        ([POINTS, POINTS], ((1.0,), (1.0, 2.0)), r"lengths \[1, 2\]"),
        ([np.arange(3)], ((1.0,),), "primal 0 is a int64 tensor"),
    ],
)
def test_errors_say_what_does_not_fit(primals, series, message):
    """Numbers of series, their lengths, integer inputs."""
    with pytest.raises(DifferentiationError, match=message):
        ag.jet(sin, [Tensor(p) for p in primals], series)
