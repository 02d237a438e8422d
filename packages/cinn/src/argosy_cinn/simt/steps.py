"""Steps of a program on work-groups: launches of kernels, and host calls between them.

A step finds its buffers in a table of addresses, whose entries are those of its plan: the arena, then arguments,
states, outputs and constants. Nothing waits for a launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

from argosy_cinn.device_call import call_host
from argosy_cinn.host import HostCall
from argosy_cinn.plan.memory import Place
from argosy_cinn.shapes import NotSymbolic
from argosy_cinn.staged_call import Address
from argosy_hwadapt import Device, Scalar
from argosy_pir.dims import evaluate_dim
from argosy_pir.values import Value

Table: TypeAlias = Sequence[Address]


@dataclass(slots=True)
class Run:
    """A run of a program: where its steps are submitted to, the kernels by name, communicators by group, and what is
    carried between host calls that is no tensor."""

    device: Device
    kernels: Mapping[str, Any]
    communicators: Mapping[tuple[int, ...], Any]
    tokens: dict[Value, Any] = field(default_factory=dict)

    def submit(self, steps: Sequence[Step], table: Table) -> None:
        """Submit steps in order."""
        for step in steps:
            step.submit(self, table)


class Step(Protocol):
    """What a run submits."""

    def submit(self, run: Run, table: Table) -> None:
        """Submit it with the buffers of a table."""

    def at(self, sizes: Mapping[str, int]) -> Step:
        """The step in numbers. Raises `NotSymbolic` for what is made for known sizes."""


class Launch(NamedTuple):
    """A kernel by name, its groups and the work-items of each, the places of its buffers, and the sizes that it
    takes."""

    kernel: str
    groups: int
    items: int
    places: list[Place]
    sizes: Sequence[int] = ()

    def submit(self, run: Run, table: Table) -> None:
        """See :class:`Step`."""
        arguments: list[Address | Scalar] = [address_of(table, place) for place in self.places]
        arguments += [Scalar("q", size) for size in self.sizes]
        run.device.launch(run.kernels[self.kernel], (self.groups,), (self.items,), arguments)

    def at(self, sizes: Mapping[str, int]) -> Launch:
        """See :class:`Step`."""
        places = [place_at(place, sizes) for place in self.places]
        numbers = [evaluate_dim(size, sizes) for size in self.sizes]
        return Launch(self.kernel, evaluate_dim(self.groups, sizes), self.items, places, numbers)


@dataclass(frozen=True, slots=True)
class HostStep:
    """An operation that the reference kernels run on the host, and the places of its operands and results."""

    call: HostCall
    places: Mapping[Value, Place]

    def submit(self, run: Run, table: Table) -> None:
        """Bring the operands to the host, compute, and bring the results back."""
        locate = lambda value: address_of(table, self.places[value])  # noqa: E731
        call_host(run.device, self.call, locate, run.tokens, run.communicators)

    def at(self, sizes: Mapping[str, int]) -> HostStep:
        """See :class:`Step`."""
        raise NotSymbolic(f"'{self.call.op.name}' runs on the host")


def place_at(place: Place, sizes: Mapping[str, int]) -> Place:
    """A place in numbers."""
    return Place(place.entry, evaluate_dim(place.offset, sizes))


def address_of(table: Table, place: Place) -> Address:
    """The buffer of a place, and its byte there."""
    buffer, offset = table[place.entry]
    return buffer, offset + place.offset
