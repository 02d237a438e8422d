"""The text of tokens as they come, up to texts that end it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["TextStream"]

_REPLACEMENT = "\ufffd"


class TextStream:
    """The text of tokens as they come: what is given out never changes, so letters of several tokens wait for the last.

    A token's text depends on those before it (spaces, letters in several bytes), so the last tokens are decoded again
    with it, and what is new is given out. ``decode`` gives the text of ids. The text ends before the first of the texts
    ``stop``: what may be the beginning of one waits for what follows, and when one is complete, ``ended`` is True.
    Raises ValueError for an empty text among these.
    """

    def __init__(self, decode: Callable[[list[int]], str], stop: Sequence[str] = ()) -> None:
        if not all(isinstance(text, str) and text for text in stop):
            raise ValueError(f"texts that end a text should have one letter at least, got {list(stop)!r:.80}")
        self._decode, self._stop = decode, tuple(stop)
        self._ids: list[int] = []
        self._shown = 0  # tokens whose text is out
        self._context = 0  # the first token that is decoded again
        self._waiting = ""  # what may be the beginning of a text that ends this one
        self.ended = False

    def add(self, token: int) -> str:
        """The text that the token adds; empty while a letter is not complete, and where the text has ended."""
        self._ids.append(token)
        return self._until_stop(self._new_text(end=False), end=False)

    def finish(self) -> str:
        """What is left when no token follows, letters that stay incomplete included."""
        return self._until_stop(self._new_text(end=True), end=True)

    def _new_text(self, end: bool) -> str:
        before, now = self._decode(self._ids[self._context : self._shown]), self._decode(self._ids[self._context :])
        if len(now) <= len(before) or (now.endswith(_REPLACEMENT) and not end):
            return ""
        self._context, self._shown = self._shown, len(self._ids)
        return now[len(before) :]

    def _until_stop(self, new: str, end: bool) -> str:
        """What is sure of what waits and is new."""
        if self.ended:
            return ""
        text = self._waiting + new
        places = [place for stop in self._stop if (place := text.find(stop)) >= 0]
        if places:
            self.ended, self._waiting = True, ""
            return text[: min(places)]
        waits = 0 if end else max((_overlap(text, stop) for stop in self._stop), default=0)
        self._waiting = text[len(text) - waits :]
        return text[: len(text) - waits]


def _overlap(text: str, stop: str) -> int:
    """How many letters at the end of ``text`` begin ``stop``."""
    lengths = range(min(len(text), len(stop) - 1), 0, -1)
    return next((n for n in lengths if text.endswith(stop[:n])), 0)
