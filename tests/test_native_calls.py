"""Calls that native code does: views, and hot operators with attributes and any number of tensors. Where there is no
native build, the same tests run on the plain one.
"""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest
from eager_helpers import is_native, made_natively, tensor

import argosy as paddle

VIEWS = {
    "reshape": (lambda x: x.reshape([2, 8]), lambda a: a.reshape(2, 8)),
    "reshape_by_name": (lambda x: paddle.reshape(x, shape=(-1, 2)), lambda a: a.reshape(-1, 2)),
    "transpose": (lambda x: x.transpose([1, 0]), lambda a: a.T),
    "unsqueeze": (lambda x: x.unsqueeze(1), lambda a: a[:, None]),
    "flatten": (lambda x: x.flatten(), lambda a: a.reshape(-1)),
    "rows": (lambda x: x[1:3], lambda a: a[1:3]),
    "row": (lambda x: x[-1], lambda a: a[-1]),
    "columns": (lambda x: x[:, 1:3], lambda a: a[:, 1:3]),
    "backwards": (lambda x: x[::-1], lambda a: a[::-1]),
    "new_axis": (lambda x: x[None, ..., 2], lambda a: a[None, ..., 2]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_show_the_memory_of_their_base(name):
    f, expected = VIEWS[name]
    a = np.random.default_rng(4).standard_normal((4, 4)).astype("f4")
    for made in (tensor, lambda v: tensor(v) + tensor(v)):  # memory of an array, and of native code
        for _ in range(9):
            x = made(a)
            before = x.numpy().copy()
            y = f(x)
            np.testing.assert_array_equal(y.numpy(), expected(before))
            assert y.payload.contiguous == expected(before).flags.c_contiguous
            np.testing.assert_array_equal((y * y).numpy(), expected(before) ** 2)
            y.add_(paddle.ones_like(y))
            assert x.inplace_version == y.inplace_version == 1
            changed = before.copy()
            expected(changed)[...] += 1
            np.testing.assert_array_equal(x.numpy(), changed)
    z = f(tensor(a.T.copy()).t())  # strided: by Python
    np.testing.assert_array_equal(z.numpy(), expected(a))


@pytest.mark.parametrize("name", VIEWS)
def test_gradients_of_views(name):
    f, expected = VIEWS[name]
    a = np.random.default_rng(5).standard_normal((4, 4)).astype("f4")
    wanted = np.zeros_like(a)
    expected(wanted)[...] = 2 * expected(a)
    for _ in range(9):
        x = tensor(a, True)
        y = f(x + 0.0)
        (y * y).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-6)
    y = f(x * 1.0)
    assert not y.stop_gradient
    with paddle.no_grad():
        assert f(x).stop_gradient


def test_views_outlive_their_base():
    for _ in range(20):
        y = (tensor(np.arange(16)) + tensor(np.ones(16))).reshape([4, 4])[1:3]
        others = [tensor(np.zeros(16)) + tensor(np.zeros(16)) for _ in range(4)]
    np.testing.assert_array_equal(y.numpy(), np.arange(5, 13).reshape(2, 4))
    del others
    gc.collect()
    np.testing.assert_array_equal(y.numpy(), np.arange(5, 13).reshape(2, 4))


ATTRIBUTES = {
    "axis": (lambda x, i: x.sum(i % 2), lambda a, i: a.sum(i % 2)),
    "keyword": (lambda x, i: x.mean(axis=-1, keepdim=i % 2 == 0), lambda a, i: a.mean(-1, keepdims=i % 2 == 0)),
    "list": (lambda x, i: paddle.sum(x, axis=[0, 1] if i % 2 else [1]), lambda a, i: a.sum((0, 1) if i % 2 else 1)),
    "dtype": (
        lambda x, i: x.astype(["float64", "int32"][i % 2]), lambda a, i: a.astype([np.float64, np.int32][i % 2])
    ),
    "tensors": (lambda x, i: paddle.concat([x, x + 1.0], i % 2), lambda a, i: np.concatenate([a, a + 1], i % 2)),
    "shape": (lambda x, i: x.reshape([2, 8] if i % 2 else (8, 2)), lambda a, i: a.reshape((2, 8) if i % 2 else (8, 2))),
    "index": (lambda x, i: x[i % 3, 1:], lambda a, i: a[i % 3, 1:]),
    "bool_or_int": (lambda x, i: x.sum(1, None, i % 2 == 1), lambda a, i: a.sum(1, keepdims=i % 2 == 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_calls_are_told_apart_by_their_attributes(name, hot_at_once):
    f, expected = ATTRIBUTES[name]
    a = np.random.default_rng(6).standard_normal((4, 4)).astype("f4")
    for i in range(30):
        x = tensor(a, i % 4 == 3)
        y, wanted = f(x, i), expected(a, i)
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5, atol=1e-6)
        assert (tuple(y.shape), y.numpy().dtype) == (wanted.shape, wanted.dtype)
        if y.dtype != paddle.int32:
            assert y.stop_gradient == (i % 4 != 3)


@pytest.mark.parametrize("wants", [(0, 1, 2), (0,), (1,), (2,), (0, 2)])
def test_calls_of_many_tensors_leave_nodes(wants, hot_at_once):
    rng = np.random.default_rng(7)
    arrays = [rng.standard_normal(shape).astype("f4") for shape in ((3, 4), (4, 2), (2,))]
    found = []
    for _ in range(9):
        leaves = [tensor(v, i in wants) for i, v in enumerate(arrays)]
        y = paddle.nn.functional.linear(*leaves)
        np.testing.assert_allclose(y.numpy(), arrays[0] @ arrays[1] + arrays[2], rtol=1e-5)
        (y * y).sum().backward()
        found.append([None if x.grad is None else x.grad.numpy() for x in leaves])
    for i in range(3):
        assert (found[0][i] is not None) == (i in wants)
        if i in wants:
            np.testing.assert_allclose(found[-1][i], found[0][i], rtol=1e-4)
    if is_native():
        assert made_natively(paddle.nn.functional.linear(*leaves))


def test_methods_keep_their_names_and_signatures(hot_at_once):
    import inspect

    x = tensor(np.ones((4, 4)))
    shown = str(inspect.signature(paddle.Tensor.sum))
    for _ in range(9):
        x.sum(0)
    assert str(inspect.signature(paddle.Tensor.sum)) == shown
    assert paddle.Tensor.sum.__name__ == "sum"
    assert "sum" in paddle.Tensor.sum.__doc__.lower()
    bound = x.sum
    np.testing.assert_array_equal(bound(0).numpy(), np.full(4, 4))
    np.testing.assert_array_equal(paddle.Tensor.sum(x, axis=1).numpy(), np.full(4, 4))
    with pytest.raises((TypeError, ValueError)):
        x.sum(axis="a")
    with pytest.raises(TypeError):
        paddle.Tensor.sum()
    assert callable(getattr(x, "reshape"))  # noqa: B009


def test_masks_and_lists_are_no_plans():
    x = tensor(np.arange(4))
    for mask in ([True, False, True, False], [True, True, True, False], [False] * 4):
        for _ in range(6):
            np.testing.assert_array_equal(x[paddle.to_tensor(mask)].numpy(), np.arange(4)[mask])
    for picks in ([0, 2], [3, 1], [1, 1]):
        for _ in range(6):
            np.testing.assert_array_equal(x[picks].numpy(), np.arange(4)[picks])
    for _ in range(6):
        np.testing.assert_array_equal(x[False].numpy(), np.zeros((0, 4)))
        np.testing.assert_array_equal(x.unsqueeze(0)[False].numpy(), np.zeros((0, 1, 4)))


NUMBERS = {
    "pow": (lambda x, v: x**v, lambda a, v: a**v, (2, 3, 0.5, 2.0)),
    "clip": (lambda x, v: paddle.clip(x, -v, v), lambda a, v: np.clip(a, -v, v), (0.75, 1.0, 2)),
    "greater": (lambda x, v: x > v, lambda a, v: a > v, (0, 0.5, 1)),
    "scale": (lambda x, v: paddle.scale(x, v, bias=1.0), lambda a, v: a * np.float32(v) + 1, (0.5, 2.0, 0.0)),
    "many": (lambda x, v: x**v, lambda a, v: a**v, (1.25, 1.5, 1.75, 2.25, 2.5, 2.75)),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_become_constants_of_their_own_plans(name, hot_at_once):
    f, expected, numbers = NUMBERS[name]
    a = np.random.default_rng(8).uniform(0.1, 1.5, (4, 4)).astype("f4")
    for i in range(60):
        v = numbers[i % len(numbers)]
        x = tensor(a, i % 8 > 3)
        y = f(x, v)
        np.testing.assert_allclose(y.numpy(), expected(a, v), rtol=1e-5, atol=1e-6)
        assert y.stop_gradient == (i % 8 <= 3 or name == "greater")
    assert made_natively(y) == (is_native() and name != "many")


@pytest.mark.parametrize("v", [2, 3, 0.5])
def test_gradients_with_constants(v, hot_at_once):
    a = np.random.default_rng(9).uniform(0.5, 1.5, (4, 4)).astype("f4")
    for _ in range(12):
        x = tensor(a, True)
        (x**v).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), v * a ** (v - 1), rtol=1e-4)
        x.clear_gradient(False)
        paddle.clip(x, 0.75, 1.25).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), (a > 0.75) & (a < 1.25))
    (g,) = paddle.grad((x**v).sum(), x, create_graph=True)
    (h,) = paddle.grad(g.sum(), x)
    np.testing.assert_allclose(h.numpy(), v * (v - 1) * a ** (v - 2), rtol=1e-4)


TABLE = np.arange(12, dtype="f4").reshape(3, 4)
LOOK_UPS = {
    "embedding": (lambda x, i: paddle.nn.functional.embedding(i, x), lambda i: TABLE[i]),
    "gather": (lambda x, i: paddle.gather(x, i), lambda i: TABLE[i]),
    "index_select": (lambda x, i: paddle.index_select(x, i, 0), lambda i: TABLE[i]),
    "take_along_axis": (
        lambda x, i: paddle.take_along_axis(x, i.reshape([-1, 1]), 1),
        lambda i: np.take_along_axis(TABLE, i[:, None], 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOK_UPS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_hot_look_ups_refuse_what_is_out_of_range(name, dtype, hot_at_once):
    f, expected = LOOK_UPS[name]
    x = tensor(TABLE, True)
    for i in range(12):
        indices = np.roll([0, 2, 1], i).astype(dtype)
        y = f(x, paddle.to_tensor(indices))
        np.testing.assert_array_equal(y.numpy(), expected(indices.astype("int64")))
        y.sum().backward()
    assert made_natively(y) == is_native()
    for wrong in ([0, 1, 7], [0, 1, -5]):
        with pytest.raises((IndexError, ValueError), match="index"):
            f(x, paddle.to_tensor(np.array(wrong, dtype)))


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss", "softmax_with_cross_entropy"])
def test_labels_that_are_no_class_are_refused_each_time(name, hot_at_once):
    """By numpy, by native code and where no gradient is recorded; the label that is ignored may be any number."""
    loss = getattr(paddle.nn.functional, name)
    shape = (4, 1) if name.startswith("softmax") else (4,)
    x = tensor(np.random.default_rng(3).standard_normal((4, 3)), True)
    good = paddle.to_tensor(np.array([0, 2, -100, 1]).reshape(shape))
    first = loss(x, good).numpy()
    for wrong in (3, -1):
        bad = paddle.to_tensor(np.array([0, 2, wrong, 1]).reshape(shape))
        for _ in range(6):
            np.testing.assert_allclose(loss(x, good).numpy(), first, rtol=1e-6)
            with pytest.raises(IndexError, match=f"{name}: index {wrong} is out of range; expected 0 to 2 .*, or -100"):
                loss(x, bad)
        other = paddle.where(bad == wrong, bad * 0 + 7, bad)
        assert np.isfinite(loss(x, other, ignore_index=7).numpy()).all()


STRIDED = {
    "columns": lambda x: x[:, 1:3],
    "every_other": lambda x: x[::2, ::2],
    "backwards": lambda x: x[::-1, ::-1],
    "turned": lambda x: x.t(),
    "one_column": lambda x: x[:, 2],
    "turned_columns": lambda x: x[1:, 1:3].t(),
    "repeated": lambda x: x[:1].expand([3, 6]),
    "higher": lambda x: x.reshape([2, 2, 3, 2]).transpose([2, 0, 3, 1])[:, :, 1:],
}
COMPUTED = {
    "sum": (lambda y: y.sum(0), lambda b: b.sum(0)),
    "itself": (lambda y: y + y, lambda b: b + b),
    "row": (lambda y: y - y[0], lambda b: b - b[0]),
    "flip": (lambda y: paddle.flip(y, [0]), lambda b: b[::-1]),
    "both": (lambda y: paddle.concat([y, y], 0), lambda b: np.concatenate([b, b])),
}


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("name", STRIDED)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool", "complex64", "float16"])
def test_operands_need_not_be_contiguous(name, dtype, hot_at_once):
    """Views that Python made, views that native code made, and those of which somebody has seen the array."""
    a = np.random.default_rng(11).integers(-9, 9, (4, 6)).astype(dtype)
    for computed, (f, expected) in COMPUTED.items():
        if dtype == "bool" and computed in ("sum", "itself", "row"):
            continue
        for i in range(16):
            y = STRIDED[name](paddle.to_tensor(a))
            if i % 4 == 3:
                y.numpy()
            got, wanted = f(y), expected(np.array(y.numpy(), copy=True))
            np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-3 if dtype == "float16" else 1e-6)
            np.testing.assert_array_equal(y.numpy(), STRIDED[name](paddle.to_tensor(a)).numpy())
        if is_native() and dtype == "float32":
            assert made_natively(got)


@pytest.mark.parametrize("name", STRIDED)
def test_gradients_through_operands_that_are_not_contiguous(name, hot_at_once):
    a = np.random.default_rng(12).standard_normal((4, 6)).astype("f4")
    for _ in range(12):
        x, plain = tensor(a, True), tensor(a, True)
        y, z = STRIDED[name](x), STRIDED[name](plain).contiguous()
        (paddle.exp(y) * y).sum().backward()
        (paddle.exp(z) * z).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), plain.grad.numpy(), rtol=1e-5)


def test_what_is_not_contiguous_may_be_the_target_of_what_it_gives(hot_at_once):
    for _ in range(12):
        x = tensor(np.arange(16).reshape(4, 4))
        x.add_(x.t())
        np.testing.assert_array_equal(x.numpy(), np.arange(16).reshape(4, 4) + np.arange(16).reshape(4, 4).T)


def test_python_s_operators_alone_enter_native_code_for_operands_of_two_shapes():
    """No sum of tensors of one shape has been there before: in a process of its own."""
    program = (
        "import numpy as np, argosy as P\n"
        "from argosy_phi_ops.eager import native, tiering\n"
        "tiering.BUDGET = 0\n"
        "x, y = P.ones([4, 3]), P.ones([1, 3])\n"
        "for f in (lambda: x - y, lambda: x / y, lambda: x * y, lambda: x + y):\n"
        "    for _ in range(12):\n"
        "        made = f()\n"
        "    assert native.status() != 'native' or made.payload._memory is not None\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_results_of_tens_of_kilobytes_are_made_natively_too(hot_at_once):
    """Up to 64 KB; what is larger is not, and all of it is right."""
    rng = np.random.default_rng(13)
    for shape in ((8, 3, 16, 16), (128, 128), (130, 128)):
        a, b = (rng.standard_normal(shape).astype("f4") for _ in range(2))
        for _ in range(12):
            x, y = tensor(a, True), tensor(b)
            made = paddle.clip(x * y - y[:1], -1.0, 1.0)
            np.testing.assert_allclose(made.numpy(), np.clip(a * b - b[:1], -1, 1), rtol=1e-5, atol=1e-6)
            made.sum().backward()
            inside = np.abs(a * b - b[:1]) < 1
            np.testing.assert_allclose(x.grad.numpy(), b * inside, rtol=1e-5)
        assert made_natively(made) == (is_native() and shape != (130, 128))


@pytest.mark.parametrize("index", [5, -6, 99])
def test_a_row_that_a_table_does_not_have_is_refused_cold_and_hot(index, hot_at_once):
    table, rows = tensor(np.ones((5, 4))), paddle.to_tensor([0, 4])
    for _ in range(9):
        with pytest.raises(ValueError, match=r"'padding_idx' must be within \[-5, 5\)"):
            paddle.nn.functional.embedding(rows, table, padding_idx=index)
