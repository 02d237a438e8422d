"""Every operator's samples: derived derivatives against differences, hand-written kernels against derived ones."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest

from argosy_autograd import derivatives as derived
from argosy_autograd import recipes
from argosy_autograd.checks import check_program
from argosy_autograd.derivatives import derive
from argosy_autograd.engine import grad
from argosy_autograd.kernels import KERNELS
from argosy_autograd.operator_rules import WHOLE_RULES
from argosy_autograd.recipes import by_program
from argosy_autograd.tape import OperatorNode, edge_of
from argosy_phi_ops import get_operator
from argosy_phi_ops.declare.index import MODULES
from argosy_phi_ops.declare.operator import Sample
from argosy_phi_ops.eager.dispatch import call
from argosy_phi_ops.eager.table import forget
from argosy_phi_ops.errors import OperatorError
from argosy_pir import TensorType
from argosy_tensorcore.tensor import Tensor


def samples(name):
    op = get_operator(name)
    if op.sampler is None or op.opaque:
        return
    for sample in op.sampler(np.random.default_rng(0)):
        yield op, sample


def bound(op, sample):
    def convert(x):
        if isinstance(x, np.ndarray):
            return Tensor(x, stop_gradient=x.dtype.kind not in "fc")
        return [convert(v) for v in x] if isinstance(x, list) else x

    args = [convert(x) for x in sample.args]
    kwargs = {k: convert(v) for k, v in sample.kwargs.items()}
    return op.signature.bind(tuple(args), kwargs)


NO_DIFFERENCES = {
    "batch_norm": "running statistics are constants for differentiation",
    **dict.fromkeys(("cholesky", "eigh", "eigvalsh"), "the derivative is that of a symmetric change"),
    **dict.fromkeys(("heaviside", "sort"), "a sample lies in the middle of a jump or a tie"),
    "nextafter": "moves in the floating-point grid",
    "eig": "eigenvectors are unique only up to a phase",
}
CONSTANTS = {
    **dict.fromkeys(
        ("binary_cross_entropy_with_logits", "cross_entropy", "kl_div", "label_smooth", "softmax_with_cross_entropy"),
        (1,),
    ),
    "nll_loss": (2,),
}
"""Operands that are constants to differentiation, as in Paddle: labels, the prior, the weights of classes."""
UNCHECKED = {"binary_cross_entropy": "a sample is at probability zero, where the logarithm has no derivative"}


NO_SECOND_DIFFERENCES = {
    **NO_DIFFERENCES,
    "logsumexp": "a sample has infinities, around which a difference is none",
    **dict.fromkeys(("gammainc", "gammaincc", "grid_sample"), "its gradient's gradient is long, and a test of its own"),
}


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("name", sorted(MODULES.keys() - UNCHECKED.keys()))
def test_operator_differentiates(name):
    """The decomposition has derivatives in both modes that agree with differences at every sample, kinks left out, and
    so has its gradient."""
    for op, sample in samples(name):
        _check_sample(op, sample, order=1 if name in NO_SECOND_DIFFERENCES else 2)


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("gammainc", "gammaincc")),
        pytest.param("grid_sample", marks=pytest.mark.soak),
    ],
)
def test_the_gradient_of_many_operations_differentiates(name):
    for op, sample in samples(name):
        _check_sample(op, sample, order=2)


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("name", sorted(MODULES))
def test_complex_operands_are_differentiated_or_refused(name):
    """Every sample of real numbers, with imaginary parts: derivatives agree with differences along complex directions
    (a cotangent is dL/da + i dL/db), or the operator's error says that it takes no complex numbers."""
    if name in {**UNCHECKED, **NO_DIFFERENCES, "svd": "singular vectors are unique only up to a phase"}:
        return
    rng = np.random.default_rng(5)
    refusals = []

    def turned(x):
        if isinstance(x, list):
            return [turned(v) for v in x]
        real = isinstance(x, np.ndarray) and x.dtype == np.float64
        return x + 1j * rng.standard_normal(x.shape) if real else x

    for op, sample in samples(name):
        given = Sample(*map(turned, sample.args), **{k: turned(v) for k, v in sample.kwargs.items()})
        if any(np.iscomplexobj(x) for arg in given.args for x in (arg if isinstance(arg, list) else [arg])):
            try:
                _check_sample(op, given, order=1)
            except OperatorError as error:
                refusals.append(str(error))
    assert all(name in text and "complex" in text for text in refusals), refusals


def _check_sample(op, sample, order):
    operands, attributes = bound(op, sample)
    if op.random or not operands or any(type(x) is not Tensor for x in operands):
        return
    arrays = [np.asarray(x.payload.ndarray) for x in operands]
    if any(a.dtype.name in ("float32", "complex64") for a in arrays):
        return
    program = op.expand([TensorType(a.shape, a.dtype.name) for a in arrays], attributes).program
    with np.errstate(all="ignore"):
        check_program(
            program, arrays, order=order, rtol=1e-4, atol=1e-5, differences=op.name not in NO_DIFFERENCES, kinks=True,
            constants=CONSTANTS.get(op.name, ()),
        )  # fmt: skip


def adjugate(a):
    """The transposed cofactors, of float64 matrices."""
    minors = [[np.delete(np.delete(a, i, 0), j, 1) for j in range(len(a))] for i in range(len(a))]
    return np.array([[(-1) ** (i + j) * np.linalg.det(m) for j, m in enumerate(row)] for i, row in enumerate(minors)])


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize(
    "matrix",
    [
        [[0, 1], [0, 1]], [[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.diag([1, 2, 0, 4]), np.diag([1, 2, 3, 0]),
        [[0, 1, 2, 3], [0, 1, 5, 3], [0, 7, 2, 1], [0, 1, 1, 1]], np.ones((4, 4)), np.zeros((5, 5)),
        np.outer(range(5), range(5)) + np.diag([0, 1, 1, 1, 1]),
    ],
    ids=range(8),
)  # fmt: skip
def test_the_gradient_of_a_singular_determinant_is_the_adjugate(matrix, dtype):
    """The determinant is a polynomial; a pivot of zero does not keep its derivative from existing."""
    x = Tensor(np.array(matrix, dtype), stop_gradient=False)
    y = get_operator("det")(x)
    assert abs(y.numpy()) <= (1e-4 if dtype == "float32" else 1e-12)
    (g,) = grad(y, x)
    expected = adjugate(np.array(matrix, "float64"))
    np.testing.assert_allclose(g.numpy(), expected, atol=1e-3 if dtype == "float32" else 1e-9)


def test_binary_cross_entropy_at_certainty_has_the_gradient_of_paddle():
    """(p - label) / max(p (1 - p), 1e-12): values recorded from the wheel."""
    p = Tensor(np.array([0, 1, 0, 1, 0.3], np.float32), stop_gradient=False)
    label = Tensor(np.array([0, 0, 1, 0.5, 0.2], np.float32))
    loss = get_operator("binary_cross_entropy")(p, label, reduction="sum")
    np.testing.assert_allclose(grad(loss, p)[0].numpy(), [0, 1e12, -1e12, 5e11, 0.47619051], rtol=1e-6)


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("name", sorted(MODULES))
def test_eager_gradients_of_gradients_have_the_type_of_their_tensor(name):
    """Every sample goes through the tape twice."""
    op = get_operator(name)
    for sample in op.sampler(np.random.default_rng(0)) if op.sampler is not None else ():
        operands, attributes = bound(op, sample)
        leaves = [x for x in operands if type(x) is Tensor and not x.stop_gradient]
        with np.errstate(all="ignore"):
            made = call(op, operands, attributes)
            results = made if isinstance(made, tuple) else (made,)
            ends = [y for y in results if not y.stop_gradient and y.dtype.kind in "fc"]
            if not ends or not leaves:
                continue
            gradients = [g for g in grad(ends, leaves, create_graph=True, allow_unused=True)]
            for x, g in zip(leaves, gradients, strict=True):
                assert g is None or (g.shape, g.dtype) == (x.shape, x.dtype)
            again = [g for g in gradients if g is not None and not g.stop_gradient]
            if again:
                grad(again, leaves, allow_unused=True)


def cases():
    rng = np.random.default_rng(1)
    x, y, w = rng.standard_normal((2, 3)), rng.standard_normal((2, 3)), rng.standard_normal((3, 4))
    for name in ("add", "subtract", "multiply", "divide"):
        yield name, (x, y), {}
        yield name, (x, rng.standard_normal((4, 1, 3))), {}
    for name in ("relu", "tanh", "sigmoid"):
        yield name, (x,), {}
    for name in ("sum", "mean"):
        for axis in (None, 0, (0, -1), [1]):
            for keepdim in (False, True):
                yield name, (x,), {"axis": axis, "keepdim": keepdim}
        yield name, (rng.standard_normal(()),), {}
    yield "reshape", (x, [3, 2]), {}
    for tx in (False, True):
        for ty in (False, True):
            a, b = (x.T if tx else x), (w.T if ty else w)
            yield "matmul", (a, b), {"transpose_x": tx, "transpose_y": ty}
            batched = np.stack([a, a + 1])
            yield "matmul", (batched, b), {"transpose_x": tx, "transpose_y": ty}
            yield "matmul", (batched[:, None], np.stack([b, b, b])), {"transpose_x": tx, "transpose_y": ty}
    yield "transpose", (rng.standard_normal((2, 3, 4)), [-1, 0, 1]), {}
    yield "softmax", (x,), {"axis": 0}
    yield "softmax", (x * 5,), {}
    yield "cross_entropy", (x, np.array([2, 0])), {}
    yield "cross_entropy", (rng.standard_normal((2, 2, 3)), np.array([[2, -100], [1, 0]])), {}
    yield "gelu", (x, True), {}
    yield "layer_norm", (x, x.shape[-1], y[0], y[-1]), {}
    yield "layer_norm", (np.stack([x, y * 3]), [x.shape[-1]], x[0], x[-1]), {"epsilon": 1e-2}
    queries, keys, values = rng.standard_normal((3, 2, 5, 3, 4))
    yield "scaled_dot_product_attention", (queries, keys, values), {"is_causal": True}
    yield "scaled_dot_product_attention", (queries[:, :3], keys, values[..., :2]), {"scale": 0.3}
    yield "scaled_dot_product_attention", (queries[:, :3], keys, values), {"is_causal": True, "training": False}
    yield "linear", (x, w), {}
    yield "linear", (np.stack([x, y]), w, rng.standard_normal(4)), {}
    a, b = rng.standard_normal((2, 2, 5, 5))
    for name in ("inv", "det", "slogdet"):
        yield name, (a,), {}
        yield name, (b[0],), {}
    yield "solve", (a, b[..., :3]), {}
    yield "solve", (a[0], b[0]), {}
    singular = a.copy()
    singular[:, 4] = singular[:, 1]
    singular[1] = 0
    yield "det", (singular,), {}


@pytest.mark.parametrize(("name", "args", "kwargs"), list(cases()))
def test_kernels_equal_the_derived_program(name, args, kwargs):
    """For every choice of operands that want gradients; and they keep all that the derived program reads."""
    op = get_operator(name)
    places = [i for i, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    for choice in range(1, 2 ** len(places)):
        wanted = {place for bit, place in enumerate(places) if choice >> bit & 1}
        given = [
            Tensor(a, stop_gradient=i not in wanted) if isinstance(a, np.ndarray) else a for i, a in enumerate(args)
        ]
        operands, attributes = op.signature.bind(tuple(given), kwargs)
        result = op(*given, **kwargs)
        node = result._node
        assert isinstance(node, OperatorNode)
        run = getattr(node.recipe.run, "kernel", node.recipe.run)  # what is counted
        assert run in (KERNELS[name].run, KERNELS[name].alike)
        assert set(derive(node.recipe.key, attributes).keeps) <= set(node.recipe.keeps)
        g = np.random.default_rng(2).standard_normal(result.shape)
        fast = node.pull_arrays([g])
        node.recipe = copy(node.recipe)
        node.recipe.run = by_program
        slow = node.pull_arrays([g])
        for x, a, b in zip(operands, fast, slow, strict=True):
            assert (a is None) == (edge_of(x) is None)
            if a is not None:
                assert a.dtype == b.dtype
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def _forget():
    derived._cache.clear()
    recipes._recipes.clear()
    forget()


@pytest.mark.parametrize("name", sorted(WHOLE_RULES))
@pytest.mark.parametrize("axis", [0, -1])
def test_rules_of_whole_operators_equal_the_decomposition(name, axis, monkeypatch):
    """To second order, and they read the result only."""
    rng = np.random.default_rng(3)
    x, v, w = rng.standard_normal((3, 2, 4))
    op = get_operator(name)

    def gradients():
        t = Tensor(x, stop_gradient=False)
        y = op(t, axis=axis)
        keeps = derive(y._node.recipe.key, y._node.recipe.attributes).keeps
        (g,) = grad((y * Tensor(v)).sum(), t, create_graph=True)
        (h,) = grad((g * Tensor(w)).sum(), t)
        return keeps, g.numpy(), h.numpy()

    monkeypatch.delitem(KERNELS, name, raising=False)
    _forget()
    keeps, *whole = gradients()
    assert keeps == (1,)
    monkeypatch.delitem(WHOLE_RULES, name)
    _forget()
    _, *parts = gradients()
    _forget()
    np.testing.assert_allclose(whole, parts, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "values"), [("svd", 1), ("eigh", 0)])
def test_the_gradient_of_equal_values_alone_does_not_meet_their_vectors(name, values):
    """Equal singular values and eigenvalues leave the slopes of the vectors infinite; so long as nobody asks for those,
    sum s_i^3 has a gradient, and it does when the derivative is recorded and when it is compiled."""
    for repeat in range(12):
        x = Tensor(np.diag([1.0, 1.0, 2.0]), stop_gradient=False)
        s = get_operator(name)(x)[values]
        (g,) = grad((s * s * s).sum(), x, create_graph=bool(repeat % 2))
        np.testing.assert_allclose(g.numpy(), np.diag([3.0, 3.0, 12.0]), atol=1e-12)
