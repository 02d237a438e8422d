"""Metrics and averages as part of a static program."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from argosy.nn.initializer import Constant
from argosy.static.executor import Executor
from argosy.static.program import default_main_program
from argosy.static.session import note_parameter
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import suspend_layers, write
from argosy_tensorcore import naming
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["ExponentialMovingAverage", "accuracy", "auc", "create_global_var"]


def create_global_var(
    shape: Any, value: float, dtype: Any, persistable: bool = False, force_cpu: bool = False, name: str | None = None
) -> Tensor:
    """A tensor that lives between runs, filled with ``value`` by the startup program."""
    with suspend_layers():
        made = Tensor._wrap(StridedArray.empty(tuple(int(n) for n in shape), as_dtype(dtype)))
        made.payload.fill_from(value)
    made.name, made.persistable = name or naming.generate("global_var"), persistable
    note_parameter(made, Constant(value))
    return made


def accuracy(input: Tensor, label: Tensor, k: int = 1, correct: Any = None, total: Any = None) -> Tensor:
    """The share of rows of ``input`` (scores [N, classes]) whose ``label`` [N, 1] is among the ``k`` likeliest: 0-D."""
    classes = get_operator("topk")(input, k)[1]
    hits = get_operator("equal")(classes, get_operator("reshape")(label, [-1, 1]).astype(classes.dtype))
    return get_operator("mean")(get_operator("any")(hits, 1).astype("float32"))


def auc(
    input: Tensor,
    label: Tensor,
    curve: str = "ROC",
    num_thresholds: int = 4095,
    topk: int = 1,
    slide_steps: int = 1,
    ins_tag_weight: Tensor | None = None,
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The area under the ROC curve of all runs, of this one, and the histograms [1, num_thresholds + 1] of scores of
    yes and no: those of the run, then those of all, which live between runs.

    input: probabilities [N, 2], the second that of yes; label: 0 or 1 [N] or [N, 1]. Raises NotImplementedError for
    another curve, more ``slide_steps``, and ``ins_tag_weight``.
    """
    if curve != "ROC" or slide_steps != 1 or ins_tag_weight is not None:
        raise NotImplementedError("static.auc() of another curve than 'ROC', slide_steps or ins_tag_weight")
    count = num_thresholds + 1
    bins = (input[:, -1].astype("float64") * num_thresholds).astype("int64")
    wanted = get_operator("reshape")(label, [-1]).astype("int64")
    ones = get_operator("one_hot")(bins, count).astype("int64")
    now = [(ones * w.unsqueeze(-1)).sum(0, keepdim=True) for w in (wanted, 1 - wanted)]
    held = [create_global_var([1, count], 0, "int64", True, name=naming.generate("auc_stat")) for _ in now]
    total = [old + new for old, new in zip(held, now, strict=True)]
    for old, new in zip(held, total, strict=True):
        write(old, new)
    return _area(*total), _area(*now), [*now, *held]


def _area(yes: Tensor, no: Tensor) -> Tensor:
    """The trapezoidal sum under the curve that histograms of scores describe; 0 where a class was not seen."""
    above, below = ((x.flip([1]).cumsum(1)).astype("float64") for x in (yes, no))
    before = above - yes.flip([1]).astype("float64")
    area = ((above + before) / 2 * no.flip([1]).astype("float64")).sum()
    whole = above[0, -1] * below[0, -1]
    one = get_operator("ones_like")(whole)
    return get_operator("where")(whole > 0, area / get_operator("maximum")(whole, one), whole * 0)


class ExponentialMovingAverage:
    """Averages of the trainable parameters of the main program: ``decay * average + (1 - decay) * parameter`` after
    each step, read divided by ``1 - decay^steps``.

    thres_steps: a tensor of steps t, with which the decay is at most ``(1 + t) / (10 + t)``. Call :meth:`update` while
    the program is being built, after ``minimize``.
    """

    def __init__(self, decay: float = 0.999, thres_steps: Tensor | None = None, name: str | None = None) -> None:
        self._decay, self._steps, self._name = decay, thres_steps, name or ""
        self._parameters = [p for p in default_main_program().all_parameters() if not p.stop_gradient]
        self._averages = [create_global_var(p.shape, 0.0, p.dtype, True) for p in self._parameters]
        self._rest = create_global_var([1], 1.0, "float32", True)  # the product of all decays
        self._kept: list[Any] = []

    def update(self) -> None:
        """Record the update of the averages."""
        decay: Any = self._decay
        if self._steps is not None:
            t = self._steps.astype("float32").reshape([1])
            decay = get_operator("minimum")((t + 1) / (t + 10), get_operator("full_like")(t, self._decay))
        with no_grad():
            for parameter, average in zip(self._parameters, self._averages, strict=True):
                write(average, average * decay + parameter * (1 - decay))
            write(self._rest, self._rest * decay)

    @contextmanager
    def apply(self, executor: Executor, need_restore: bool = True) -> Iterator[None]:
        """Let the parameters be the averages within the block, and afterwards, too, unless ``need_restore``."""
        with suspend_layers(), no_grad():
            self._kept = [p.numpy().copy() for p in self._parameters]
            share = float(1 - self._rest.numpy()[0])
            for parameter, average in zip(self._parameters, self._averages, strict=True):
                parameter.set_value(np.asarray(average.numpy() / share if share else average.numpy()))
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Executor) -> None:
        """Give the parameters back what they were before :meth:`apply`."""
        with suspend_layers(), no_grad():
            for parameter, value in zip(self._parameters, self._kept, strict=bool(self._kept)):
                parameter.set_value(value)
