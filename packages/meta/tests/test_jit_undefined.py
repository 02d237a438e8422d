"""Variables that control flow on tensors sets on some ways only: Python's values, or an error of whole graphs."""

import ast

import numpy as np
import pytest

import argosy as paddle
from argosy.jit.conversion.liveness import live_after


def branch(x):
    if x.sum() > 100:
        z = x * 2
    return z


def in_a_list(x):
    out = [x]
    if x.sum() > 100:
        z = x * 2
    out.append(z)
    return out


def used(x):
    if x.sum() > 100:
        z = {"a": x * 2}
    return z["a"] + 1


def correlated(x):
    if x.sum() > 100:
        y = x + 1
    else:
        w = x * 3
    return w if x.sum() <= 100 else y


def last_step(x):
    while x.sum() < 200:
        last = x
        x = x * 2
    return last


def best_step(x):
    for i in range(x.sum().astype("int64") // 50):
        if x.max() + i > 8:
            best = x + i
    return best


def best_row(x):
    for row in x:
        if row.max() > 8:
            best = row
    return best


def left_early(x):
    for i in range(3):
        if x.sum() > 100 + i:
            break
        k = x + i
    return k


def found_by_break(x):
    n = 0
    while n < x.sum():
        n = n + 30
        if n > 50:
            found = x * n
            break
    return found


def loop_variable(x):
    for i in range(x.sum().astype("int64") // 50):
        x = x + i
    return x * i


def inner_function(x):
    if x.sum() > 100:
        z = x

    def double():
        return z * 2

    return double()


def within_no_grad(x):
    with paddle.no_grad():
        if x.sum() > 100:
            z = x * 2
        y = z + 1
    return y


READ = [
    branch, in_a_list, used, correlated, last_step, best_step, best_row, left_early, found_by_break, loop_variable,
    inner_function, within_no_grad,
]  # fmt: skip


def temporary(x):
    for i in range(x.sum().astype("int64") // 10):
        t = x * i
        x = x + t
    t = x + 1
    return t


def set_again(x):
    if x.sum() > 100:
        z = x * 2
        x = z + 1
    z = x * 3
    return z


def read_in_a_branch(x):
    y = x
    for i in range(3):
        if x.sum() > 20 + i:
            k = x + i
            y = y + k
    return y


NOT_READ = [temporary, set_again, read_in_a_branch]


def _outcome(f, x):
    try:
        made = f(x)
    except NameError:
        return NameError
    return [np.asarray(t.numpy()) for t in (made if isinstance(made, list) else [made])]


def _agree(a, b):
    if a is NameError or b is NameError:
        return a is b
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("value", [3.0, 50.0])
@pytest.mark.parametrize("f", READ, ids=lambda f: f.__name__)
def test_where_the_graph_may_break_python_decides(f, value):
    """The value, or the NameError, is that of eager execution, in the first call and in later ones."""
    x = paddle.full([2, 3], value)
    expected = _outcome(f, x)
    run = paddle.jit.to_static(f, full_graph=False)
    for _ in range(3):
        assert _agree(_outcome(run, x), expected)


@pytest.mark.parametrize("f", READ, ids=lambda f: f.__name__)
def test_a_whole_graph_refuses_with_the_line(f):
    """full_graph=True names the variable and the line of the control flow that may not have set it."""
    first = f.__code__.co_firstlineno
    with pytest.raises(
        NameError, match=r"variable '\w+' is set .*test_jit_undefined.py:(\d+)\).*read after it"
    ) as info:
        paddle.jit.to_static(f, full_graph=True)(paddle.full([2, 3], 50.0))
    line = int(info.value.args[0].partition("undefined.py:")[2].partition(")")[0])
    assert first < line < first + 9


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("f", NOT_READ, ids=lambda f: f.__name__)
def test_what_is_not_read_needs_no_value(f, full_graph):
    """Temporary variables of branches and loops are captured without a break or an error."""
    run = paddle.jit.to_static(f, full_graph=full_graph)
    for value in (3.0, 50.0):
        x = paddle.full([2, 3], value)
        np.testing.assert_allclose(run(x).numpy(), f(x).numpy(), rtol=1e-5)
    assert len(run.compiled) == 1


LIVENESS = """
while a:
    b = c
    if b:
        d = e
        break
    else:
        continue
else:
    f = g
try:
    h = d
except ValueError:
    i = f
for j in k:
    d = j
d, l.m = d, 1
d += n
"""


def test_live_variables_follow_jumps_and_loops():
    """What may be read after a statement counts loops' next steps, both ends of jumps and handlers."""
    body = ast.parse(LIVENESS).body
    after = live_after(body, frozenset("d"), frozenset())
    assert [sorted(names) for names in after] == [
        ["ValueError", "d", "f", "k", "l", "n"],
        ["d", "k", "l", "n"],
        ["d", "l", "n"],
        ["d", "n"],
        ["d"],
    ]
    loop = body[0]
    inside = live_after(loop.body, frozenset("a"), frozenset("x"))
    assert sorted(inside[0]) == ["b", "e", "x"]
