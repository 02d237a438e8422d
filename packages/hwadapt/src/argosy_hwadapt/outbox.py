"""Messages on their way: MPI reads them from this process's memory until they have arrived."""

from __future__ import annotations

from typing import Any

from argosy_hwadapt.communicator import Array


class Outbox:
    """The sends of one process that MPI has not finished, with the memory that it still reads."""

    def __init__(self) -> None:
        self._messages: list[tuple[Any, Array, int]] = []

    def keep(self, request: Any, message: Array, receiver: int) -> None:
        """Hold ``message`` until ``request`` is done."""
        self.receivers()
        self._messages.append((request, message, receiver))

    def receivers(self) -> set[int]:
        """Return the ranks whose messages are still on their way; asking moves them on."""
        self._messages = [entry for entry in self._messages if not entry[0].Test()]
        return {receiver for _, _, receiver in self._messages}
