"""Ambient state: one :class:`Context` for each rank, so that several ranks can live in one process as threads.

``AMBIENT.word`` counts what departs from plain eager execution anywhere in the process (layers pushed, gradients
switched off, ranks bound to threads). While it is zero the eager fast path reads nothing else. ``AMBIENT.silent``
counts those of them that are threads whose gradients are switched off; ``AMBIENT.silenced`` is the only one's
identifier, 0 where that is not known. ``AMBIENT.quiet`` counts those that change nothing about ordinary tensors but
perhaps recording: silent threads, and layers that stay for payloads of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argosy_pir.builder import Builder
    from argosy_pir.location import Location
    from argosy_tensorcore.rng import Generator

__all__ = [
    "AMBIENT",
    "Context",
    "bind_context",
    "building",
    "context",
    "grad_enabled",
    "own_context",
    "process_context",
    "set_grad_enabled",
]


class _Ambient:
    """The process-wide word; see the module's docstring."""

    __slots__ = ("quiet", "silenced", "silent", "word")

    def __init__(self) -> None:
        self.word = self.quiet = self.silent = self.silenced = 0


AMBIENT = _Ambient()


class Context:
    """The ambient state of one rank.

    ``layers`` is the interpreter stack, innermost last; ``builder`` and ``location`` are where primitives emit while an
    operator's body is expanded; ``values`` holds what other packages keep for each rank, under keys of their own.
    ``grad_enabled`` is each thread's own, and True at first.
    """

    __slots__ = ("_generator", "_of_thread", "builder", "layers", "location", "mesh", "rank", "size", "values")

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.layers: list[Any] = []
        self._of_thread = threading.local()
        self.builder: Builder | None = None
        self.location: Location | None = None
        self.rank = rank
        self.size = size
        self.mesh: object | None = None
        self.values: dict[str, Any] = {}
        self._generator: Generator | None = None

    @property
    def grad_enabled(self) -> bool:
        """Whether operators record for differentiation on this thread."""
        enabled: bool = getattr(self._of_thread, "grad_enabled", True)
        return enabled

    @grad_enabled.setter
    def grad_enabled(self, enabled: bool) -> None:
        self._of_thread.grad_enabled = enabled

    @property
    def generator(self) -> Generator:
        """The rank's random generator, made from entropy-free seed 0 on first use."""
        if self._generator is None:
            from argosy_tensorcore.rng import Generator

            self._generator = Generator(0)
        return self._generator

    @generator.setter
    def generator(self, generator: Generator) -> None:
        self._generator = generator


process_context = Context()
"""That of threads to which none is bound."""
_bound = threading.local()


def context() -> Context:
    """The context of the calling thread: the one bound to it, else that of the process."""
    bound: Context = getattr(_bound, "context", process_context)
    return bound


@contextmanager
def bind_context(ambient: Context) -> Iterator[Context]:
    """Make ``ambient`` the calling thread's context within the block."""
    previous = getattr(_bound, "context", None)
    _bound.context = ambient
    AMBIENT.word += 1
    try:
        yield ambient
    finally:
        AMBIENT.word -= 1
        if previous is None:
            del _bound.context
        else:
            _bound.context = previous


def own_context() -> AbstractContextManager[Context]:
    """Bind a fresh context of the same rank within the block: for compilers and passes, whose building must not meet
    that of other threads, nor be captured."""
    around = context()
    fresh = Context(around.rank, around.size)
    fresh.mesh, fresh.values = around.mesh, around.values
    return bind_context(fresh)


@contextmanager
def building(builder: Builder, location: Location | None = None) -> Iterator[Builder]:
    """Let primitives emit at ``builder``, with ``location``, within the block."""
    ambient = context()
    previous = ambient.builder, ambient.location
    ambient.builder, ambient.location = builder, location
    try:
        yield builder
    finally:
        ambient.builder, ambient.location = previous


def grad_enabled() -> bool:
    """Whether operators record for differentiation here."""
    return not AMBIENT.word or context().grad_enabled


def set_grad_enabled(enabled: bool) -> bool:
    """Switch recording on or off for this rank; returns the previous setting."""
    ambient = context()
    previous = ambient.grad_enabled
    if previous != enabled:
        ambient.grad_enabled = enabled
        step = -1 if enabled else 1
        AMBIENT.word += step
        AMBIENT.quiet += step
        AMBIENT.silent += step
        AMBIENT.silenced = threading.get_ident() if AMBIENT.silent == 1 and not enabled else 0
    return previous
