"""Ambient state: one :class:`Context` for each rank, so that several ranks can live in one process as threads.

``AMBIENT.word`` counts what departs from plain eager execution anywhere in the process (layers pushed, gradients
switched off, ranks bound to threads). While it is zero the eager fast path reads nothing else. ``AMBIENT.silent``
counts those of them that are threads whose gradients are switched off; ``AMBIENT.silenced`` is the only one's
identifier, 0 where that is not known. ``AMBIENT.quiet`` counts those that change nothing about ordinary tensors but
perhaps recording: silent threads, and layers that stay for payloads of their own. ``AMBIENT.cut`` says of the only
silent thread what keeps gradients from passing there (see `eager.gradient_blockers`), None where that is not known.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from argosy_hwadapt.fork import renew_in_child

if TYPE_CHECKING:
    from argosy_pir.builder import Builder
    from argosy_pir.location import Location
    from argosy_tensorcore.dtype import DType
    from argosy_tensorcore.rng import Generator

__all__ = [
    "AMBIENT",
    "Context",
    "RankState",
    "bind_context",
    "context",
    "emit_at",
    "grad_enabled",
    "own_context",
    "own_default_dtype",
    "process_context",
    "set_grad_enabled",
]


T = TypeVar("T")


class _Ambient:
    """The process-wide word; see the module's docstring."""

    __slots__ = ("cut", "quiet", "silenced", "silent", "word")

    def __init__(self) -> None:
        self.word = self.quiet = self.silent = self.silenced = 0
        self.cut: Any = None


AMBIENT = _Ambient()


class _Stack(list[Any]):
    """A thread's layers. Told apart by identity, so that a context can find those of all its threads."""

    __slots__ = ("__weakref__",)
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other


class _OfThread(threading.local):
    """What a context has for each thread; defaults are the class's, as a missing attribute takes long to find out."""

    builder: Builder | None = None
    location: Location | None = None
    grad_enabled = True
    layers: list[Any]
    values: dict[str, Any] | None = None


class Context:
    """The ambient state of one rank.

    Each thread has its own ``layers``, the interpreter stack, innermost last; ``builder`` and ``location``, where
    primitives emit while an operator's body is expanded; ``grad_enabled``, True at first; and ``own_values``: so a
    capture, or autocast, is that of the thread that began it. All threads share ``values``. Both hold what other
    packages keep, under keys of their own.
    """

    __slots__ = ("_everywhere", "_generator", "_of_thread", "_stacks", "mesh", "rank", "size", "values")
    _changing = renew_in_child(threading.RLock())  # taken by finalisers, too

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self._of_thread = _OfThread()
        self._everywhere: list[Any] = []  # layers at the bottom of every thread's stack
        self._stacks: weakref.WeakSet[_Stack] = weakref.WeakSet()
        self.rank = rank
        self.size = size
        self.mesh: object | None = None
        self.values: dict[str, Any] = {}
        self._generator: Generator | None = None

    @property
    def layers(self) -> list[Any]:
        """The interpreter stack of this thread."""
        try:
            return self._of_thread.layers
        except AttributeError:
            with self._changing:
                stack = self._of_thread.layers = _Stack(self._everywhere)
                self._stacks.add(stack)
            return stack

    def put_everywhere(self, layer: Any) -> None:
        """Have ``layer`` at the bottom of the stack of every thread of this rank."""
        with self._changing:
            for stack in (self._everywhere, *self._stacks):
                stack.insert(0, layer)

    def take_everywhere(self, layer: Any) -> None:
        """The end of :meth:`put_everywhere`."""
        with self._changing:
            for stack in (self._everywhere, *self._stacks):
                if layer in stack:
                    stack.remove(layer)

    @property
    def own_values(self) -> dict[str, Any]:
        """What other packages keep for this thread."""
        held = self._of_thread.values
        if held is None:
            held = self._of_thread.values = {}
        return held

    @property
    def builder(self) -> Builder | None:
        """Where primitives emit on this thread, if anywhere."""
        return self._of_thread.builder

    @builder.setter
    def builder(self, builder: Builder | None) -> None:
        self._of_thread.builder = builder

    @property
    def location(self) -> Location | None:
        """The location that operations get on this thread."""
        return self._of_thread.location

    @location.setter
    def location(self, location: Location | None) -> None:
        self._of_thread.location = location

    @property
    def grad_enabled(self) -> bool:
        """Whether operators record for differentiation on this thread."""
        return self._of_thread.grad_enabled

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


class _ContextSlot(threading.local):
    context = process_context


_bound = _ContextSlot()


def context() -> Context:
    """The context of the calling thread: the one bound to it, else that of the process."""
    return _bound.context


class RankState(Generic[T]):
    """State of which each rank has its own, under ``name`` in its context's values: made when the rank asks first."""

    __slots__ = ("make", "name")

    def __init__(self, name: str, make: Callable[[], T]) -> None:
        self.name, self.make = name, make

    @property
    def value(self) -> T:
        """That of the calling thread's rank."""
        values = context().values
        try:
            found: T = values[self.name]
        except KeyError:
            found = values.setdefault(self.name, self.make())
        return found

    @value.setter
    def value(self, value: T) -> None:
        context().values[self.name] = value


_DEFAULT_DTYPE = "argosy.default_dtype"


def own_default_dtype() -> DType | None:
    """The default dtype that the calling thread's rank has set for itself; None where the process's is its default."""
    return _bound.context.values.get(_DEFAULT_DTYPE)


def set_own_default_dtype(dtype: DType) -> bool:
    """Make ``dtype`` the default of the calling thread's rank alone; False, with nothing done, outside of ranks."""
    values = _bound.context.values
    if values is process_context.values:
        return False
    values[_DEFAULT_DTYPE] = dtype
    return True


@contextmanager
def bind_context(ambient: Context) -> Iterator[Context]:
    """Make ``ambient`` the calling thread's context within the block."""
    previous = _bound.context
    _bound.context = ambient
    AMBIENT.word += 1
    try:
        yield ambient
    finally:
        AMBIENT.word -= 1
        _bound.context = previous


def own_context() -> AbstractContextManager[Context]:
    """Bind a fresh context of the same rank within the block: for compilers and passes, whose building must not meet
    that of other threads, nor be captured."""
    around = context()
    fresh = Context(around.rank, around.size)
    fresh.mesh, fresh.values = around.mesh, around.values
    fresh._everywhere = [layer for layer in around._everywhere if layer.applies_to_building]
    return bind_context(fresh)


@contextmanager
def emit_at(builder: Builder, location: Location | None = None) -> Iterator[Builder]:
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


def set_grad_enabled(enabled: bool, cut: Any = None) -> bool:
    """Switch recording on or off for this rank; returns the previous setting. ``cut``: the blocker that this is."""
    if enabled and not AMBIENT.word:
        return True
    of_thread = _bound.context._of_thread
    previous = of_thread.grad_enabled
    if previous != enabled:
        of_thread.grad_enabled = enabled
        step = -1 if enabled else 1
        AMBIENT.word += step
        AMBIENT.quiet += step
        AMBIENT.silent += step
        alone = AMBIENT.silent == 1 and not enabled
        AMBIENT.silenced = threading.get_ident() if alone else 0
        AMBIENT.cut = cut if alone else None
    return previous
