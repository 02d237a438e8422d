"""What a mask selects in a captured function: no break where its size is not needed, right results everywhere."""

import numpy as np
import pytest

import argosy as paddle

pytestmark = pytest.mark.usefixtures("verified_passes")

F = paddle.nn.functional
LABELS = paddle.to_tensor([0, 1, 2, 3, 0, 1])
FULL = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def _fresh_report():
    paddle.jit.clear_report()
    yield
    paddle.jit.clear_report()


REDUCED = {
    "sum": lambda x, y, m, r: y[m].sum(),
    "mean": lambda x, y, m, r: y[m].mean(),
    "max": lambda x, y, m, r: y[m].max(),
    "min": lambda x, y, m, r: paddle.masked_select(y, m).min(),
    "prod": lambda x, y, m, r: paddle.masked_select(y, m).prod(),
    "std": lambda x, y, m, r: y[m].std(),
    "var of rows": lambda x, y, m, r: y[r].var(axis=0).sum(),
    "norm": lambda x, y, m, r: paddle.linalg.norm(y[m]),
    "all": lambda x, y, m, r: (y[m] > -9).all().astype("float32"),
    "integers": lambda x, y, m, r: (x * 10).astype("int64")[m].max().astype("float32"),
    "number": lambda x, y, m, r: paddle.numel(y[r]).astype("float32"),
    "masked again": lambda x, y, m, r: (y[m])[y[m] > 0.1].sum(),
    "of functions": lambda x, y, m, r: paddle.exp(y[m] * 2 + 1).mean(),
    "a vector beside": lambda x, y, m, r: (y[r] * y[0]).mean(),
    "rows": lambda x, y, m, r: y[r].mean(axis=0, keepdim=True).max(),
    "within rows": lambda x, y, m, r: F.softmax(y[r])[:, 1].sum(),
    "products": lambda x, y, m, r: paddle.tanh(F.linear(y[r], paddle.ones([4, 3]) * 0.2)).sum(),
    "flat": lambda x, y, m, r: y[r].flatten().mean(),
    "detached": lambda x, y, m, r: (y[m].detach() * y[m]).sum(),
    "squares": lambda x, y, m, r: F.mse_loss(y[m], x[m]),
    "classes": lambda x, y, m, r: F.cross_entropy(y[r], LABELS[r]),
    "weighted classes": lambda x, y, m, r: F.cross_entropy(
        y[r], LABELS[r], weight=paddle.to_tensor([0.1, 0.2, 0.3, 0.4])
    ),
    "accuracy": lambda x, y, m, r: (y.argmax(1)[r] == LABELS[r]).astype("float32").mean(),
    "positions": lambda x, y, m, r: paddle.gather_nd(y, paddle.nonzero(m)).max(),
    "positions of rows": lambda x, y, m, r: paddle.index_select(y, paddle.nonzero(r).flatten()).sum(axis=0).max(),
    "two vectors": lambda x, y, m, r: y[paddle.where(m)].mean(),
    "back": lambda x, y, m, r: paddle.scatter_nd(paddle.nonzero(m), paddle.tanh(y[m]), [6, 4]).sum(axis=0).max(),
}


def _reduce_all(x, w):
    y = x * w
    mask, rows = x > 0.1, x[:, 0] > -0.5
    return [function(x, y, mask, rows) for function in REDUCED.values()]


def _fill(x, w):
    made = []
    for change in CHANGES:
        y = x * w
        change(x, y)
        made.append((y * y).sum())
    return made


def _set_number(x, y):
    y[y > 0] = 0.5


def _set_row(x, y):
    y[x[:, 0] > 0] = y[1] * 3


def _double(x, y):
    y[y > 0] = y[y > 0] * 2


def _double_in_place(x, y):
    y[y > 0] *= 2


def _set_other_dtype(x, y):
    y[x > 0] = (x * 10).astype("int64")[x > 0]


CHANGES = (_set_number, _set_row, _double, _double_in_place, _set_other_dtype)


def _values_and_gradients(function):
    found = []
    for scale in (1, -1, 0.5):
        x = paddle.to_tensor(FULL * np.float32(scale))
        w = paddle.to_tensor(np.array([0.3, -0.5, 0.7, 1.1], np.float32), stop_gradient=False)
        results = function(x, w)
        total = sum(np.cos(i) * y for i, y in enumerate(results) if not y.stop_gradient)
        total.backward()
        found.append([np.asarray(y) for y in (*results, w.grad)])
    return found


@pytest.mark.parametrize("function", [_reduce_all, _fill])
def test_results_that_need_no_size_do_not_break(function):
    """One program for all calls, values and gradients those of eager execution."""
    captured = paddle.jit.to_static(function, full_graph=True)
    for mine, real in zip(_values_and_gradients(captured), _values_and_gradients(function), strict=True):
        assert len(mine) == len(real)
        for a, b in zip(mine, real, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
    assert not paddle.jit.report()


def test_nothing_comes_from_where_the_mask_does_not_hold():
    """Logarithms of what is negative there, and products with its infinities, leave values and gradients clean."""

    def f(x, w):
        y = x * w
        return paddle.log(y[y > 0]).sum() + (w[0] * paddle.log(y)[y > 0]).mean() + (y[y > 9]).sum()

    captured = paddle.jit.to_static(f, full_graph=True, backend="reference")
    found = []
    for function in (captured, lambda x, w: paddle.log((x * w)[x * w > 0]).sum() * 1 + _second(x, w)):
        w = paddle.to_tensor(np.ones(4, np.float32), stop_gradient=False)
        y = function(paddle.to_tensor(FULL), w)
        y.backward()
        found.append((y.numpy(), w.grad.numpy()))
    assert np.isfinite(found[0][0])
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5)


def _second(x, w):
    y = x * w
    return (w[0] * paddle.log(y[y > 0])).mean()


def _sorted(x, w):
    y = (x * w)[x > 0]
    return (paddle.sort(y)[:2] * y.shape[0]).sum()


def _returned(x, w):
    y = (x * w)[x > 0]
    return y * 2 if x.shape[0] == 6 else y


def _branched(x, w):
    y = (x * w)[x > 0]
    if y.sum() > 0:
        z = y * 2
    else:
        z = y * 3
    return z.sum()


@pytest.mark.parametrize("function", [_sorted, _returned, _branched])
def test_what_needs_the_size_breaks_with_right_results(function):
    """Sorting, returning it and carrying it out of a branch: a reason in the report, values and gradients right."""
    captured = paddle.jit.to_static(function, backend="reference")
    for scale in (1, -1, 1, 0.5):
        found = []
        for each in (captured, function):
            x = paddle.to_tensor(FULL * np.float32(scale))
            w = paddle.to_tensor(np.array([0.3, -0.5, 0.7, 1.1], np.float32), stop_gradient=False)
            y = each(x, w)
            y.sum().backward()
            found.append((y.numpy(), w.grad.numpy()))
        np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5)
    assert "what a mask selects" in paddle.jit.report()[0].reason
    with pytest.raises(NotImplementedError, match="what a mask selects"):
        paddle.jit.to_static(function, full_graph=True, backend="reference")(x, w)


def test_gradients_asked_for_before_a_break_keep_the_arguments_on_the_tape():
    """The captured part runs as one program then; what follows still leads gradients to the arguments."""

    def f(x, w):
        inner = w.detach()
        inner.stop_gradient = False
        total = (x * inner).sum()
        (slope,) = paddle.grad(total * total, inner)
        return (slope * w).sum() * float(total)

    found = []
    for each in (paddle.jit.to_static(f, backend="reference"), f):
        w = paddle.to_tensor(np.array([0.3, -0.5, 0.7, 1.1], np.float32), stop_gradient=False)
        each(paddle.to_tensor(FULL), w).backward()
        found.append(w.grad.numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


@pytest.mark.parametrize("full_graph", [False, True])
def test_masks_that_are_no_arguments_are_watched(full_graph):
    """A mask in a closure or a buffer, whose values the capture took: written, it is captured again."""
    mask = paddle.to_tensor([True, False, True])
    captured = paddle.jit.to_static(lambda x: x[mask] * 2, full_graph=full_graph, backend="reference")
    x = paddle.to_tensor([1.0, 2.0, 3.0])
    assert captured(x).tolist() == captured(x).tolist() == [2.0, 6.0]
    mask.set_value(paddle.to_tensor([False, True, False]))
    assert captured(x).tolist() == [4.0]
    with paddle.no_grad():
        mask[0] = True
    assert captured(x).tolist() == captured(x).tolist() == [2.0, 4.0]
    assert not paddle.jit.report()


@pytest.mark.parametrize("full_graph", [False, True])
def test_masks_that_are_written_select_what_they_held(full_graph):
    """In the capture itself: a buffer before it selects, and a computed mask afterwards."""
    kept = paddle.to_tensor([True, False, True])

    def f(x):
        kept[:] = x > 1.5
        mask = x > 2.5
        large = x[mask]
        mask[:] = x < 0
        return x[kept].sum() + 10 * large.sum()

    captured = paddle.jit.to_static(f, full_graph=full_graph, backend="reference")
    for values, wanted in (([1.0, 2.0, 3.0], 35.0), ([2.0, 1.0, 1.0], 2.0), ([3.0, 3.0, 1.0], 66.0)):
        assert float(captured(paddle.to_tensor(values))) == wanted
        assert kept.tolist() == [v > 1.5 for v in values]
