"""Differential operators, eager and captured, against closed forms; derivatives of derivatives in compiled steps."""

import re

import numpy as np
import pytest

import argosy as paddle
from argosy_autograd import differential, replay
from argosy_autograd.errors import DifferentiationError

RNG = np.random.default_rng(0)


def points(d, n=5):
    return paddle.to_tensor(RNG.uniform(0.2, 1.0, (n, d)), stop_gradient=False)


def eager_and_compiled(function, *inputs):
    """Both results: they agree."""
    eager = function(*inputs)
    compiled = paddle.jit.to_static(function, full_graph=True)(*inputs)
    np.testing.assert_allclose(compiled.numpy(), eager.numpy(), rtol=1e-10, atol=1e-12)
    return eager.numpy()


def test_laplacian_and_biharmonic_of_a_polynomial():
    """u = x^4 y + z^2: its Laplacian is 12 x^2 y + 2, the Laplacian of that 24 y."""
    x = points(3)
    a, b, _ = x.numpy().T

    def u(x):
        return x[:, 0] ** 4 * x[:, 1] + x[:, 2] ** 2

    got = eager_and_compiled(lambda x: paddle.autograd.laplacian(u(x), x), x)
    np.testing.assert_allclose(got, 12 * a**2 * b + 2, rtol=1e-12)
    got = eager_and_compiled(lambda x: paddle.autograd.biharmonic(u(x), x), x)
    np.testing.assert_allclose(got, 24 * b, rtol=1e-12)


def test_several_values_for_each_point():
    """Each column of ys on its own."""
    x = points(2)
    got = eager_and_compiled(lambda x: paddle.autograd.laplacian(paddle.stack([x[:, 0] ** 2, x[:, 1] ** 3], -1), x), x)
    np.testing.assert_allclose(got, np.stack([np.full(5, 2.0), 6 * x.numpy()[:, 1]], -1), rtol=1e-12)


def test_divergence_and_curl():
    """Of the field (y z, x z^2, x y): divergence 0, curl (x - 2 x z, 0, z^2 - z); and of a field in the plane."""
    x = points(3)
    a, _, c = x.numpy().T

    def field(x):
        return paddle.stack([x[:, 1] * x[:, 2], x[:, 0] * x[:, 2] ** 2, x[:, 0] * x[:, 1]], -1)

    assert not eager_and_compiled(lambda x: paddle.autograd.divergence(field(x), x), x).any()
    got = eager_and_compiled(lambda x: paddle.autograd.curl(field(x), x), x)
    np.testing.assert_allclose(got, np.stack([a - 2 * a * c, 0 * a, c**2 - c], -1), atol=1e-12)
    y = points(2)
    got = eager_and_compiled(lambda y: paddle.autograd.curl(paddle.stack([-(y[:, 1] ** 2), y[:, 0]], -1), y), y)
    np.testing.assert_allclose(got, 1 + 2 * y.numpy()[:, 1], rtol=1e-12)


def test_linear_operator():
    """Values, mixed derivatives, and a coefficient for each point."""
    x = points(2)
    a, b = x.numpy().T

    def apply(x):
        u = paddle.sin(x[:, 0]) * x[:, 1] ** 2
        return paddle.autograd.linear_operator(u, x, {(): 2.0, (1, 0): x[:, 1], (0, 0, 0, 0): 1.0})

    got = eager_and_compiled(apply, x)
    np.testing.assert_allclose(got, 3 * np.sin(a) * b**2 + b * np.cos(a) * 2 * b, rtol=1e-12)


@pytest.mark.parametrize("name", ["laplacian", "divergence", "curl", "linear_operator"])
def test_shapes_that_do_not_fit_are_told(name):
    """The error names the operator and both shapes."""
    x = points(4)
    y = (x * x).sum()
    extra = ({(0,): 1.0},) if name == "linear_operator" else ()
    with pytest.raises(DifferentiationError, match=rf"{name}: .*\[5, 4\]|{name}: .*points"):
        getattr(paddle.autograd, name)(y, x, *extra)


@pytest.mark.parametrize("name", ["laplacian", "biharmonic", "divergence", "curl", "linear_operator"])
def test_what_is_no_field_over_points_is_told(name):
    """A number alone has no axis of coordinates; what is no tensor is told by its type."""
    apply, extra = getattr(paddle.autograd, name), ({(): 1.0},) if name == "linear_operator" else ()
    x = points(3)
    t = paddle.to_tensor(0.3, stop_gradient=False)
    for ys, xs, message in (
        (paddle.sin(t), t, "a number alone"),
        (x, x.numpy(), "points should be a tensor, got ndarray"),
        (1.0, x, "values should be a tensor, got float"),
    ):
        with pytest.raises(DifferentiationError, match=f"{name}: .*{message}"):
            apply(ys, xs, *extra)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({(4,): 1.0}, r"coordinates 0 to 3, got the key \(4,\)"),
        ({(-1,): 1.0}, r"coordinates 0 to 3, got the key \(-1,\)"),
        ({0: 1.0}, "got the key 0"),
        ({"xx": 1.0}, "got the key 'xx'"),
        ([(0, 0)], r"expected \{\(i, ..., j\): coefficient\}"),
        ({}, r"expected \{\(i, ..., j\): coefficient\}"),
        ({(0,): "one"}, r"coefficient of \(0,\) should be a number or a tensor, got str"),
    ],
)
def test_terms_of_a_linear_operator_are_checked(terms, message):
    """Their form is told with what was given."""
    x = points(4)
    with pytest.raises(DifferentiationError, match=message):
        paddle.autograd.linear_operator(x[:, 0] ** 2, x, terms)


def test_training_on_a_third_order_residual():
    """A compiled step on Korteweg-de Vries: the losses are those of eager nested gradients."""

    def trainer():
        paddle.seed(3)
        net = paddle.nn.Sequential(paddle.nn.Linear(2, 12), paddle.nn.Tanh(), paddle.nn.Linear(12, 1))
        net.to(dtype="float64")
        optimizer = paddle.optimizer.Adam(1e-2, parameters=net.parameters())

        def step(q):
            u = net(q)
            du = paddle.grad(u.sum(), q, create_graph=True)[0]
            duu = paddle.grad(du[:, 0].sum(), q, create_graph=True)[0]
            duuu = paddle.grad(duu[:, 0].sum(), q, create_graph=True)[0]
            loss = ((du[:, 1] + u[:, 0] * du[:, 0] + duuu[:, 0]) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return step

    q = points(2, 16)
    eager, compiled = trainer(), paddle.jit.to_static(trainer(), full_graph=True)
    first = [float(eager(q)) for _ in range(6)]
    np.testing.assert_allclose([float(compiled(q)) for _ in range(6)], first, rtol=1e-9)
    assert first[-1] < first[0]


def test_explain_shows_the_choice_and_what_each_way_would_cost():
    """The remark of the pass is a section of the report; the work is also told in forward passes of the network."""
    net, _ = network([(2, 64), (64, 64), (64, 1)])
    report = paddle.explain(lambda x: paddle.autograd.biharmonic(net(x)[:, 0], x), points(2), measure=False)
    (text,) = [section.body[0] for section in report.sections if section.title.startswith("choices")]
    assert "a forward sweep; estimated operations: nested reverse mode" in text
    before, after = map(float, re.findall(r"\(([\d.]+) forward passes\)", text))
    # Three directions of order 4 share the value and, collapsed, the highest coefficient: 1 + 3 * 3 + 1 of them.
    assert 0.5 * 11 < after < 1.1 * 11
    assert before > 2 * after


def network(sizes, seed=0):
    """A tanh network of parameters: function, parameters."""
    rng = np.random.default_rng(seed)
    made = [paddle.to_tensor(rng.standard_normal((i, o)), stop_gradient=False) for i, o in sizes]
    biases = [paddle.to_tensor(rng.standard_normal(o), stop_gradient=False) for _, o in sizes]

    def call(x):
        for w, b in zip(made[:-1], biases[:-1], strict=True):
            x = paddle.tanh(paddle.matmul(x, w) + b)
        return paddle.matmul(x, made[-1]) + biases[-1]

    return call, [*made, *biases]


@pytest.fixture
def replays(monkeypatch):
    """What the tape was read back to: the results of `replay_sweep`."""
    found = []

    def watched(*arguments):
        found.append(replay.replay_sweep(*arguments))
        return found[-1]

    monkeypatch.setattr(differential, "replay_sweep", watched)
    return found


def test_eager_operators_read_the_tape_back_and_stay_in_the_graph(replays, monkeypatch):
    """One sweep, interpreted and later compiled, agrees with nested gradients; so do its gradients by parameters."""
    call, parameters = network(((2, 6), (6, 6), (6, 1)))
    x, field = points(2), paddle.to_tensor(RNG.uniform(0, 1, 5), stop_gradient=False)

    def step():
        u = call(x)[:, 0]
        made = paddle.autograd.linear_operator(u, x, {(): 2.0, (0, 0, 1): field, (1, 1): -1.0})
        (made * made + paddle.autograd.laplacian(u, x)).sum().backward()
        grads = [None if p.grad is None else p.grad.numpy() for p in (*parameters, field, x)]
        for p in (*parameters, field, x):
            p.clear_grad()
        return [made.numpy(), *grads]

    found = [step() for _ in range(4)]
    assert len(replays) == 8
    assert all(made is not None for made in replays)
    monkeypatch.setattr(differential, "replay_sweep", lambda *_: None)
    for got in found:
        for a, b in zip(got, step(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_new_parameters_are_read_each_time(replays):
    """A history of the same shape is one program; what it reads is that of the call."""
    x = points(2)
    for seed in range(4):
        call, _ = network(((2, 4), (4, 1)), seed)
        got = paddle.autograd.laplacian(call(x), x).numpy()
        step = paddle.jit.to_static(lambda x, call=call: paddle.autograd.laplacian(call(x), x), full_graph=True)
        np.testing.assert_allclose(got, step(x).numpy(), rtol=1e-9)
    assert all(made is not None for made in replays)


class Cube(paddle.autograd.PyLayer):
    """x^3 with a derivative of its own."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        return g * 3 * x**2


def test_what_is_no_plain_operator_is_differentiated_again_and_again(replays):
    """A PyLayer on the way, a value made in place, points that are results themselves."""
    x = points(1)
    got = paddle.autograd.laplacian(Cube.apply(x)[:, 0], x)
    np.testing.assert_allclose(got.numpy(), 6 * x.numpy()[:, 0], rtol=1e-12)
    assert replays == [None]
    y = x * 2
    got = paddle.autograd.laplacian((y**3)[:, 0], y)
    np.testing.assert_allclose(got.numpy(), 6 * y.numpy()[:, 0], rtol=1e-12)
    assert replays[1] is not None
    w = paddle.to_tensor(np.ones((5, 1)))
    u = y * y * w
    w.fill_(3.0)
    with pytest.raises(DifferentiationError, match="changed in place"):
        paddle.autograd.laplacian(u[:, 0], y)


def test_values_of_another_dtype_than_the_points():
    """Double precision at single precision points, complex values: the result has the dtype of the points."""
    x = points(2).astype("float32").detach()
    x.stop_gradient = False
    for u in (
        lambda x: (x.astype("float64") ** 3).sum(-1),
        lambda x: (x.astype("complex64") ** 3 * (1 + 2j)).sum(-1),
    ):
        found = [paddle.autograd.laplacian(u(x), x)]
        found.append(paddle.jit.to_static(lambda x, u=u: paddle.autograd.laplacian(u(x), x), full_graph=True)(x))
        for each in found:
            assert each.dtype is x.dtype
            np.testing.assert_allclose(each.numpy(), 6 * x.numpy().sum(-1), rtol=1e-5)


@paddle.library.custom_op("science_tests.doubled", axes="... -> ...")
def doubled(x: paddle.Tensor) -> paddle.Tensor:
    """Without a gradient."""
    return np.asarray(x) * 2


BAD = {
    "integer points": (lambda x: ((x * x).sum(-1), x.astype("int64")), "int64 .*it is no floating tensor"),
    "constant points": (lambda x: ((x.detach() ** 2).sum(-1), x.detach()), "set its stop_gradient to False"),
    "integer values": (lambda x: ((x * 9).sum(-1).astype("int64"), x), "the values are int64"),
    "other points": (lambda x: ((x * x).sum(-1), x * 2), "the values do not depend on the points"),
    "argmax": (lambda x: (paddle.argmax(x, -1).astype("float64"), x), "do not depend on the points"),
    "custom operator": (lambda x: (doubled(x).sum(-1), x), r"science_tests.doubled has none"),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", BAD)
def test_what_has_no_derivative_is_told(name, compiled):
    """With the operator, and while capturing the line of it and that of the request."""
    make, message = BAD[name]

    def function(x):
        ys, xs = make(x)
        return paddle.autograd.laplacian(ys[:, 0] if ys.ndim == 2 else ys, xs)

    with pytest.raises(DifferentiationError, match=message) as caught:
        (paddle.jit.to_static(function, full_graph=True) if compiled else function)(points(2))
    if compiled and name in ("argmax", "custom operator"):
        assert "test_differential.py:" in str(caught.value)
    elif name == "custom operator":
        assert "order 1" in str(caught.value)
        assert "laplacian" in str(caught.value)


def test_many_dimensions_are_one_axis_of_a_compiled_program():
    """In 16 dimensions, for any number of rows: plane waves, of which the operators are known, through a network whose
    layers undo each other, so that every family of coefficients is wanted."""
    rng = np.random.default_rng(5)
    wave, turn = rng.standard_normal(16) / 4, np.linalg.qr(rng.standard_normal((16, 16)))[0]
    k, there, back = (paddle.to_tensor(a) for a in (wave, turn, turn.T))

    def u(x):
        h = paddle.asinh(paddle.sinh(paddle.matmul(x, there)))
        h = paddle.log(paddle.exp(paddle.matmul(h, there)))
        return paddle.sin(paddle.matmul(paddle.matmul(paddle.matmul(h, back), back), k))

    spec = [paddle.static.InputSpec([None, 16], "float64", stop_gradient=False)]
    size = (wave**2).sum()
    for operator, factor in ((paddle.autograd.laplacian, -size), (paddle.autograd.biharmonic, size**2)):
        compiled = paddle.jit.to_static(lambda x, of=operator: of(u(x), x), input_spec=spec, full_graph=True)
        for rows, functions in ((3, (compiled, lambda x, of=operator: of(u(x), x))), (300, (compiled,))):
            x = paddle.to_tensor(rng.uniform(-1, 1, (rows, 16)), stop_gradient=False)
            for function in functions:
                expected = factor * np.sin(x.numpy() @ wave)
                np.testing.assert_allclose(function(x).numpy(), expected, rtol=1e-9, atol=1e-11)
