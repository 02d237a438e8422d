"""Forms: what every kernel has, whatever it computes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from argosy_phi_ops.primitives.cost import Cost
from argosy_pir.values import Value


@dataclass(frozen=True, slots=True)
class Scratch:
    """The key of a buffer that a kernel needs beside its operands and results: which of those it belongs to, and the
    purpose it serves."""

    value: Value
    purpose: str


class PartialResults(Scratch):
    """That of partial results. Where there is a single part of them, it has no memory and is not used."""

    __slots__ = ()


class Form:
    """What a kernel computes. ``kind`` is what its emitters are found by (see `argosy_cinn.kinds`)."""

    __slots__ = ()
    kind: ClassVar[str]

    @property
    def checks_indices(self) -> bool:
        """Whether it may record an index that is out of range."""
        return False

    def key(self, slots: dict[Any, int]) -> str:
        """What its code depends on, as text: forms of equal key are one function; those without a key are none but
        their own. ``slots`` numbers its buffers by first use."""
        raise NotImplementedError

    def rebase_loads(self) -> dict[Any, int]:
        """Have the key not depend on which part of a buffer is read: how many bytes of each buffer lie before what the
        kernel is told to be its first element."""
        return {}

    def slots(self) -> dict[Any, int]:
        """The place of each buffer in the kernel's table."""
        slots: dict[Any, int] = {}
        self.key(slots)
        return slots

    def name(self) -> str:
        """What its function is called, without what makes that unique."""
        raise NotImplementedError

    def summary(self) -> str:
        """A line for `argosy_cinn.explain`."""
        raise NotImplementedError

    def reads(self) -> set[Any]:
        """The buffers it reads."""
        raise NotImplementedError

    def buffers(self) -> dict[Hashable, int]:
        """Bytes of the buffers that it needs while it runs, beside its operands and results."""
        return {}

    def cost(self) -> Cost:
        """What one call moves and computes."""
        return Cost()

    def completion_forms(self) -> Sequence[Form]:
        """What completes its results, in order: sums of partial ones."""
        return ()

    def constants(self) -> Sequence[Value]:
        """The tables of numbers that it reads."""
        return ()

    def arenas(self) -> Sequence[Hashable]:
        """The keys of buffers that are the whole program's arena, in code for all sizes."""
        return ()

    def inner_plans(self) -> Sequence[Any]:
        """The plans of its regions, which run within it."""
        return ()

    def streaming_candidates(self, vector_bits: int) -> Sequence[Any]:
        """The stores (with a ``buffer``, and a mark ``streaming``) that fill cache lines one after the other, in memory
        that begins with one, where vectors have so many bits."""
        return ()

    def cache_pressure(self, until_read: int) -> int:
        """How many bytes pass the caches, in effect, before what it stores is read; ``until_read`` pass in fact."""
        return until_read

    def overwrite_candidates(self) -> Iterable[tuple[Value, list[Value]]]:
        """Results that may be written over an operand that is not read later, with those operands."""
        return ()
