"""Tables of applications: what an operator has been applied to is found again by operand types and attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any
from weakref import WeakSet

from argosy_phi_ops.context import AMBIENT, context, own_default_dtype
from argosy_phi_ops.declare.attribute_types import attribute_key
from argosy_phi_ops.eager import native, tiering
from argosy_phi_ops.eager.application import NUMBERS, Application
from argosy_phi_ops.eager.placement import device_of
from argosy_tensorcore.dtype import default_listeners
from argosy_tensorcore.storage import ArrayType
from argosy_tensorcore.tensor import Tensor

__all__ = ["ApplicationTable", "application_key", "apply", "forget"]

_TABLES: WeakSet[ApplicationTable] = WeakSet()


class ApplicationTable:
    """The applications of one operator, by at most ``limit`` keys.

    ``by_key`` has each under the types of its operands and its attributes (:func:`application_key`), and under what
    calls of it look like (`eager.calls`). ``by_types`` are those of one or two operands that need no more than a
    look at their types, for ``entry``: what takes calls with nothing but tensors. ``method`` takes those of methods
    without arguments: the same, or the operator itself where native code stands before it. ``call`` takes any call.
    An application that has no room any more leaves the table as a whole, its native plans included.
    """

    __slots__ = ("__weakref__", "by_key", "by_types", "call", "entry", "limit", "method")

    def __init__(self, limit: int = 1024) -> None:
        self.limit = limit
        self.by_key: dict[Any, Any] = {}
        self.by_types: dict[Any, Any] = {}
        self.call: Callable[..., Any] | None = None
        self.entry: Callable[..., Any] | None = None
        self.method: Any = None
        _TABLES.add(self)

    def applications(self) -> set[Any]:
        """Each of them once."""
        return set(self.by_key.values())

    def keep(self, key: Any, application: Any) -> None:
        """Let an application be found by a key."""
        before = self.by_key.get(key)
        if before is None and len(self.by_key) >= self.limit:
            self._drop(set(list(self.by_key.values())[: self.limit // 4 + 1]))
        elif before is not None and before is not application:  # another thread has made it, too
            self._drop({before})
        self.by_key[key] = application

    def clear(self) -> None:
        """Drop all applications."""
        self._drop(self.applications())

    def _drop(self, applications: set[Any]) -> None:
        self.by_types.clear()
        known = self.by_key.copy()  # other threads add to it, also while a list of its items is made
        for key in [key for key, application in known.items() if application in applications]:
            self.by_key.pop(key, None)
        for application in applications:
            if type(application) is Application:
                native.drop(application)

    def note_unary(self, x: Any, application: Application) -> None:
        """Let the entry find an application to one tensor, which the table keeps."""
        self.by_types[x] = application

    def note_binary(self, x: Any, y: Any, application: Application) -> None:
        """The same of one to two tensors, or a tensor and a number."""
        self.by_types.setdefault(x, {})[y] = application


def forget() -> None:
    """Drop all applications: something that they were made with has changed."""
    for table in list(_TABLES):
        table.clear()
    tiering.forget()


default_listeners.append(forget)


def application_key(operands: Sequence[Any], attributes: dict[str, Any]) -> tuple[Any, ...]:
    """What applications are told apart by: types, attributes, and the default dtype of a rank that has one of its own.
    AttributeError for tensors that are no plain arrays."""
    types = tuple([x.payload.array_type if type(x) is Tensor else type(x) for x in operands])
    named = attribute_key(attributes) if attributes else ()
    default = own_default_dtype() if AMBIENT.word else None
    return (types, named) if default is None else (types, named, default)


def apply(op: Any, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Apply ``op`` to tensors and numbers, beneath all layers: by the application to operands like these, made now if
    there is none."""
    table: ApplicationTable = op.applications
    key: tuple[Any, ...] | None
    try:
        key = application_key(operands, attributes)
        found = table.by_key.get(key)
    except (AttributeError, TypeError):  # a payload that is no plain array, attributes that are no plain data
        key = found = None
    silent = AMBIENT.word != 0 and not context().grad_enabled
    if found is None:
        return _first_application(table, key, op, operands, attributes, silent)
    if not found.fixed:
        return found.run_first(operands, silent)
    try:
        return found.run(operands, silent)
    except (ValueError, TypeError, IndexError) as error:
        found.explain(operands, error)
        raise


def _first_application(
    table: ApplicationTable, key: Any, op: Any, operands: Sequence[Any], attributes: dict[str, Any], silent: bool
) -> Any:
    """The first application to operands like these, which is kept where they are arrays and numbers of Python's."""
    kept = key is not None and all([type(t) is ArrayType or t in NUMBERS for t in key[0]])
    device = device_of(op.name, operands[:-1] if op.random else operands)
    if device is not None:
        there = import_module("argosy_phi_ops.eager.device_application").DeviceApplication(
            op, operands, attributes, device
        )
        if kept:
            table.keep(key, there)
        return there.run(operands, silent)
    application = Application(op, operands, attributes, key[0] if kept else None)
    results = application.run_first(operands, silent)
    if kept and application.may_be_kept():
        table.keep(key, application)
    return results
