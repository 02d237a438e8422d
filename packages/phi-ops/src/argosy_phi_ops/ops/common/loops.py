"""Loops in the bodies of operators: a Python function of one step becomes the region of a ``control.scan``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy_phi_ops.context import context, emit_at
from argosy_phi_ops.errors import OperatorError
from argosy_pir.builder import Builder
from argosy_pir.core import Block, Region

Values = Sequence[Any]

Step = Callable[[Values, Values], tuple[Values, Values]]
"""(slices, carried) -> (what is stacked, what is carried on)."""


def scan(step: Step, xs: Values, carried: Values, reverse: bool = False) -> tuple[list[Any], list[Any]]:
    """Go along axis 0 of every x (from its end when `reverse`): the stacked results, and the values carried last.

    Stacked results lie where the slices lay that they were computed from.
    """
    ambient = context()
    if ambient.builder is None:
        raise OperatorError("a scan was asked for, but no builder is active; use emit_at(builder)")
    block = Block([*(x.type.with_shape(x.shape[1:]) for x in xs), *(c.type for c in carried)])
    with emit_at(Builder.at_end(block), ambient.location) as inside:
        stacked, after = step(block.arguments[: len(xs)], block.arguments[len(xs) :])
        inside.create("control.yield", [*stacked, *after], location=ambient.location)
    attributes: dict[str, Any] = {"inputs": len(xs), "reverse": reverse}
    loop = ambient.builder.create(
        "control.scan", [*xs, *carried], attributes, regions=[Region([block])], location=ambient.location
    )
    return list(loop.results[: len(stacked)]), list(loop.results[len(stacked) :])
