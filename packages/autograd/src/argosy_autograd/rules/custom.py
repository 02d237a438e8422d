"""Derivatives that users gave themselves (PyLayer, hooks) while capturing."""

from __future__ import annotations

from collections.abc import Sequence

from argosy_autograd.activity import has_gradient
from argosy_autograd.algebra import Value, zeros_like
from argosy_autograd.dialect import custom_parts
from argosy_autograd.errors import MissingRule
from argosy_autograd.registry import structured_rule
from argosy_phi_ops.context import context
from argosy_pir import Operation


def _reverse(op: Operation, incoming: Sequence[Value | None], active: set[Value]) -> list[tuple[Value, Value | None]]:
    """Copy the region, with the cotangents that arrived for its arguments. Raises :class:`MissingRule` for values that
    are given without a derivative, see `tracing.traced_refusal`."""
    refusal = op.attributes.get("refusal")
    if refusal is not None:
        raise MissingRule(f"{refusal} ({op.location})")
    builder = context().builder
    assert builder is not None
    block = op.regions[0].block
    given = [(g, r) for g, r in zip(incoming, op.results, strict=True) if has_gradient(r)]
    cotangents = [zeros_like(r) if g is None else g for g, r in given]
    outputs, inputs = custom_parts(op)
    # What the derivative keeps of the outputs has this derivative, too.
    mapping: dict[Value, Value] = {y: r for y, r in zip(outputs, op.results, strict=True) if y not in inputs}
    mapping.update(zip(block.arguments, cotangents, strict=True))
    moving = [x for x in inputs if has_gradient(x)]
    return list(zip(moving, builder.inline(block, mapping), strict=True))


def _forward(op: Operation, known: dict[Value, Value]) -> Sequence[Value | None]:
    raise MissingRule(
        f"a derivative given by a PyLayer or a hook ({op.location}) has no forward mode; use reverse mode"
    )


structured_rule("ad.custom", _reverse, _forward)
