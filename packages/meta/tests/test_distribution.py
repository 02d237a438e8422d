"""Distributions beyond what the wheel says of them: derivatives of samples, rules of one's own, capture, errors."""

import numpy as np
import pytest

import argosy as paddle

D = paddle.distribution


def tensor(*values, gradient=False):
    return paddle.to_tensor(list(values), dtype="float64", stop_gradient=not gradient)


REPARAMETERISED = {
    "Normal": (D.Normal, (0.5, 1.5)),
    "LogNormal": (D.LogNormal, (0.5, 0.4)),
    "Laplace": (D.Laplace, (0.5, 1.5)),
    "Cauchy": (D.Cauchy, (0.5, 1.5)),
    "Gumbel": (D.Gumbel, (0.5, 1.5)),
    "Uniform": (D.Uniform, (0.5, 1.5)),
    "Exponential": (D.Exponential, (1.5,)),
    "Bernoulli": (D.Bernoulli, (0.3,)),
    "ContinuousBernoulli": (D.ContinuousBernoulli, (0.3,)),
}


@pytest.mark.parametrize("name", sorted(REPARAMETERISED))
def test_gradients_of_samples_are_their_derivatives(name):
    """With the noise held fixed a sample is a function of the parameters: finite differences give its derivative."""
    family, values = REPARAMETERISED[name]

    def drawn(parameters):
        paddle.seed(7)
        return family(*parameters).rsample([5])

    given = [tensor(v, gradient=True) for v in values]
    drawn(given).sum().backward()
    for i, leaf in enumerate(given):
        step = 1e-6 * np.eye(len(values))[i]
        around = [
            float(drawn([tensor(v + s) for v, s in zip(values, sign * step, strict=True)]).sum()) for sign in (1, -1)
        ]
        np.testing.assert_allclose(leaf.grad.numpy(), (around[0] - around[1]) / 2e-6, rtol=1e-5)


@pytest.mark.parametrize("family", [D.Normal, D.Uniform])
@pytest.mark.parametrize("first", [0.5, paddle.to_tensor([0.5, 1.5])])
def test_a_seed_of_its_own_gives_the_same_draws_again(family, first):
    """Whatever else is drawn in between; other seeds give others."""
    made = family(first, 2.0)
    one, _, two, other = (made.sample([4], seed=seed).numpy() for seed in (3, 0, 3, 4))
    assert (one == two).all()
    assert (one != other).any()
    complex_one = D.Normal(1 + 1j, 2.0).sample([4], seed=3).numpy()
    assert (complex_one.real != complex_one.imag).any()
    assert (complex_one == D.Normal(1 + 1j, 2.0).sample([4], seed=3).numpy()).all()


def test_gradients_of_multivariate_samples_and_densities():
    """Through the Cholesky factor of a covariance, or of the inverse of a precision: both are the same distribution."""
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    value, loc = paddle.to_tensor([[0.3, -1.0], [2.0, 0.1]]).astype("float64"), tensor(0.5, -0.5)
    grads = []
    for keywords in ({"covariance_matrix": matrix}, {"precision_matrix": np.linalg.inv(matrix)}):
        ((name, given),) = keywords.items()
        leaf = paddle.to_tensor(given, stop_gradient=False)
        made = D.MultivariateNormal(loc, **{name: leaf})
        away = value.numpy() - loc.numpy()
        expected = -0.5 * np.einsum("ni,ij,nj->n", away, np.linalg.inv(matrix), away)
        expected -= 0.5 * np.log(np.linalg.det(2 * np.pi * matrix))
        np.testing.assert_allclose(made.log_prob(value).numpy(), expected, rtol=1e-12)
        made.log_prob(value).sum().backward()
        grads.append(leaf.grad.numpy())
        assert made.rsample([4, 3]).shape == [4, 3, 2]
    symmetric = [g + g.T for g in grads]
    np.testing.assert_allclose(symmetric[0], -np.linalg.inv(matrix) @ symmetric[1] @ np.linalg.inv(matrix), rtol=1e-9)


def test_batches_of_factors_meet_batches_of_values():
    """log_prob of [samples, batch, d] agrees with each batch element's own."""
    rng = np.random.default_rng(0)
    factor = np.tril(rng.standard_normal((3, 2, 2)), -1) + 2 * np.eye(2)
    loc, value = rng.standard_normal((3, 2)), rng.standard_normal((4, 5, 3, 2))
    made = D.MultivariateNormal(paddle.to_tensor(loc), scale_tril=paddle.to_tensor(factor))
    found = made.log_prob(paddle.to_tensor(value)).numpy()
    for i in range(3):
        one = D.MultivariateNormal(paddle.to_tensor(loc[i]), scale_tril=paddle.to_tensor(factor[i]))
        np.testing.assert_allclose(found[..., i], one.log_prob(paddle.to_tensor(value[..., i, :])).numpy(), rtol=1e-12)
    assert made.entropy().shape == [3]
    assert float(D.kl_divergence(made, made).abs().max()) < 1e-12


@pytest.mark.parametrize("method", ["onion", "cvine"])
def test_factors_of_correlations_are_such(method):
    """Rows of length 1 under a positive diagonal, for batches of concentrations."""
    paddle.seed(3)
    drawn = D.LKJCholesky(4, tensor(0.5, 2.0), method).sample([50]).numpy()
    assert drawn.shape == (50, 2, 4, 4)
    np.testing.assert_allclose((drawn**2).sum(-1), 1, rtol=1e-9)
    assert (np.diagonal(drawn, axis1=-2, axis2=-1) > 0).all()
    assert (drawn == np.tril(drawn)).all()


def test_divergences_are_means_of_log_ratios():
    """Of the families whose rule is not the wheel's: sums over all values, to the precision of the tail."""
    counts = paddle.arange(0, 400).astype("float64").reshape([-1, 1])
    for p, q in (
        (D.Geometric(tensor(0.3, 0.7)), D.Geometric(tensor(0.5, 0.2))),
        (D.Poisson(tensor(0.3, 7.0)), D.Poisson(tensor(1.5, 2.0))),
    ):
        mine, other = p.log_prob(counts), q.log_prob(counts)
        expected = paddle.where(mine > -700.0, mine.exp() * (mine - other), 0.0).sum(0)
        np.testing.assert_allclose(p.kl_divergence(q).numpy(), expected.numpy(), rtol=1e-10)
    uniform = D.Uniform(tensor(0.0, 1.0), tensor(2.0, 2.0)).kl_divergence(
        D.Uniform(tensor(-1.0, 1.5), tensor(3.0, 3.0))
    )
    np.testing.assert_allclose(uniform.numpy(), [np.log(2.0), np.inf])


def test_counts_that_cannot_be_have_no_probability():
    """Beyond the number of trials, and of a rate or a class without weight."""
    assert D.Binomial(3, 0.5).log_prob(paddle.to_tensor([-1.0, 4.0])).tolist() == [-np.inf, -np.inf]
    assert D.Poisson(tensor(0.0)).log_prob(tensor(0.0, 1.0)).tolist() == [0.0, -np.inf]
    found = D.Multinomial(2, tensor(0.0, 0.5, 0.5)).log_prob(paddle.to_tensor([[0.0, 1.0, 1.0], [1.0, 1.0, 0.0]]))
    np.testing.assert_allclose(found.numpy(), [np.log(0.5), -np.inf])
    assert float(D.Binomial(tensor(2.0, 0.0), tensor(0.5, 0.5)).entropy()[1]) == 0.0


def test_the_rule_for_the_nearest_classes_is_taken():
    class Mine(D.Normal):
        """A normal variable of another name."""

    @D.register_kl(Mine, D.Normal)
    def _rule(p, q):
        return p.loc - 2 * q.loc

    one, other = Mine(1.0, 1.0), D.Normal(2.0, 1.0)
    assert float(D.kl_divergence(one, other)) == -3.0
    assert float(one.kl_divergence(one)) == -1.0
    assert float(other.kl_divergence(one)) == 0.5

    @D.register_kl(D.Normal, Mine)
    def _crossed(p, q):
        return p.loc

    with pytest.warns(RuntimeWarning, match=r"register_kl\(Mine, Mine\)"):
        one.kl_divergence(one)
    with pytest.raises(NotImplementedError, match="Normal, Laplace"):
        other.kl_divergence(D.Laplace(0.0, 1.0))
    with pytest.raises(TypeError, match="cls_p"):
        D.register_kl(int, D.Normal)


def test_a_transform_of_ones_own_needs_only_its_rules():
    class Cube(D.Transform):
        """x**3."""

        def _forward(self, x):
            return x**3

        def _inverse(self, y):
            return y.sign() * y.abs() ** (1 / 3)

        def _inverse_log_det_jacobian(self, y):
            return -(3 * y.abs() ** (2 / 3)).log()

    cube, x = Cube(), tensor(0.5, -2.0)
    np.testing.assert_allclose(cube.forward_log_det_jacobian(x).numpy(), np.log(3 * x.numpy() ** 2))
    made = cube(D.Normal(tensor(0.0), tensor(1.0)))
    expected = D.Normal(tensor(0.0), tensor(1.0)).log_prob(x) - (3 * x**2).log()
    np.testing.assert_allclose(made.log_prob(x**3).numpy(), expected.numpy())
    assert D.ChainTransform([cube, D.StickBreakingTransform()]).inverse_shape([4, 3]) == (4, 2)


def test_a_captured_step_trains_a_distribution():
    """The evidence lower bound of a Gaussian: samples, densities and divergences within one compiled program."""
    paddle.seed(0)
    loc, raw = (
        paddle.create_parameter([2], "float32", default_initializer=paddle.nn.initializer.Constant(c)) for c in (0, 0)
    )
    optimizer = paddle.optimizer.Adam(0.05, parameters=[loc, raw])
    target = D.MultivariateNormal(paddle.to_tensor([1.0, -2.0]), paddle.to_tensor([[0.25, 0.0], [0.0, 4.0]]))

    @paddle.jit.to_static(full_graph=True)
    def step():
        guess = D.Normal(loc, raw.exp())
        drawn = guess.rsample([16])
        loss = -target.log_prob(drawn).mean() - guess.entropy().sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    for _ in range(300):
        step()
    np.testing.assert_allclose(loc.numpy(), [1.0, -2.0], atol=0.3)
    np.testing.assert_allclose(raw.exp().numpy(), [0.5, 2.0], rtol=0.25)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: D.Normal("a", 1.0), TypeError, "Normal: loc should be a number"),
        (lambda: D.Normal(0.0, 1j), TypeError, "scale should be real"),
        (lambda: D.Normal(paddle.zeros([2]), paddle.ones([3])), ValueError, "do not fit"),
        (lambda: D.Uniform(None, 1.0), TypeError, "Uniform: low"),
        (lambda: D.Gamma([[1.0], [1.0, 2.0]], 1.0), TypeError, "concentration is no array"),
        (lambda: D.Normal(0.0, 1.0).sample(3), TypeError, "shape.? should be a sequence"),
        (lambda: D.Dirichlet(1.0), ValueError, "at least one axis"),
        (lambda: D.Chi2(-1.0), ValueError, "df must be positive"),
        (lambda: D.StudentT(1.0, 0.0, -1.0), ValueError, "scale must not be negative"),
        (lambda: D.LKJCholesky(1), ValueError, "dim should be at least 2"),
        (lambda: D.LKJCholesky(2, 1.0, "hull"), ValueError, "'onion' or 'cvine'"),
        (lambda: D.Multinomial(0, paddle.ones([2])), ValueError, "total_count"),
        (lambda: D.Categorical(1.0), ValueError, "axis of classes"),
        (lambda: D.MultivariateNormal(paddle.zeros([2])), ValueError, "exactly one"),
        (lambda: D.MultivariateNormal(paddle.zeros([2]), paddle.ones([2, 3])), ValueError, "square"),
        (lambda: D.Independent(D.Normal(0.0, 1.0), 1), ValueError, "from 1 to 0"),
        (lambda: D.Independent(3, 1), TypeError, "base should be a Distribution"),
        (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), [3]), TypeError, "transforms"),
        (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), [D.SoftmaxTransform()]), ValueError, "1 axes or more"),
        (lambda: D.Beta(1.0, 1.0).rsample(), NotImplementedError, "Beta does not define rsample"),
        (lambda: D.Cauchy(0.0, 1.0).mean, ValueError, "no mean"),
        (lambda: D.AffineTransform(1.0, paddle.ones([1])), TypeError, "'loc' must be a Tensor"),
        (lambda: D.ReshapeTransform([2], [3]), ValueError, "differ in size"),
        (lambda: D.SoftmaxTransform().forward(paddle.zeros([])), ValueError, "1 axes or more"),
        (
            lambda: D.SoftmaxTransform().forward_log_det_jacobian(paddle.zeros([2])),
            NotImplementedError,
            "not injective",
        ),
        (lambda: D.StackTransform([D.ExpTransform()], 0)(paddle.ones([2])), ValueError, "1 slices along axis 0"),
        (lambda: D.ExpTransform().forward_shape(3), TypeError, "shape.? should be a sequence"),
    ],
)
def test_wrong_input_is_named(make, error, said):
    with pytest.raises(error, match=said):
        make()


def test_transforms_without_an_inverse_say_so_and_keep_shapes():
    """The absolute value has two inverses, with log-determinant 0 each; softmax forgets a constant."""
    both, softmax = D.AbsTransform(), D.SoftmaxTransform()
    assert [float(d) for d in both.inverse_log_det_jacobian(tensor(2.0))] == [0.0, 0.0]
    for made in (both, softmax):
        assert made.forward_shape([2, 3]) == made.inverse_shape([2, 3]) == [2, 3]
        with pytest.raises(NotImplementedError, match="not injective"):
            made.forward_log_det_jacobian(tensor(1.0))
    with pytest.raises(NotImplementedError, match="neither of the two"):
        softmax.inverse_log_det_jacobian(tensor(1.0))
    with pytest.raises(ValueError, match="one axis"):
        softmax.forward_shape([])


def test_chi_squared_variables_diverge_as_the_gamma_variables_that_they_are():
    mine, other = D.Chi2(tensor(3.0)), D.Chi2(tensor(5.0))
    expected = D.Gamma(tensor(1.5), tensor(0.5)).kl_divergence(D.Gamma(tensor(2.5), tensor(0.5)))
    assert float(mine.kl_divergence(other)) == float(expected) > 0
    with pytest.raises(ValueError, match="no variance"):
        _ = D.Cauchy(0.0, 1.0).variance


def test_constraints_of_variables():
    """What a transform's codomain admits."""
    simplex = D.StickBreakingTransform()._codomain
    assert simplex.constraint(paddle.to_tensor([[0.5, 0.5], [0.5, 0.6]])).tolist() == [True, False]
    assert D.TanhTransform()._codomain.constraint(paddle.to_tensor([0.5, -2.0])).tolist() == [True, False]
    stacked = D.StackTransform([D.ExpTransform(), D.AbsTransform()], -1)
    assert stacked._codomain.constraint(paddle.to_tensor([[-1.0, 2.0]])).tolist() == [[False, True]]
    assert (stacked._codomain.event_rank, stacked._domain.is_discrete) == (1, False)
    whole = D.IndependentTransform(D.ExpTransform(), 1)._codomain
    assert whole.constraint(paddle.to_tensor([[1.0, -1.0], [1.0, 1.0]])).tolist() == [False, True]
