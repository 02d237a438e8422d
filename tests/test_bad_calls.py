"""Operators, functions and layers called with one argument spoiled: refused in words for users, or computed.

The calls are the parity cases' (:mod:`parity.spoiled`): wrong dtypes, ranks, sizes, axes and types.
"""

from __future__ import annotations

import builtins
import re
import warnings
from functools import cache
from zlib import crc32

import numpy as np
import pytest
from parity.case import Case
from parity.cases import FAMILIES, cases_of
from parity.runner import _Run
from parity.spoiled import spoiled

import argosy as paddle

INSIDES = (
    "object has no attribute", "unsupported operand", "object is not", "not supported between", "invalid literal",
    "values to unpack", "must be real number", "cannot be interpreted", "could not convert", "zip()",
    "indices must be", "math domain", "generator raised",
)  # fmt: skip
KINDS = ("call", "layer", "optimizer", "schedule", "shape_of")
DIVISOR = 8
"""One spoiled call in so many is made; which ones is fixed by their text."""


@cache
def calls() -> tuple[tuple[str, Case], ...]:
    """The spoiled calls: of each target with each set of keywords the first case."""
    seen = set()
    found = []
    for family in FAMILIES:
        for case in cases_of(family):
            key = (case.kind, case.target, tuple(case.kwargs), len(case.args))
            if case.kind in KINDS and key not in seen:
                seen.add(key)
                found += [(how, bad) for how, bad in spoiled(case) if crc32(f"{how} {bad.id}".encode()) % DIVISOR == 0]
    return tuple(found)


EXPECTED = (
    "should", "must", "expected", "expects", "takes", "needs", "does not", "do not", "cannot", " not ", " is no ",
    "out of range", "only", "none of", "at most", "at least", "divisible", "differ", "unknown; there are", "are wanted",
    "missing", "unexpected", "positive", "one of", "alike", "are integers", "are float", "fits", "fit ", "repeat",
    "more", "for each", "describes", ", got ", "has no ", " may ", "out of bounds",
)  # fmt: skip
SHARE = 0.99
"""How many of the errors should tell all three: which argument, what came, what was expected. What is missing as a
whole (``NotImplementedError``) is no matter of arguments."""


def tells(error: Exception) -> bool:
    """Whether an error names an argument, shows what came, and says in words what was expected."""
    if isinstance(error, NotImplementedError):
        return True
    text = str(error)
    given = "[given " in text or "cannot take these arguments: " in text
    named = given or re.search(r"arguments?[ ,]|cannot be indexed|cannot make a tensor", text) is not None
    came = given or re.search("got |cannot be indexed by |cannot make a tensor of ", text) is not None
    return named and came and any(word in text.partition(" [given ")[0] for word in EXPECTED)


def refused(how: str, bad: Case) -> Exception | None:
    """What a spoiled call raises; None where it is computed, or where a method's tensor is none."""
    if bad.target.startswith("Tensor.") and how in ("args[0] is None", "args[0] is text"):
        return None  # methods are called on tensors
    try:
        getattr(_Run(paddle), bad.kind)(bad)
    except Exception as error:  # noqa: BLE001 (which is the question)
        return error
    return None


def complaint(error: Exception) -> str:
    """What is wrong with an error; empty where nothing is."""
    text, kind = str(error), type(error)
    if not isinstance(error, (ValueError, TypeError, IndexError, NotImplementedError, RuntimeError, MemoryError)):
        return f"{kind.__name__}: {text}"
    if kind.__module__.partition(".")[0] not in (builtins.__name__, "numpy"):
        return ""  # those of argosy name the operator, its operands and its attributes
    if kind in (IndexError, RuntimeError) and "argument" not in text and ":" not in text:
        return f"{kind.__name__}: {text}"
    inside = any(part in text for part in INSIDES) and "(): " not in text
    return f"from inside: {text}" if inside else ""


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("quick_code")
def test_what_is_refused_is_refused_in_words_for_users(part):
    """No error of a spoiled call is one of Python's or numpy's insides, and all but a few tell the argument, what came
    and what was expected. ``python tests/test_bad_calls.py`` counts those of all calls."""
    with np.errstate(all="ignore"):
        found = [(how, bad.id, refused(how, bad)) for how, bad in calls()[part::4]]
    errors = [(f"{call} ({how})", error) for how, call, error in found if error is not None]
    assert [f"{call}: {wrong}" for call, error in errors if (wrong := complaint(error))] == []
    silent = sorted({str(error)[:120] for _, error in errors if not tells(error)})
    assert sum(tells(error) for _, error in errors) >= SHARE * len(errors), silent


INDICES = {
    "gather": lambda x, i: paddle.gather(x, i),
    "index_select": lambda x, i: paddle.index_select(x, i, 1),
    "gather_nd": lambda x, i: paddle.gather_nd(x, i.reshape([-1, 1])),
    "take_along_axis": lambda x, i: paddle.take_along_axis(x, i.reshape([1, -1]), 1, False),
    "put_along_axis": lambda x, i: paddle.put_along_axis(x, i.reshape([1, -1]), 1.0, 1, broadcast=False),
    "scatter": lambda x, i: paddle.scatter(x, i, x[: i.shape[0]]),
    "index_add": lambda x, i: paddle.index_add(x, i, 0, x[: i.shape[0]]),
    "index_fill": lambda x, i: paddle.index_fill(x, i, 0, 1.0),
    "take": lambda x, i: paddle.take(x, i * 5),
    "one_hot": lambda x, i: paddle.nn.functional.one_hot(i.abs(), 2),
    "embedding": lambda x, i: paddle.nn.functional.embedding(i.abs(), x),
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("wrong", [4, -5])
def test_indices_out_of_range_are_refused(name, wrong):
    """Eager execution raises an IndexError that tells the index and the axis; those in range are taken each time."""
    x = paddle.ones([4, 4])
    for _ in range(2):
        if name != "one_hot":
            INDICES[name](x, paddle.to_tensor([0, 3]))
        with pytest.raises(IndexError, match=r"out of range|indices"):
            INDICES[name](x, paddle.to_tensor([0, wrong]))


HUGE = {
    "zeros": lambda: paddle.zeros([10**18]),
    "full": lambda: paddle.full([10**6, 10**6], 1.0),
    "rand": lambda: paddle.rand([10**6, 10**6]),
    "tile": lambda: paddle.tile(paddle.ones([2, 3]), [10**6, 10**6]),
    "repeat_interleave": lambda: paddle.repeat_interleave(paddle.ones([2, 3]), 10**12, 0),
    "pad": lambda: paddle.nn.functional.pad(paddle.ones([1, 1, 4, 4]), [10**6] * 4),
    "conv2d": lambda: paddle.nn.functional.conv2d(*(paddle.ones([1, 1, 3, 3]),) * 2, padding=10**6),
    "conv3d_transpose": lambda: paddle.nn.functional.conv3d_transpose(
        *(paddle.ones([4, 4, 3, 3, 3]),) * 2, stride=9999
    ),
    "one_hot": lambda: paddle.nn.functional.one_hot(paddle.arange(1000), 10**12),
    "outer": lambda: paddle.outer(paddle.ones([10**6]), paddle.ones([10**6])),
}


@pytest.mark.parametrize("name", HUGE)
def test_results_beyond_memory_are_refused_before_they_are_made(name):
    """A MemoryError that is a ValueError, too, names the operator, the shape and both sizes."""
    with pytest.raises(
        MemoryError, match=rf"^{name}: a result of shape .* takes [\d,.]+ GiB; [\d,.]+ GiB are free"
    ) as info:
        HUGE[name]()
    assert isinstance(info.value, ValueError)


def count() -> None:
    """Print how many of all spoiled calls are refused, and how many of the errors tell what they should."""
    global DIVISOR
    DIVISOR = 1
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        made = len(calls())
        found = [error for how, bad in calls() if (error := refused(how, bad)) is not None]
    told = sum(map(tells, found))
    print(f"{made} spoiled calls, {len(found)} refused; {told} errors tell all ({told / len(found):.1%})")  # noqa: T201


if __name__ == "__main__":
    count()
