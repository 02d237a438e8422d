"""Dialects: named families of operations, each described by an :class:`OpDef`.

Dialects are found on first use: built-in ones here, others through the entry-point group ``argosy.dialects``
(a loader that returns a :class:`Dialect`). Operations of dialects nobody knows are kept opaquely: they
parse, print and move, but nothing is verified or assumed about them.
"""

from __future__ import annotations

from _thread import RLock
from sys import _getframe

from argosy_pir.errors import DialectError, VerifyError
from argosy_pir.fork import hold_at_fork
from argosy_pir.opdef import OpDef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from argosy_pir.core import Operation

_BUILTIN = {
    "builtin": "argosy_pir.dialects.builtin:DIALECT",
    "control": "argosy_pir.dialects.control:DIALECT",
    "test": "argosy_pir.dialects.test:DIALECT",
}
ENTRY_POINTS = "argosy.dialects"


class Dialect:
    """A family of operations under one prefix.

    ``ops`` describe the operations. ``resolve(full name) -> OpDef | None`` is asked for names not among
    them, for dialects that make definitions on demand. ``patterns`` are canonicalisation patterns, or a
    function that returns them (so that loading a dialect stays cheap). ``version`` is a pair (major, minor)
    written into saved programs. ``hint(full name)`` adds to the error about an operation that the dialect lacks.
    """

    __slots__ = ("hint", "name", "ops", "owner", "patterns", "resolve", "version")

    def __init__(
        self,
        name: str,
        ops: Iterable[OpDef] = (),
        version: tuple[int, int] = (1, 0),
        resolve: Callable[[str], OpDef | None] | None = None,
        patterns: Iterable[Any] | Callable[[], Iterable[Any]] = (),
        hint: Callable[[str], str] | None = None,
    ) -> None:
        if not name.isidentifier():
            raise DialectError(f"a dialect's name is an identifier, got {name!r}")
        self.name = name
        self.version = version
        self.resolve = resolve
        self.patterns = patterns
        self.hint = hint
        self.owner = _getframe(1).f_globals.get("__name__", "?")
        self.ops: dict[str, OpDef] = {}
        for definition in ops:
            self.add(definition)

    def add(self, definition: OpDef) -> OpDef:
        """Add an operation; raises ``DialectError`` for a wrong prefix or a second definition."""
        if definition.dialect != self.name:
            raise DialectError(f"operation '{definition.name}' does not start with '{self.name}.'")
        old = self.ops.get(definition.name)
        if old is not None and old is not definition:
            raise DialectError(
                f"operation '{definition.name}' is defined twice: by {old.owner} and by {definition.owner}"
            )
        self.ops[definition.name] = definition
        return definition

    def definition(self, name: str) -> OpDef | None:
        """The description of operation ``name`` (with the prefix), or None."""
        found = self.ops.get(name)
        if found is None and self.resolve is not None:
            with _lock:
                found = self.ops.get(name) or self.resolve(name)
                if found is not None:
                    self.add(found)
        return found

    def lacks(self, op: Operation) -> VerifyError:
        """The error about an operation that is not described here."""
        said = "" if self.hint is None else self.hint(op.name)
        return VerifyError(f"dialect '{self.name}' has no operation of this name{said}", op)

    def __repr__(self) -> str:
        return f"<Dialect {self.name} {self.version[0]}.{self.version[1]} of {self.owner}>"


_dialects: dict[str, Dialect] = {}
_absent: set[str] = set()
_lock = hold_at_fork(RLock())  # several ranks may live in one process, a thread each


def register_dialect(dialect: Dialect) -> Dialect:
    """Make ``dialect`` known. The same object twice is fine; another one of that name raises
    ``DialectError``."""
    old = _dialects.setdefault(dialect.name, dialect)
    if old is not dialect:
        raise DialectError(f"dialect '{dialect.name}' is registered twice: by {old.owner} and by {dialect.owner}")
    _absent.discard(dialect.name)
    return dialect


def get_dialect(name: str) -> Dialect | None:
    """The dialect ``name``, loaded on first use; None where nobody provides it."""
    found = _dialects.get(name)
    if found is None and name not in _absent:
        with _lock:
            found = _dialects.get(name) or _load(name)
            if found is None:
                _absent.add(name)
    return found


def get_definition(name: str) -> OpDef | None:
    """The description of operation ``name`` such as ``"builtin.call"``; None for unknown ones."""
    prefix = name.partition(".")[0]
    dialect = _dialects.get(prefix) or get_dialect(prefix)
    if dialect is None:
        return None
    return dialect.ops.get(name) or dialect.definition(name)


def loaded_dialects() -> tuple[Dialect, ...]:
    """The dialects known so far, without looking for more."""
    return tuple(_dialects.values())


def has_trait(op: Operation, trait: str) -> bool:
    """Whether the operation is known and has ``trait``."""
    definition = get_definition(op.name)
    return definition is not None and trait in definition.traits


def check_operation(op: Operation, inferred: bool = False) -> None:
    """Check one operation against its description (not its regions' contents); raises ``VerifyError``. ``inferred``:
    its result types come from the description's own rule, just now."""
    definition = get_definition(op.name)
    if definition is not None:
        definition.check(op, inferred)
        return
    dialect = get_dialect(op.dialect)
    if dialect is not None:
        raise dialect.lacks(op)


def _load(name: str) -> Dialect | None:
    """Find ``name`` among the built-in dialects, then the entry points."""
    target = _BUILTIN.get(name)
    if target is not None:
        from importlib import import_module

        module, _, attribute = target.partition(":")
        return register_dialect(getattr(import_module(module), attribute))
    return _load_plugin(name)


def _load_plugin(name: str) -> Dialect | None:
    from importlib.metadata import entry_points

    found = {point.value: point for point in entry_points(group=ENTRY_POINTS, name=name)}
    if not found:
        return None
    if len(found) > 1:
        raise DialectError(f"dialect '{name}' is provided twice: by {' and by '.join(sorted(found))}")
    value, point = next(iter(found.items()))
    try:
        loaded = point.load()
        dialect = loaded if isinstance(loaded, Dialect) else loaded()
    except Exception as error:
        raise DialectError(f"dialect '{name}' cannot be loaded from {value}: {error}") from error
    if not isinstance(dialect, Dialect) or dialect.name != name:
        raise DialectError(f"entry point {value} should give dialect '{name}' but gave {dialect!r}")
    return register_dialect(dialect)
