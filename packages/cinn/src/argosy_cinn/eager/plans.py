"""Finding plans: the table of their addresses, by a number that is mixed of the operator and of the words of a call."""

from __future__ import annotations

from collections.abc import Callable

from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.slot_offsets import PLANS
from argosy_cinn.printers.types import I64, PTR, Value

__all__ = ["find_plan", "mix", "number_of"]

_MULTIPLIER = -0x61C8864680B583EB  # 2^64 over the golden ratio, as a signed number
_SHIFT = 65 - PLANS.bit_length()  # the highest bits, where all of the words are mixed


def number_of(c: Code, x: Value) -> Value:
    """An address as a number."""
    return c.f.op(I64, f"ptrtoint {x} to i64")


def mix(c: Code, mixed: Value, word: Value) -> Value:
    """The number of one word more. `argosy_phi_ops.eager.native.signatures` computes it in the same way."""
    return c.f.op(I64, f"mul {c.f.binary('xor', mixed, word)}, {_MULTIPLIER}")


def find_plan(c: Code, mixed: Value, need: Callable[[Value, str], None], otherwise: str) -> Value:
    """The plan whose number is ``mixed``, for which ``need(plan, label)`` does not go to the label; at ``otherwise``
    where there is none. It is at the place that follows from the number, or at its neighbour."""
    f = c.f
    place, found = f.binary("lshr", mixed, _SHIFT), f.name("found")
    plans = []
    for other in (0, 1):
        label = f.name("other")
        plan = f.load(PTR, f.gep(Value(PTR, "@plans"), f.binary("xor", place, other), PTR))
        c.need(f.icmp("ne", plan, NULL), label)
        need(plan, label)
        plans.append((plan, f.label))
        f.jump(found)
        f.start(label)
    f.jump(otherwise)
    f.start(found)
    return f.phi(plans)
