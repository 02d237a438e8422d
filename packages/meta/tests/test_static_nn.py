"""cond, while_loop, case and switch_case: the same eagerly and captured."""

import numpy as np
import pytest

import argosy as paddle

snn = paddle.static.nn


def _t(*values):
    return paddle.to_tensor(np.array(values, np.float32))


def _conditional(x):
    return snn.cond(x.sum() > 0, lambda: (x * 2, x), lambda: (x - 1, x * 0))


def _loop(x):
    i, total = snn.while_loop(lambda i, s: i < 3, lambda i, s: [i + 1, s * 2], [paddle.to_tensor(0), x])
    return total, i


def _cases(x):
    pairs = [(x.max() < 0, lambda: x * 3), (x.max() < 2, lambda: x + 1)]
    return (snn.case(pairs, default=lambda: -x),)


def _switch(x):
    return (snn.switch_case(x.sum().astype("int64"), {1: lambda: x * 2, 3: lambda: x * 5}, lambda: x),)


@pytest.mark.parametrize("function", [_conditional, _loop, _cases, _switch])
def test_captured_is_eager(function):
    """One program gives what eager execution gives, for every way through it."""
    captured = paddle.jit.to_static(function, full_graph=True, backend="reference")
    with paddle.jit.count_compiles() as count:
        for x in (_t(1, 2), _t(-1, -2), _t(0, 1), _t(5, -2)):
            for made, expected in zip(captured(x), function(x), strict=True):
                np.testing.assert_allclose(made.numpy(), expected.numpy())
    assert count.value == 1


def test_wrong_arguments_are_named():
    """What is no function, no list, or of another length is refused by name."""
    with pytest.raises(TypeError, match="true_fn is a function"):
        snn.cond(_t(1) > 0, 3)
    with pytest.raises(ValueError, match="loop_vars is empty"):
        snn.while_loop(lambda: True, lambda: [], [])
    with pytest.raises(ValueError, match="gives 2 values for 1"):
        snn.while_loop(lambda x: x.sum() < 3, lambda x: [x, x], [_t(1)])
    with pytest.raises(TypeError, match="pred_fn_pairs"):
        snn.case([3])
    with pytest.raises(TypeError, match="integers"):
        snn.switch_case(_t(1), {"a": lambda: 1})
