"""Distillation: a small model learns what a large one says, from its logits and its hidden states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import argosy as paddle
from argosy.models.decoder import CausalLM
from argosy.nn import functional as F
from argosy.nn.layer import Layer

__all__ = ["distillation_step", "hidden_loss", "logits_loss"]


def logits_loss(student: Any, teacher: Any, temperature: float = 1.0) -> Any:
    """Returns the mean divergence (Kullback-Leibler, nats a row) of the student's probabilities from the teacher's,
    both of logits [..., V] over ``temperature``, times its square (Hinton et al., 2015). ``student``, ``teacher``: the
    logits."""
    learned = F.log_softmax(student.astype("float32") / temperature, axis=-1)
    wanted = F.log_softmax(teacher.detach().astype("float32") / temperature, axis=-1)
    return (wanted.exp() * (wanted - learned)).sum(-1).mean() * temperature**2


def hidden_loss(student: Any, teacher: Any, projection: Layer | None = None) -> Any:
    """Returns the mean squared difference of hidden states [..., D] of ``student`` and ``teacher``; ``projection``
    makes the student's as wide as the teacher's (Romero et al., 2015)."""
    given = student if projection is None else projection(student)
    return F.mse_loss(given.astype("float32"), teacher.detach().astype("float32"))


def distillation_step(
    student: CausalLM,
    teacher: CausalLM,
    optimizer: Any,
    temperature: float = 2.0,
    soft: float = 0.5,
    hidden: float = 0.0,
    projection: Layer | None = None,
) -> Callable[[Any, Any], Any]:
    """A captured training step ``(ids_BT, next_BT) -> loss``: ``1 - soft`` of the cross entropy of the next tokens,
    ``soft`` of :func:`logits_loss` at ``temperature`` and ``hidden`` of :func:`hidden_loss` of the last hidden states.
    ``optimizer`` has the parameters of ``student``, and those of ``projection``; ``teacher`` stays as it is."""
    teacher.eval()

    def step(ids_BT: Any, next_BT: Any) -> Any:
        with paddle.no_grad():
            wanted_BTD = teacher.model(ids_BT)
            wanted_BTV = teacher.head(wanted_BTD)
        made_BTD = student.model(ids_BT)
        logits_BTV = student.head(made_BTD)
        rows_NV = logits_BTV.reshape([-1, logits_BTV.shape[-1]])
        loss = (1 - soft) * F.cross_entropy(rows_NV, next_BT.reshape([-1]))
        loss = loss + soft * logits_loss(logits_BTV, wanted_BTV, temperature)
        if hidden:
            loss = loss + hidden * hidden_loss(made_BTD, wanted_BTD, projection)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    captured: Callable[[Any, Any], Any] = paddle.jit.to_static(step, full_graph=True)
    return captured
