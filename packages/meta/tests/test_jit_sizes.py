"""Tensors made of sizes (``paddle.shape(x)[0]``) where operators take sizes, captured with known and open sizes."""

import numpy as np
import pytest

import argosy as paddle


def _rows(x):
    return paddle.shape(x)[0]


FUNCTIONS = {
    "reshape": lambda x: paddle.reshape(x, [_rows(x), 2, 2]),
    "product": lambda x: x.reshape([_rows(x) * paddle.shape(x)[1]]),
    "zeros": lambda x: paddle.zeros([_rows(x), 3]) + x[:, :3],
    "full": lambda x: paddle.full([_rows(x) + 1, 1], 2.0),
    "expand": lambda x: paddle.expand(x.sum(keepdim=True), [_rows(x), 5]),
    "whole shape": lambda x: paddle.ones(paddle.shape(x)) + x,
    "arange": lambda x: paddle.arange(_rows(x)),
    "tile": lambda x: paddle.tile(x.sum(0, keepdim=True), [_rows(x), 1]),
    "slice": lambda x: x[: _rows(x) - 1],
    "half": lambda x: x[_rows(x) // 2 :],
    "python": lambda x: x * int(paddle.shape(x)[1]),
    "values": lambda x: (paddle.shape(x) * 2).astype("float32"),
    "cast": lambda x: paddle.zeros([paddle.shape(x).astype("int32")[0]]),
    "numel": lambda x: x.reshape([paddle.shape(x).prod()]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_of_tensors_are_sizes(name):
    """What is captured gives what eager execution gives: one program for all sizes where a spec leaves them open."""
    function = FUNCTIONS[name]
    fixed = paddle.jit.to_static(function, full_graph=True, backend="reference")
    spec = [paddle.static.InputSpec([None, 4], "float32")]
    open_sizes = paddle.jit.to_static(function, input_spec=spec, full_graph=True, backend="reference")
    for n in (2, 5):
        x = paddle.to_tensor(np.arange(4.0 * n, dtype=np.float32).reshape(n, 4))
        expected = function(x)
        for captured in (fixed, open_sizes):
            made = captured(x)
            assert made.dtype == expected.dtype
            np.testing.assert_array_equal(made.numpy(), expected.numpy())
    assert len(open_sizes.compiled) == 1


def test_what_depends_on_elements_is_no_size():
    """A size that is computed from elements cannot be known while capturing."""
    with pytest.raises(NotImplementedError, match="needs the value"):
        paddle.jit.to_static(lambda x: paddle.zeros([x.astype("int64").sum()]), full_graph=True)(paddle.ones([2]))


def test_open_sizes_that_are_one_are_repeated():
    """A call whose open sizes differ because one is 1 broadcasts; others that differ are refused by the operator."""
    spec = [paddle.static.InputSpec([None, None], "float32") for _ in range(2)]
    captured = paddle.jit.to_static(lambda a, b: a * b + b, input_spec=spec, full_graph=True, backend="reference")
    shapes = [((4, 3), (4, 3)), ((4, 3), (1, 3)), ((5, 2), (1, 2)), ((1, 3), (4, 1)), ((1, 1), (1, 1))]
    for first, second in shapes:
        a, b = (paddle.to_tensor(np.random.default_rng(0).random(s, np.float32)) for s in (first, second))
        np.testing.assert_allclose(captured(a, b).numpy(), a.numpy() * b.numpy() + b.numpy(), rtol=1e-6)
    assert len(captured.compiled) == 3
    with pytest.raises(ValueError, match="do not broadcast"):
        captured(paddle.ones([4, 3]), paddle.ones([2, 3]))
