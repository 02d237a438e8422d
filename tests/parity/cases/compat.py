"""Functions and layers of ``paddle.compat``."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call, layer, state
from parity.inputs import given
from parity.inputs import tensor as t


def cases() -> Iterator[Case]:
    yield from _extremes()
    yield from _order()
    yield from _functional()
    yield from _layers()


def _extremes() -> Iterator[Case]:
    for name in ("compat.max", "compat.min"):
        yield call(name, t(2, 3, 4))
        yield call(name, t(2, 3), t(2, 3))
        yield call(name, t(2, 3), other=t(2, 3))
        for dim in (0, 1, -1):
            yield call(name, t(2, 3, 4), dim)
            yield call(name, t(2, 3, 4), dim, True)
            yield call(name, t(2, 3, 4), dim=dim, keepdim=True)
        yield call(name, t(), 0)
        yield call(name, t(2, 3), keepdim=True)
        yield call(name, t(2, 3), None)
        yield call(name, t(2, 3), 1.5)
        yield call(name, x=t(2, 3))
    for name in ("compat.median", "compat.nanmedian"):
        yield call(name, t(2, 4))
        yield call(name, t(3, 4), 1)
        yield call(name, t(3, 4), dim=0, keepdim=True)
        yield call(name, x=t(3, 4))
    yield call("compat.nanmedian", given([[1.0, float("nan"), 0.5], [2.0, 3.0, 4.0]]), 1)


def _order() -> Iterator[Case]:
    for dim in (0, -1):
        yield call("compat.sort", t(3, 4), dim)
        yield call("compat.sort", t(3, 4), dim=dim, descending=True, stable=True)
    yield call("compat.unique", given([3, 1, 3, 2], "int64"))
    yield call("compat.unique", given([3, 1, 3, 2], "int64"), return_inverse=True, return_counts=True)
    yield call("compat.unique", given([[3, 1], [3, 1]], "int64"), dim=0)
    for sizes in (2, 3, 5, [1, 4], [5, 0]):
        yield call("compat.split", t(5, 2), sizes)
    yield call("compat.split", t(2, 6), 4, dim=1)
    yield call("compat.split", t(2, 6), 4, -1)
    yield call("compat.split", t(2, 6), 0)
    yield call("compat.split", t(2, 6), [-1, 3])
    yield call("compat.slogdet", t(3, 3))
    yield call("compat.slogdet", t(2, 3, 3, dtype="float64"))
    yield call("compat.equal", t(2, 3), t(2, 3))
    yield call("compat.equal", given([1, 2], "int64"), given([1.0, 2.0]))
    yield call("compat.equal", given([1, 2], "int64"), given([1, 2], "int64"))


def _functional() -> Iterator[Case]:
    owner = "compat.nn.functional."
    yield call(f"{owner}linear", t(2, 3), t(4, 3))
    yield call(f"{owner}linear", t(2, 5, 3), t(4, 3), t(4))
    yield call(f"{owner}unfold", t(1, 2, 4, 4), 2)
    yield call(f"{owner}unfold", t(1, 2, 4, 5), (2, 3), padding=1, stride=2)
    yield call(f"{owner}pad", t(2, 3), [1, 2])
    yield call(f"{owner}pad", t(2, 3), [1, 2, 0, 1], value=1.5)
    yield call(f"{owner}pad", t(2, 3, 4, 5), [1, 2, 0, 1])
    yield call(f"{owner}pad", t(2, 3, 4, 5), [1, 2, 0, 1, 1, 0])
    yield call(f"{owner}pad", t(2, 3), [1])
    yield call(f"{owner}pad", t(2, 3), [1, 1], mode="mirror")
    for mode in ("reflect", "replicate", "circular"):
        yield call(f"{owner}pad", t(2, 4), [1, 2], mode=mode)
        yield call(f"{owner}pad", t(2, 3, 4), [1, 2], mode=mode)
        yield call(f"{owner}pad", t(2, 3, 4, 5), [1, 2, 0, 1], mode=mode)
        yield call(f"{owner}pad", t(4), [1, 1], mode=mode)


def _layers() -> Iterator[Case]:
    owner = "compat.nn."
    yield layer(f"{owner}AvgPool1D", t(1, 2, 6), kernel_size=3, padding=1)
    for include in (True, False):
        yield layer(f"{owner}AvgPool2D", t(1, 2, 6, 5), kernel_size=3, stride=2, padding=1, count_include_pad=include)
    yield layer(f"{owner}AvgPool2D", t(1, 2, 6, 5), kernel_size=2, divisor_override=3, ceil_mode=True)
    yield layer(f"{owner}AvgPool3D", t(1, 2, 4, 6, 5), kernel_size=2)
    yield layer(f"{owner}Unfold", t(1, 2, 4, 5), kernel_size=2, dilation=1, padding=1, stride=2)
    yield layer(f"{owner}Linear", t(2, 3), in_features=3, out_features=4)
    yield layer(f"{owner}Linear", t(2, 3), in_features=3, out_features=4, bias=False)
    for dim in (None, 0, 1):
        yield layer(f"{owner}Softmax", t(2, 3), dim=dim)
    sizes = {"embed_dim": 8, "num_heads": 2}
    q, kv = t(4, 3, 8), t(5, 3, 8)
    late = given([[False] * 5, [True] * 3 + [False] * 2] * 2, "bool")
    owner += "MultiheadAttention"
    yield layer(owner, q, kv, kv, **sizes)
    yield layer(owner, q, kv, kv, **sizes, bias=False, add_bias_kv=True, add_zero_attn=True)
    yield layer(owner, t(3, 4, 8), t(3, 5, 6), t(3, 5, 7), **sizes, kdim=6, vdim=7, batch_first=True)
    yield layer(owner, t(4, 8), t(5, 8), t(5, 8), **sizes, batch_first=True)
    padding = given([[False] * 5, [False] * 3 + [True] * 2, [True] + [False] * 4], "bool")
    yield layer(owner, q, kv, kv, padding, True, late, False, **sizes)
    yield layer(owner, q, kv, kv, padding, False, t(6, 4, 5), **sizes, add_zero_attn=True)
    yield layer(owner, q, kv, kv, None, False, None, True, True, **sizes)
    yield layer(owner, q, kv, kv, None, True, None, True, True, **sizes)
    yield state(owner, **sizes, add_bias_kv=True)
    yield state(owner, **sizes, kdim=6, vdim=7)
