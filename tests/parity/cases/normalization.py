"""Normalisations."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import tensor as t

F = "nn.functional."


def cases() -> Iterator[Case]:
    yield from _layer_norms()
    yield from _batch_norms()
    yield from _others()


def _layer_norms() -> Iterator[Case]:
    for name in ("layer_norm", "rms_norm"):
        yield call(F + name, t(2, 3, 4), [4])
        yield call(F + name, t(2, 3, 4), 4)
        yield call(F + name, t(2, 3, 4), [3, 4])
        yield call(F + name, t(2, 3, 4), [4], t(4))
        yield call(F + name, t(2, 3, 4), [3, 4], weight=t(3, 4))
        yield call(F + name, t(2, 4, dtype="float64"), [4], t(4, dtype="float64"))
        yield call(F + name, t(0, 4), [4])
        yield call(F + name, t(2, 4), [3])
        yield call(F + name, t(4, 3, layout="T"), [3])
    yield call(F + "layer_norm", t(2, 3, 4), [4], t(4), t(4))
    yield call(F + "layer_norm", t(2, 3, 4), [3, 4], t(3, 4), t(3, 4))
    yield call(F + "layer_norm", t(2, 4), [4], None, t(4), 1e-3)
    yield call(F + "layer_norm", t(2, 4), [4], epsilon=1e-3)


def _batch_norms() -> Iterator[Case]:
    bn = F + "batch_norm"
    for shape in ((4, 3), (2, 3, 5), (2, 3, 2, 2), (2, 3, 2, 2, 2)):
        mean, variance = t(3, grad=False), t(3, low=0.5, high=2, grad=False)
        yield call(bn, t(*shape), mean, variance, t(3), t(3))
        yield call(bn, t(*shape), mean, variance, t(3), t(3), training=True)
    yield call(bn, t(2, 3), t(3, grad=False), t(3, low=0.5, high=2, grad=False))
    yield call(bn, t(2, 3, 4), t(3, grad=False), t(3, low=0.5, high=2, grad=False), training=True, epsilon=0.1)
    last = (t(2, 2, 2, 3), t(3, grad=False), t(3, low=0.5, high=2, grad=False), t(3), t(3))
    yield call(bn, *last, data_format="NHWC")
    yield call(bn, *last, training=True, data_format="NHWC")
    yield call(bn, *last[:1], *last[1:], training=True, use_global_stats=True, data_format="NHWC")


def _others() -> Iterator[Case]:
    for shape in ((2, 4, 3), (2, 4, 3, 2), (2, 4, 2, 2, 2)):
        yield call(F + "group_norm", t(*shape), 2, 1e-5, t(4), t(4))
        yield call(F + "instance_norm", t(*shape), weight=t(4), bias=t(4))
        yield call(F + "instance_norm", t(*shape))
    yield call(F + "group_norm", t(2, 4, 3, 2), 4)
    yield call(F + "group_norm", t(2, 4, 3, 2), 1, epsilon=0.1)
    yield call(F + "group_norm", t(2, 3, 2, 4), 2, data_format="NHWC")
    yield call(F + "group_norm", t(2, 4, 3), 3)
    for p in (1, 2, 3, 1.5):
        yield call(F + "normalize", t(3, 4), p)
    yield call(F + "normalize", t(3, 4), axis=0)
    yield call(F + "normalize", t(2, 3, 4), axis=-1)
    yield call(F + "normalize", t(4), axis=0)
    yield call(F + "normalize", t(3, 4, dtype="float64"), epsilon=3.0)
    yield call(F + "local_response_norm", t(1, 4, 3, 3), 3)
