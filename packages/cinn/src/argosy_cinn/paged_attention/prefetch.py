"""Memory that is asked for before it is read."""

from __future__ import annotations

from argosy_cinn.paged_attention.memory import STREAMS
from argosy_cinn.paged_attention.panels import Cache, Panel, Strip
from argosy_cinn.printers.types import I8, I64, Index, Value, bytes_of

_LINE = 64
#: Numbers between what is read and what is asked for again.
_DISTANCES = (8, 4)
#: The second-level cache, as `Function.prefetch` counts: keys of one head are as far apart as tokens are, so that they
#: share few sets of the first one.
_SECOND_LEVEL = 2


class Prefetch(Panel):
    """What a panel asks for: values while its keys are read, and keys of the next one while its values are."""

    def _prefetch(self, cache: Cache, strip: Strip) -> None:
        """Ask for what is read next at these numbers."""
        b = self.b
        if cache.ahead is None:
            return
        with b.loop(strip.start, strip.end) as loop:
            self._prefetch_entry(cache, cache.ahead, loop.index, self.head)

    def _prefetch_again(self, cache: Cache, start: Value) -> None:
        """Ask again for what is read soon, and once more: a processor forgets what it is asked for while it waits for
        as many lines as it can."""
        b = self.b
        for distance in _DISTANCES:
            for i in range(STREAMS):
                number = b.minimum(b.add(start, i + distance), self.memory.panel - 1)
                self._prefetch_entry(cache, cache.offsets, number, self.head)

    def _prefetch_share(self, cache: Cache, strip: Strip, part: Index, parts: Index) -> None:
        """The same where each head passes over the whole panel: as much, a part at a time, in the order of memory."""
        b, (first, count, _) = self.b, self.heads
        if cache.ahead is None:
            return
        passed, places = b.mul(b.sub(self.head, first), self.memory.panel), b.sub(strip.end, strip.start)
        begin, end = (b.add(strip.start, b.div(b.mul(places, n), parts)) for n in (part, b.add(part, 1)))
        with b.loop(begin, end) as loop:
            number = b.add(passed, loop.index)
            head = b.index(b.add(first, b.rem(number, count)))
            self._prefetch_entry(cache, cache.ahead, b.div(number, count), head)

    def _prefetch_entry(self, cache: Cache, offsets: Value, number: Index, head: Value) -> None:
        b = self.b
        entry = b.gep(cache.head(head), b.load(I64, b.gep(offsets, number, I64)), cache.element)
        for at in range(0, cache.width * bytes_of(cache.element), _LINE):
            b.prefetch(b.gep(entry, at, I8), level=_SECOND_LEVEL)
