"""Counters of random draws as data, so that the layers of a model, which draw alike, share their kernels."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir.builder import Builder
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.types import TensorType

_STATE = TensorType((2,), "uint64")


@register_pass("random-counters")
@dataclass(frozen=True)
class RandomCounters(Pass):
    """Adds the counters of a program's random draws, where it has several, to the states that they draw from, whose
    second number counts draws: they are constants in memory then, and no part of what kernels are."""

    def run(self, program: Program) -> bool:
        """Add them; True where there were several."""
        draws = [op for op in program.walk() if op.name == "prim.rng_bits" and op.attributes["counter"]]
        if len({op.attributes["counter"] for op in draws}) < 2:
            return False
        for op in draws:
            builder = Builder.before(op)
            with emit_at(builder):
                counter = builder.constant(_STATE, struct.pack("<QQ", 0, op.attributes["counter"]))
                op.set_operand(0, prim.add(op.operand(0), counter))
            op.attributes["counter"] = 0
        return True


__all__ = ["RandomCounters"]
