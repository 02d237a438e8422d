"""Copies from device to device while a program is captured, which then spans devices: ``prim.place``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argosy_phi_ops.eager.creation import creation_device
from argosy_phi_ops.passes.device_assignment import PLACE, is_number, values_read
from argosy_pir.core import Block
from argosy_pir.values import BlockArgument, OpResult, Value
from argosy_tensorcore.place import CPU, Place, as_place, place_of
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_phi_ops.capture.tracer import Tracer

__all__ = ["copy_to_place", "place_of_value"]


def copy_to_place(tracer: Tracer, x: Tensor, place: Place) -> Tensor:
    """``x`` at a place in the program that ``tracer`` records: itself where it will be there, else a copy, through
    which gradients go back. Raises ``DeviceNotFound`` for a place that is not there."""
    source = place_of_value(tracer, tracer.value(x))
    if source == place:
        return x
    place.device()
    return tracer.apply_primitive(PLACE, x, {"source": source.name, "target": place.name})


def place_of_value(tracer: Tracer, value: Value) -> Place:
    """Where a value will be: where its operands are, as far as is known while the program is recorded."""
    held = {s.argument: x for s, x in zip(tracer.program.states, tracer.states(), strict=True)}
    held |= dict(zip(tracer.program.inputs, tracer.given, strict=False))
    pending, seen, number = [value], set[Value](), None
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        found: Place | None = None
        if isinstance(value, OpResult):
            if value.op.name == PLACE:
                found = as_place(value.op.attributes["target"])
            else:
                pending += reversed(values_read(value.op))
                ends = [region.blocks[0].last for region in value.op.regions]
                same = [end for end in ends if end is not None and len(end.operands) == len(value.op.results)]
                pending += [end.operand(value.index) for end in reversed(same)]
        elif value in held:
            found = _place_of(held[value])
        elif value in tracer.starts:
            pending.append(tracer.starts[value])
        elif isinstance(value, BlockArgument) and isinstance(value.owner, Block) and value.owner.parent_op is not None:
            pending += reversed(values_read(value.owner.parent_op))
        if found is not None and not is_number(value):
            return found
        number = number or found
    device = creation_device()
    return number or (CPU if device is None else place_of(device))


def _place_of(x: Any) -> Place:
    payload = x.payload
    return place_of(payload.device) if type(payload) is StridedArray and not payload.host_owned else CPU
