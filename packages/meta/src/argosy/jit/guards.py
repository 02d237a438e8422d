"""What must be as it was for a captured program to be valid: the Python state that the function reads.

Watched are, from the function's closure cells and the globals it names, and from plain functions reached that way:

- numbers, strings, booleans and None, by value;
- layers: which sublayers, parameters and buffers they hold, and their own plain attributes (``training`` among them);
- optimizers: their plain attributes, gradient clip and rate, and which gradients there are;
- tensors, and tensors and layers in lists, tuples and dicts, by identity;
- other objects with a ``__dict__``: plain attributes, tensors and layers that the code names.

What the capture itself changed is not watched; whether that was a counter tells :meth:`Guards.counted`. Not watched are
modules, classes, functions' own code, attributes deeper than that, and anything reached only through calls into other
packages.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from argosy.nn.layer import Layer
from argosy.optimizer.optimizer import Optimizer
from argosy_autograd.modes import no_grad
from argosy_phi_ops.dispatch import write
from argosy_phi_ops.errors import CaptureError
from argosy_tensorcore.tensor import Tensor

__all__ = ["FOLLOWED", "Guards", "watch"]

_PLAIN = frozenset({int, float, bool, str, bytes, complex, type(None)})
FOLLOWED = 64  # how many functions are followed
_ABSENT = object()
Item = tuple[dict[Any, Any], Any, Any]


class Guards:
    """Watched places: dictionary entries and closure cells, each with what it held."""

    __slots__ = ("cells", "functions", "held", "leaves", "plain", "sequences")

    def __init__(self) -> None:
        self.functions: list[FunctionType] = []  # of the user's, which may be reached
        self.leaves: list[Tensor] = []  # an optimizer's parameters, whose gradients it reads
        self.plain: list[Item] = []
        self.held: list[Item] = []
        self.cells: list[tuple[CellType, Any]] = []
        self.sequences: list[tuple[Any, tuple[Any, ...]]] = []

    def hold(self) -> bool:
        """Whether everything watched is as it was. One loop: this runs with every call."""
        for place, name, value in self.held:
            if place.get(name, _ABSENT) is not value:
                return False
        for place, name, value in self.plain:
            now = place.get(name, _ABSENT)
            if now is not value and (type(now) is not type(value) or now != value):
                return False
        for cell, value in self.cells:
            now = cell.cell_contents
            if now is not value and (type(value) not in _PLAIN or type(now) is not type(value) or now != value):
                return False
        for sequence, items in self.sequences:
            if len(sequence) != len(items):
                return False
            for now, value in zip(sequence, items, strict=True):
                if now is not value:
                    return False
        return True

    def broken(self) -> str:
        """Which watched place is not as it was, in words; empty when all are."""
        for place, name, value in (*self.held, *self.plain):
            now = place.get(name, _ABSENT)
            if now is not value and (type(value) not in _PLAIN or type(now) is not type(value) or now != value):
                return f"{name} was {_shown(value)} and is {_shown(now)}"
        for cell, value in self.cells:
            if cell.cell_contents is not value and (type(value) not in _PLAIN or cell.cell_contents != value):
                return f"a variable of the enclosing function was {_shown(value)} and is {_shown(cell.cell_contents)}"
        return "" if self.hold() else "a list or dict that it reads holds other tensors or layers"

    def take_back(self) -> None:
        """Within a capture, at its end: where Python put a traced tensor in the place of a concrete one (``self.mean
        =
        0.9 * self.mean + ...``), write its value to the concrete one instead, which is a state, and put that back.

        Raises CaptureError where there was no tensor of that type before.
        """
        for place, name, value, now in self._replaced():
            _put(place, name, value)
            _check_state(_called(name), value, now)
            with no_grad():
                write(value, now.detach())

    def cannot_take_back(self) -> str:
        """Why :meth:`take_back` would raise; empty where it would not."""
        try:
            for _, name, value, now in self._replaced():
                _check_state(_called(name), value, now)
        except CaptureError as error:
            return str(error)
        return ""

    def _replaced(self) -> list[tuple[Any, Any, Any, Any]]:
        """Watched places that hold a traced tensor now: the dict and key or the cell and None, what was there, and the
        tensor.
        """
        entries = [(d, k, value, d.get(k, _ABSENT)) for d, k, value in (*self.held, *self.plain)]
        cells = [(cell, None, value, cell.cell_contents) for cell, value in self.cells]
        return [item for item in (*entries, *cells) if item[3] is not item[2] and _is_traced(item[3])]

    def counted(self) -> bool:
        """Whether a number or string of the user's has another value since, as a counter of calls has."""
        return any(_has_moved(value, place.get(name, _ABSENT)) for place, name, value in self.plain) or any(
            _has_moved(value, cell.cell_contents) for cell, value in self.cells
        )

    def keep_unchanged(self) -> None:
        """Stop watching what has changed since: the capture did it."""
        self.held = [item for item in self.held if item[0].get(item[1], _ABSENT) is item[2]]
        self.plain = [item for item in self.plain if item[0].get(item[1], _ABSENT) == item[2]]
        self.cells = [(cell, value) for cell, value in self.cells if cell.cell_contents is value]
        self.sequences = [(s, items) for s, items in self.sequences if len(s) == len(items)]


def watch(function: Any, arguments: Iterable[Any]) -> Guards:
    """Guards for a call of ``function`` (a method watches its instance, too) with ``arguments``."""
    watcher = _Watcher()
    watcher.function(function)
    for x in arguments:
        watcher.value(x)
    return watcher.guards


def _is_traced(x: Any) -> bool:
    return type(x) is Tensor and x.payload.is_traced


def _has_moved(value: Any, now: Any) -> bool:
    """Whether a plain value became another one; None stands for what is not there yet."""
    return value is not None and type(value) in _PLAIN and type(now) in _PLAIN and now != value


def _put(place: Any, name: Any, value: Any) -> None:
    if name is None:
        place.cell_contents = value
    else:
        place[name] = value


def _called(name: Any) -> str:
    return "a variable of the enclosing function" if name is None else str(name)


def _check_state(name: str, old: Any, new: Any) -> None:
    if type(old) is not Tensor or list(old.shape) != list(new.shape) or old.dtype is not new.dtype:
        was = f"{old.dtype.name} {list(old.shape)}" if type(old) is Tensor else _shown(old)
        raise CaptureError(
            f"the captured function sets {name}, which was {was}, to a tensor that it computes, {new.dtype.name} "
            f"{list(new.shape)}. Between calls only states live on: make it a tensor of that shape and dtype "
            "beforehand, or return the value"
        )


def _shown(value: Any) -> str:
    return (
        "missing" if value is _ABSENT else repr(value) if type(value) in _PLAIN else f"another {type(value).__name__}"
    )


class _Watcher:
    def __init__(self) -> None:
        self.guards = Guards()
        self.seen: set[int] = set()
        self.names: set[str] = set()
        self.functions = 0

    def function(self, function: Any) -> None:
        """Watch what a plain Python function reads."""
        owners = []
        while isinstance(function, MethodType) or hasattr(function, "__wrapped__"):
            owners.append(getattr(function, "__self__", None))
            function = getattr(function, "__wrapped__", None) or function.__func__
        self._code(function)
        for owner in owners:
            self.value(owner)

    def _code(self, function: Any) -> None:
        if not isinstance(function, FunctionType) or id(function) in self.seen or self.functions >= FOLLOWED:
            return
        if function.__module__ is not None and function.__module__.partition(".")[0] in _NOT_USERS:
            return
        self.seen.add(id(function))
        self.functions += 1
        self.guards.functions.append(function)
        names = _names(function.__code__)
        self.names |= names
        for cell in function.__closure__ or ():
            self._cell(cell)
        for name in names & function.__globals__.keys():
            self._entry(function.__globals__, name, function.__globals__[name])

    def _cell(self, cell: CellType) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # still empty
            return
        self.guards.cells.append((cell, value))
        self.value(value)

    def _entry(self, place: dict[Any, Any], name: Any, value: Any) -> None:
        if type(value) in _PLAIN:
            self.guards.plain.append((place, name, value))
        elif type(value) is Tensor or isinstance(value, (Layer, Optimizer, FunctionType, list, tuple, dict)):
            self.guards.held.append((place, name, value))
            self.value(value)
        elif isinstance(value, MethodType):
            self.function(value)
        elif hasattr(value, "__wrapped__"):
            self.function(value)
        elif _is_users_object(value):
            self.guards.held.append((place, name, value))
            self.value(value)

    def value(self, x: Any) -> None:
        """Watch what hangs on a value."""
        if id(x) in self.seen or type(x) in _PLAIN or type(x) is Tensor:
            return
        if isinstance(x, (FunctionType, MethodType)) or hasattr(x, "__wrapped__"):
            self.function(x)
            return
        self.seen.add(id(x))
        if isinstance(x, Layer):
            self._layer(x)
        elif isinstance(x, Optimizer):
            self.guards.leaves.extend(x._parameter_list)
            self._attributes(x.__dict__, ("_pending", "_accumulators", "_master_weights", "_groups"))
        elif isinstance(x, (list, tuple, dict)):
            self._sequence(x)
        elif _is_users_object(x):
            self._methods(type(x))
            named = {name: value for name, value in vars(x).items() if name in self.names}
            for name, value in named.items():
                self._entry(vars(x), name, value)

    def _methods(self, cls: type) -> None:
        """Follow the methods of a user's class that the code names."""
        methods = {n: f for c in reversed(cls.__mro__) for n, f in vars(c).items() if isinstance(f, FunctionType)}
        while called := [methods.pop(name) for name in self.names & methods.keys()]:
            for method in called:
                self._code(method)

    def _layer(self, layer: Layer) -> None:
        own = layer.__dict__
        for kind in ("_parameters", "_buffers", "_sub_layers"):
            members = own.get(kind, {})
            for name, member in members.items():
                self.guards.held.append((members, name, member))
                if kind == "_sub_layers" and member is not None:
                    self.value(member)
        self._attributes(own, ("_full_name", "_dtype", "_parameters", "_buffers", "_sub_layers", "_state_dict_hooks"))
        if type(layer).__module__.partition(".")[0] not in _NOT_USERS:
            self.function(type(layer).forward)

    def _attributes(self, own: dict[str, Any], but: tuple[str, ...]) -> None:
        for name, value in own.items():
            if name not in but and (type(value) in _PLAIN or type(value) is Tensor):
                self._entry(own, name, value)
            elif name in ("_grad_clip", "_rate"):
                self.guards.held.append((own, name, value))

    def _sequence(self, items: Any) -> None:
        values = items.values() if isinstance(items, dict) else items
        if len(items) > 4096:
            return
        held = [v for v in values if type(v) is Tensor or isinstance(v, Layer)]
        if len(held) == len(items):
            self.guards.sequences.append((values, tuple(values)))
        for layer in held:
            if isinstance(layer, Layer):
                self.value(layer)


_NOT_USERS = frozenset({"argosy", "argosy_autograd", "argosy_phi_ops", "argosy_tensorcore", "argosy_pir", "builtins"})


def _names(code: CodeType) -> set[str]:
    """Names of globals and attributes that the code and the functions defined in it use."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _is_users_object(x: Any) -> bool:
    if isinstance(x, type) or not hasattr(x, "__dict__") or callable(x):
        return False
    module = type(x).__module__.partition(".")[0]
    return module not in _NOT_USERS and module not in ("numpy", "types", "_frozen_importlib")
