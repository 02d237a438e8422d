"""Losses as functions."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import Input, given
from parity.inputs import tensor as t

F = "nn.functional."
REDUCTIONS = ("mean", "sum", "none")
SOFT = given([[0.2, 0.3, 0.5], [0.1, 0.9, 0.0], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5]], grad=False)


def classes(*shape: int, dtype: str = "int64") -> Input:
    """Class indices in [0, 3)."""
    return t(*shape, dtype=dtype, low=0, high=3)


def signs(*shape: int) -> Input:
    """Labels of -1 and 1."""
    count = 1
    for size in shape:
        count *= size
    return Input(shape, values=tuple((-1.0) ** (i * i // 2) for i in range(count)), grad=False)


def cases() -> Iterator[Case]:
    yield from _cross_entropies()
    yield from _regressions()
    yield from _binary()
    yield from _margins()


def _cross_entropies() -> Iterator[Case]:
    ce = F + "cross_entropy"
    weight = t(3, low=0.1, high=1, grad=False)
    for reduction in REDUCTIONS:
        for dtype in ("float32", "float64"):
            yield call(ce, t(4, 3, dtype=dtype), classes(4), reduction=reduction)
        yield call(ce, t(4, 3), classes(4, 1), reduction=reduction)
        yield call(ce, t(4, 3), classes(4), weight, reduction=reduction)
        yield call(ce, t(4, 3), SOFT, soft_label=True, reduction=reduction)
        yield call(ce, t(4, 3), SOFT, weight, soft_label=True, reduction=reduction)
        yield call(ce, t(4, 3), given([0, 2, 1, 1], "int64"), ignore_index=1, reduction=reduction)
        yield call(ce, t(4, 3), given([0, 2, 1, 1], "int64"), weight, ignore_index=1, reduction=reduction)
        yield call(ce, t(4, 3), given([0, 2, -100, 1], "int64"), reduction=reduction)
        yield call(ce, t(4, 3), classes(4), label_smoothing=0.2, reduction=reduction)
        yield call(ce, t(4, 3, low=0.1, high=1), classes(4), use_softmax=False, reduction=reduction)
        yield call(ce, t(2, 3, 4), classes(2, 4), axis=1, reduction=reduction)
        yield call(ce, t(2, 4, 3), classes(2, 4), reduction=reduction)
        yield call(F + "nll_loss", t(4, 3, low=-3, high=-0.1), classes(4), reduction=reduction)
        yield call(F + "nll_loss", t(4, 3, low=-3, high=-0.1), classes(4), weight, reduction=reduction)
        yield call(F + "nll_loss", t(2, 3, 4, low=-3, high=-0.1), classes(2, 4), reduction=reduction)
    yield call(ce, t(4, 3), classes(4, dtype="int32"))
    yield call(ce, t(4, 3, low=-80, high=80), classes(4))
    yield call(ce, t(4, 3), SOFT, soft_label=True, label_smoothing=0.1)
    swce = F + "softmax_with_cross_entropy"
    yield call(swce, t(4, 3), classes(4, 1))
    yield call(swce, t(4, 3), SOFT, True)
    yield call(swce, t(4, 3), given([[0], [2], [1], [1]], "int64"), ignore_index=1)
    yield call(swce, t(2, 3, 4), classes(2, 1, 4), axis=1)
    yield call(swce, t(4, 3), classes(4, 1), return_softmax=True)


def _regressions() -> Iterator[Case]:
    for reduction in REDUCTIONS:
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss"):
            yield call(F + name, t(4, 3, low=-4, high=4), t(4, 3), reduction=reduction)
        yield call(F + "smooth_l1_loss", t(4, 3, low=-4, high=4), t(4, 3), reduction, 0.5)
        yield call(F + "smooth_l1_loss", t(4, 3, low=-4, high=4), t(4, 3), reduction, 2.0, False)
        for log_target in (False, True):
            yield call(F + "kl_div", t(4, 3), t(4, 3, low=0.1, high=1, grad=False), reduction, log_target)
    yield call(F + "kl_div", t(4, 3), t(4, 3, low=0.1, high=1, grad=False), "batchmean")
    yield call(F + "kl_div", t(4, 3), t(4, 3, low=0.1, high=1))
    yield call(F + "square_error_cost", t(4, 3), t(4, 3))
    yield call(F + "mse_loss", t(4, 3), t(3))
    yield call(F + "mse_loss", t(4, dtype="float64"), t(4, dtype="float64"))
    yield call(F + "log_loss", t(4, 1, low=0.1, high=0.9), t(4, 1, low=0, high=1, grad=False))


def _binary() -> Iterator[Case]:
    target = t(4, 3, low=0, high=1, grad=False)
    weight = t(4, 3, low=0.1, high=1, grad=False)
    for reduction in REDUCTIONS:
        yield call(F + "binary_cross_entropy", t(4, 3, low=0.05, high=0.95), target, reduction=reduction)
        yield call(F + "binary_cross_entropy", t(4, 3, low=0.05, high=0.95), target, weight, reduction)
        yield call(F + "binary_cross_entropy_with_logits", t(4, 3, low=-9, high=9), target, reduction=reduction)
        yield call(F + "binary_cross_entropy_with_logits", t(4, 3), target, weight, reduction)
        yield call(F + "binary_cross_entropy_with_logits", t(4, 3), target, None, reduction, weight)
    yield call(F + "binary_cross_entropy", given([0.0, 1.0, 0.5]), given([0.0, 0.0, 1.0], grad=False))
    yield call(F + "sigmoid_focal_loss", t(4, 3), target)


def _margins() -> Iterator[Case]:
    for reduction in REDUCTIONS:
        yield call(F + "margin_ranking_loss", t(4), t(4), signs(4), reduction=reduction)
        yield call(F + "margin_ranking_loss", t(4), t(4), signs(4), 0.5, reduction)
        yield call(F + "hinge_embedding_loss", t(4), signs(4), reduction=reduction)
        yield call(F + "hinge_embedding_loss", t(4, 2), signs(4, 2), 0.5, reduction)
        yield call(F + "soft_margin_loss", t(4), signs(4), reduction)
        yield call(F + "cosine_embedding_loss", t(4, 3), t(4, 3), signs(4), reduction=reduction)
        yield call(F + "triplet_margin_loss", t(4, 3), t(4, 3), t(4, 3), reduction=reduction)
    yield call(F + "label_smooth", SOFT)
    yield call(F + "label_smooth", t(4, 3, low=0, high=1), epsilon=0.3)
    yield call(F + "label_smooth", SOFT, t(1, 3, low=0, high=1, grad=False), 0.2)
