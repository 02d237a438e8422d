"""Calls that make tensors out of nothing, out of random numbers, or several at once: the short way and native code give
what the long way gives. Where there is no native build, the same tests run on the plain one.
"""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
from eager_helpers import is_native, made_natively, tensor

import argosy as paddle
from argosy_phi_ops.context import context
from argosy_tensorcore.rng import Generator

pytestmark = pytest.mark.usefixtures("quick_code")

MADE = {
    "zeros": (lambda: paddle.zeros([2, 3]), np.zeros((2, 3), "f4")),
    "ones": (lambda: paddle.ones([4], "int32"), np.ones(4, "i4")),
    "full": (lambda: paddle.full([2], 1.5, dtype="float64"), np.full(2, 1.5)),
    "negative_zero": (lambda: paddle.full([2], -0.0), np.full(2, -0.0, "f4")),
    "zero": (lambda: paddle.full([2], 0.0), np.full(2, 0.0, "f4")),
    "arange": (lambda: paddle.arange(1, 7, 2), np.arange(1, 7, 2)),
    "linspace": (lambda: paddle.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype="f4")),
    "eye": (lambda: paddle.eye(3), np.eye(3, dtype="f4")),
}


@pytest.mark.parametrize("name", MADE)
def test_tensors_out_of_nothing_are_made_anew_each_time(name, hot_at_once):
    made, expected = MADE[name]
    for i in range(12):
        x = made()
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)
        assert x.numpy().dtype == expected.dtype
        assert x.stop_gradient
        np.testing.assert_array_equal(np.signbit(x.numpy()), np.signbit(expected))
        if i > 8 and is_native():
            assert made_natively(x)
        x[...] = 7  # what comes next does not see this


def test_the_default_dtype_is_followed_by_what_is_made(hot_at_once):
    for _ in range(9):
        assert (paddle.zeros([2]).dtype, paddle.rand([2]).dtype) == (paddle.float32, paddle.float32)
    paddle.set_default_dtype("float64")
    try:
        assert (paddle.zeros([2]).dtype, paddle.rand([2]).dtype) == (paddle.float64, paddle.float64)
    finally:
        paddle.set_default_dtype("float32")


DRAWN = {
    "rand": lambda i: paddle.rand([3, 5]),
    "randn": lambda i: paddle.randn([7]),
    "uniform": lambda i: paddle.uniform([4], min=-1.0, max=[1.0, 2.0][i % 2]),
    "uniform_from_zero": lambda i: paddle.uniform([4], min=0.0, max=1.0),
    "normal": lambda i: paddle.normal([0.0, 1.5][i % 2], 2.0, [6]),
    "randint": lambda i: paddle.randint(0, 10, [4]),
    "randperm": lambda i: paddle.randperm(6),
    "bernoulli": lambda i: paddle.bernoulli(paddle.full([5], 0.5)),
    "dropout": lambda i: paddle.nn.functional.dropout(paddle.ones([9]), 0.5),
    "seeded": lambda i: paddle.uniform([3], seed=5),
}


@pytest.mark.parametrize("name", DRAWN)
def test_draws_are_those_of_plain_execution_in_the_same_order(name, hot_at_once, monkeypatch):
    """Native code counts draws in the generator itself, between those that others make."""
    draw = DRAWN[name]

    def sequence() -> list[np.ndarray]:
        paddle.seed(11)
        found = []
        for i in range(24):
            found += [draw(i).numpy(), paddle.randn([1], dtype="float64").numpy()]
        return found

    hot = sequence()
    assert context().generator.offset == 48
    monkeypatch.setenv("ARGOSY_EAGER", "plain")
    from argosy_phi_ops.eager import table

    table.forget()
    for a, b in zip(hot, sequence(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_native_draws_follow_the_generator(hot_at_once):
    """Another generator, and one whose state is a tensor."""
    ours = context().generator
    try:
        context().generator = first_of_all = Generator(3)
        for _ in range(12):
            natively = paddle.rand([3])
        assert made_natively(natively) or not is_native()
        context().generator = Generator(5)
        first = [paddle.rand([3]).numpy() for _ in range(3)]
        assert context().generator.offset == 3
        context().generator = Generator(5)
        for a in first:
            np.testing.assert_array_equal(paddle.rand([3]).numpy(), a)
        context().generator = first_of_all
        state = first_of_all.state
        before, version = int(state.numpy()[1]), state.inplace_version
        paddle.rand([3])
        assert (int(state.numpy()[1]), state.inplace_version) == (before + 1, version + 1)
    finally:
        context().generator = ours


def test_dropout_that_is_recorded_keeps_its_mask(hot_at_once):
    for _ in range(9):
        x = tensor(np.ones(50), True)
        y = paddle.nn.functional.dropout(x, 0.5)
        y.sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), y.numpy())


def copied(parts):
    return [part.copy() for part in parts]


SEVERAL = {
    "split": (lambda x: paddle.split(x, 2, axis=1), lambda a: copied(np.split(a, 2, 1))),
    "split_sizes": (lambda x: paddle.split(x, [1, 3]), lambda a: copied(np.split(a, [1]))),
    "chunk": (lambda x: paddle.chunk(x, 2), lambda a: copied(np.split(a, 2))),
    "chunk_unevenly": (lambda x: paddle.chunk(x, 3, 1), lambda a: copied(np.split(a, [2], 1))),
    "unbind": (lambda x: x.unbind(1), lambda a: [a[:, i] for i in range(4)]),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_results_at_once(name, hot_at_once):
    """Parts are copies as in Paddle, but for those of unbind, which are views."""
    f, expected = SEVERAL[name]
    views = name == "unbind"
    a = np.random.default_rng(2).standard_normal((4, 4)).astype("f4")
    for _ in range(6):
        x = tensor(a)
        parts = f(x)
        for part, wanted in zip(parts, expected(a), strict=True):
            np.testing.assert_array_equal(part.numpy(), wanted)
            assert part.stop_gradient
            assert part.payload.contiguous == wanted.flags.c_contiguous
        changed = a.copy()
        expected(changed)[0][...] += 1
        parts[0].add_(paddle.ones_like(parts[0]))
        np.testing.assert_array_equal(x.numpy(), changed)
        assert x.inplace_version == parts[1].inplace_version == views
        for part, wanted in zip(f(tensor(a.T.copy()).t()), expected(a), strict=True):  # strided
            np.testing.assert_array_equal(part.numpy(), wanted)
        y = tensor(a, True)
        sum((part * part).sum() * i for i, part in enumerate(f(y + 0.0))).backward()
        places = expected(np.arange(a.size).reshape(a.shape))
        gradient = np.zeros_like(a)
        for i, (part, place) in enumerate(zip(expected(a), places, strict=True)):
            gradient.flat[place] = 2 * i * part
        np.testing.assert_allclose(y.grad.numpy(), gradient, rtol=1e-6)


SEVERAL_KINDS = {
    "topk": lambda x, axis: paddle.topk(x, 2, axis),
    "smallest": lambda x, axis: paddle.topk(x, 1, axis, largest=False),
    "kthvalue": lambda x, axis: paddle.kthvalue(x, 2, axis),
    "mode": lambda x, axis: paddle.mode(x, axis),
    "cummax": lambda x, axis: paddle.cummax(x, axis),
    "split": lambda x, axis: paddle.split(x, [1, -1], axis),
    "chunk": lambda x, axis: paddle.chunk(x, 2, axis),
    "unbind": lambda x, axis: paddle.unbind(x, axis),
    "unstack": lambda x, axis: paddle.unstack(x, axis),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("name", SEVERAL_KINDS)
def test_hot_calls_with_several_results_are_those_of_plain_execution(name, dtype, hot_at_once):
    """The first calls are computed by numpy, the later ones natively, of contiguous operands and of others."""
    f = SEVERAL_KINDS[name]
    rng = np.random.default_rng(5)
    for shape, axis in (((4, 3), 0), ((4, 3), -1), ((2, 3, 4), 1)):
        arrays = [(rng.standard_normal(shape) * 9).astype(dtype) for _ in range(3)]
        plain: list[list[np.ndarray]] = []
        for i in range(12):
            a = arrays[i % 3]
            x = tensor(a, dtype=dtype) if i % 2 else tensor(a.T.copy(), dtype=dtype).transpose([*range(a.ndim)][::-1])
            made = f(x, axis)
            found = [y.numpy() for y in made]
            if i < 3:
                plain.append(found)
            for y, mine, wanted in zip(made, found, plain[i % 3], strict=True):
                np.testing.assert_array_equal(mine, wanted)
                assert (mine.dtype, mine.shape, y.shape) == (wanted.dtype, wanted.shape, list(wanted.shape))
                assert y.stop_gradient
                assert y.is_leaf
            del made, x
            made = f(tensor(a, dtype=dtype) + tensor(a * 0, dtype=dtype), axis)
            for y, wanted in zip(made, plain[i % 3], strict=True):
                np.testing.assert_array_equal(y.numpy(), wanted)  # which outlive what they show


def test_several_results_are_made_natively_where_nothing_is_recorded(hot_at_once):
    x, v = tensor(np.arange(12).reshape(4, 3)), tensor(np.arange(12).reshape(4, 3), True)
    for _ in range(9):
        values, places = paddle.topk(x, 2)
        recorded, _ = paddle.topk(v, 2)
    assert made_natively(values) == made_natively(places) == is_native()
    assert recorded._node is not None
    with paddle.no_grad():
        assert paddle.topk(v, 2)[0].stop_gradient
    gc.collect()
    watched = (x.payload.array_type, places.payload.array_type, paddle.Tensor, x, None, True, values.payload.shape)
    before = [sys.getrefcount(w) for w in watched]
    for _ in range(1000):
        paddle.topk(x, 2)
        paddle.unbind(x)
        paddle.split(x, 2)
    gc.collect()
    after = [sys.getrefcount(w) for w in watched]
    assert all(abs(b - a) < 250 for a, b in zip(before, after, strict=True)), (before, after)


def test_recipes_of_several_results_tell_wanted_gradients_apart():
    """Normalisation of a batch, some operands of which want gradients; its running statistics want none."""
    a = np.random.default_rng(2).standard_normal((6, 3)).astype("f4")
    expected: dict[tuple[bool, ...], list[np.ndarray]] = {}
    for _ in range(4):
        for wants in ((True, False), (False, True), (True, True), (False, False)):
            x, w = tensor(a, wants[0]), tensor(np.arange(1, 4), wants[1])
            mean, variance = tensor(np.zeros(3)), tensor(np.ones(3))
            y = paddle.nn.functional.batch_norm(x, mean, variance, w, training=True)
            assert y.stop_gradient == (not any(wants))
            assert (mean.stop_gradient, mean.is_leaf, mean.inplace_version) == (True, True, 1)
            np.testing.assert_allclose(mean.numpy(), 0.1 * a.mean(0), rtol=1e-5, atol=1e-7)
            if any(wants):
                (y * y * tensor(a)).sum().backward()
            found = [t.grad.numpy() for t, want in zip((x, w), wants, strict=True) if want]
            assert all((t.grad is not None) == want for t, want in zip((x, w), wants, strict=True))
            for old, new in zip(expected.setdefault(wants, found), found, strict=True):
                np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(expected[True, True][0], expected[True, False][0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(expected[True, True][1], expected[False, True][0], rtol=1e-5, atol=1e-6)


def test_several_results_are_compiled_when_they_are_hot(hot_at_once):
    a = np.random.default_rng(3).standard_normal((4, 6)).astype("f4")
    order = np.argsort(-a, 1, kind="stable")[:, :2]
    for _ in range(9):
        values, places = paddle.topk(tensor(a), 2)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(a, order, 1))
        np.testing.assert_array_equal(places.numpy(), order)
        x = tensor(a, True)
        paddle.topk(x, 2)[0].sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.isin(np.arange(6), order).reshape(1, 6) * 0 + _chosen(order))


def _chosen(order: np.ndarray) -> np.ndarray:
    chosen = np.zeros((4, 6), "f4")
    np.put_along_axis(chosen, order, 1, 1)
    return chosen


COPIED = {
    "tile": (lambda x: paddle.tile(x, [2, 1]), lambda a: np.tile(a, (2, 1))),
    "expand": (lambda x: paddle.expand(x, [3, 4, 4]), lambda a: np.broadcast_to(a, (3, 4, 4))),
    "expand_as_it_is": (lambda x: paddle.expand(x, [4, 4]), lambda a: a),
    "flip": (lambda x: paddle.flip(x, [0]), lambda a: a[::-1]),
    "rot90": (lambda x: paddle.rot90(x), lambda a: np.rot90(a)),
}


@pytest.mark.parametrize("name", COPIED)
def test_hot_copies_have_memory_of_their_own(name, hot_at_once):
    f, expected = COPIED[name]
    a = np.random.default_rng(2).standard_normal((4, 4)).astype("f4")
    for _ in range(12):
        x = tensor(a)
        y = f(x)
        np.testing.assert_array_equal(y.numpy(), expected(a))
        y[...] = 0
        np.testing.assert_array_equal(x.numpy(), a)
        z = tensor(a, True)
        (f(z) * tensor(expected(a))).sum().backward()
        assert z.grad.numpy().shape == a.shape


def test_hot_numbers_beside_masks(hot_at_once):
    a = np.random.default_rng(2).standard_normal((3, 4)).astype("f4")
    for i in range(16):
        value = [0.0, -2.5][i % 2]
        y = paddle.masked_fill(tensor(a), tensor(a, dtype="bool") & (tensor(a) > 0), value)
        np.testing.assert_array_equal(y.numpy(), np.where(a > 0, np.float32(value), a))


@pytest.mark.parametrize("wants", [False, True])
def test_hot_indices_in_tensors_are_looked_at(wants, hot_at_once):
    a = np.random.default_rng(2).standard_normal((4, 3)).astype("f4")
    index = np.array([0, -1, 2])
    for _ in range(12):
        x = tensor(a, wants)
        y = x[paddle.to_tensor(index)]
        np.testing.assert_array_equal(y.numpy(), a[index])
        if wants:
            y.sum().backward()
            np.testing.assert_array_equal(x.grad.numpy(), [[1] * 3, [0] * 3, [1] * 3, [1] * 3])
        y = None if wants else y.zero_()
        np.testing.assert_array_equal(x.numpy(), a)
        with pytest.raises(IndexError):
            x[paddle.to_tensor([0, 4, 1])]
        with pytest.raises(IndexError):
            x[paddle.to_tensor([0, 1, -5])]


def test_masks_read_what_they_hold():
    a = np.arange(12, dtype="f4").reshape(3, 4)
    for mask in (a > 5, a > 100, a[:, 0] > 3):
        np.testing.assert_array_equal(tensor(a)[paddle.to_tensor(mask)].numpy(), a[mask])
        x = tensor(a, True)
        x[paddle.to_tensor(mask)].sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.broadcast_to(mask.reshape(3, -1), a.shape))


@pytest.mark.parametrize("shape", [(2,), (4, 5), (5,)])
def test_masks_of_other_sizes_are_refused(shape):
    """Paddle raises IndexError, too; reading and writing, in a tensor or an array, anywhere in the index."""
    x, mask = paddle.ones([4, 3, 5]), np.ones(shape, bool)
    for index in (mask, paddle.to_tensor(mask), (slice(None), mask), (..., mask[..., :4]), (None, mask)):
        with pytest.raises(IndexError, match=r"a mask of shape \[.*\] cannot choose from axes \d to \d"):
            x[index]
        with pytest.raises(IndexError, match=r"mask"):
            x[index] = 1.0 if isinstance(index, tuple) else paddle.ones([3])
    assert x[..., np.ones(5, bool), None].shape == [4, 3, 5, 1]
    assert x[:, np.ones((3, 5), bool)].shape == [4, 15]


def test_filling_counts_as_a_write():
    x = tensor(np.ones(3))
    assert x.zero_() is x
    np.testing.assert_array_equal(x.fill_(2.5).numpy(), [2.5] * 3)
    assert x.inplace_version == 2
    y = tensor(np.ones(3), True) * 2
    y.zero_()
    y.sum().backward()  # zero, not missing
    with pytest.raises(ValueError, match="leaf"):
        tensor(np.ones(3), True).zero_()


def test_tensors_in_a_row_stand_for_a_list(hot_at_once):
    """``einsum`` takes its operands so, and calls of either kind are hot."""
    a, b = (np.random.default_rng(i).standard_normal((3, 3)).astype("f4") for i in range(2))
    for i in range(12):
        x, y = tensor(a, i % 3 == 2), tensor(b)
        for z in (paddle.einsum("ij,jk->ik", x, y), paddle.einsum("ij,jk->ik", [x, y])):
            np.testing.assert_allclose(z.numpy(), a @ b, rtol=1e-5)
        np.testing.assert_allclose(paddle.einsum("ij,kj->ik", x, y).numpy(), a @ b.T, rtol=1e-5)
        np.testing.assert_allclose(paddle.einsum("ij->j", x).numpy(), a.sum(0), rtol=1e-5)
        if i > 8 and is_native():
            assert made_natively(paddle.einsum("ij,jk->ik", x, y))
        with pytest.raises(ValueError, match="einsum"):
            paddle.einsum("ij,jk->ik", x, tensor(np.ones((4, 3))))
