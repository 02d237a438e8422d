"""Steps of a program on work-groups: launches of kernels, and host calls between them.

A step finds its buffers in a table of addresses, whose entries are those of its plan: the arena, then arguments,
states, outputs and constants. Nothing waits for a launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

from argosy_cinn.device_call import Address, call_host
from argosy_cinn.host import HostCall
from argosy_cinn.plan.memory import Place
from argosy_hwadapt import Device
from argosy_pir.values import Value

Table: TypeAlias = Sequence[Address]


@dataclass(slots=True)
class Run:
    """A run of a program: where its steps are submitted to, the kernels by name, and what is carried between host
    calls that is no tensor."""

    device: Device
    kernels: Mapping[str, Any]
    tokens: dict[Value, Any] = field(default_factory=dict)

    def submit(self, steps: Sequence[Step], table: Table) -> None:
        """Submit steps in order."""
        for step in steps:
            step.submit(self, table)


class Step(Protocol):
    """What a run submits."""

    def submit(self, run: Run, table: Table) -> None:
        """Submit it with the buffers of a table."""


class Launch(NamedTuple):
    """A kernel by name, its groups and the work-items of each, and the places of its buffers."""

    kernel: str
    groups: int
    items: int
    places: list[Place]

    def submit(self, run: Run, table: Table) -> None:
        """See :class:`Step`."""
        arguments = [address_of(table, place) for place in self.places]
        run.device.launch(run.kernels[self.kernel], (self.groups,), (self.items,), arguments)


@dataclass(frozen=True, slots=True)
class HostStep:
    """An operation that the reference kernels run on the host, and the places of its operands and results."""

    call: HostCall
    places: Mapping[Value, Place]

    def submit(self, run: Run, table: Table) -> None:
        """Bring the operands to the host, compute, and bring the results back."""
        call_host(run.device, self.call, lambda value: address_of(table, self.places[value]), run.tokens, {})


def address_of(table: Table, place: Place) -> Address:
    """The buffer of a place, and its byte there."""
    buffer, offset = table[place.entry]
    return buffer, offset + place.offset
