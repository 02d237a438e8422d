"""Losses over alignments, trees of classes, margins and clusters."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call, layer, script
from parity.inputs import given
from parity.inputs import tensor as t

F = "nn.functional."
LABELS = given([[1, 1, 2], [3, 1, 0]], "int32")
LENGTHS = (given([6, 4], "int64"), given([3, 2], "int64"))


def cases() -> Iterator[Case]:
    for reduction in ("mean", "sum", "none"):
        yield call(f"{F}ctc_loss", t(6, 2, 5), LABELS, *LENGTHS, reduction=reduction)
    yield call(f"{F}ctc_loss", t(6, 2, 5), LABELS, *LENGTHS, blank=4)
    yield call(f"{F}ctc_loss", t(6, 2, 5, dtype="float64"), LABELS, *LENGTHS, norm_by_times=True)
    impossible = (given([6, 2], "int64"), given([3, 3], "int64"))
    yield call(f"{F}ctc_loss", t(6, 2, 5, grad=False), LABELS, *impossible, reduction="none", zero_infinity=True)
    yield layer("nn.CTCLoss", t(6, 2, 5), LABELS, *LENGTHS, reduction="sum")
    yield from _transducers()
    yield from _trees()
    yield from _clusters()
    yield call(f"{F}margin_cross_entropy", t(4, 5, low=-0.9, high=0.9), given([0, 2, 4, 1], "int64"))
    yield call(f"{F}margin_cross_entropy", t(4, 5, low=-0.9, high=0.9), given([[0], [2], [4], [1]], "int64"),
               margin1=1.1, margin2=0.2, margin3=0.1, scale=8.0, return_softmax=True, reduction="none")  # fmt: skip


def _transducers() -> Iterator[Case]:
    label = given([[1, 2], [3, 1]], "int32")
    lengths = (given([4, 3], "int32"), given([2, 1], "int32"))
    for reduction in ("mean", "sum", "none"):
        yield call(f"{F}rnnt_loss", t(2, 4, 3, 5), label, *lengths, fastemit_lambda=0.0, reduction=reduction)
    yield call(f"{F}rnnt_loss", t(2, 4, 3, 5), label, *lengths, blank=4)
    yield call(f"{F}rnnt_loss", t(2, 4, 3, 5), label, *lengths, fastemit_lambda=0.3)
    yield layer("nn.RNNTLoss", t(2, 4, 3, 5), label, *lengths)


def _trees() -> Iterator[Case]:
    for classes in (2, 4, 6, 7):
        label = given([0, 1, classes - 1], "int64")
        yield call(f"{F}hsigmoid_loss", t(3, 4), label, classes, t(classes - 1, 4), t(classes - 1, 1))
        yield call(f"{F}hsigmoid_loss", t(3, 4), label, classes, t(classes - 1, 4))
    table = given([[0, 2, -1], [0, 1, 3], [0, -1, -1]], "int64")
    code = given([[1, 0, -1], [0, 1, 1], [1, -1, -1]], "int64")
    label = given([0, 1, 2], "int64")
    yield call(f"{F}hsigmoid_loss", t(3, 4), label, 4, t(4, 4), t(4, 1), table, code)
    yield layer("nn.HSigmoidLoss", t(3, 4), given([0, 5, 3], "int64"), feature_size=4, num_classes=6)
    yield layer("nn.HSigmoidLoss", t(3, 4), label, table, code, feature_size=4, num_classes=4, is_custom=True)


def _clusters() -> Iterator[Case]:
    yield call(f"{F}adaptive_log_softmax_with_loss", t(4, 6), given([0, 3, 5, 7], "int64"), t(6, 5),
               [[t(6, 3), t(3, 2)], [t(6, 2), t(2, 3)]], [3, 5, 8], t(5))  # fmt: skip
    yield call(f"{F}adaptive_log_softmax_with_loss", t(6), given(4, "int64"), t(6, 4), [[t(6, 3), t(3, 5)]], [3, 8])
    for labels in ([0, 1, 2, 1], [7, 5, 3, 0]):
        yield script("adaptive_softmax", t(4, 6), given(labels, "int64"))
