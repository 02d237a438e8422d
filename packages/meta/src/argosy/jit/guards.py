"""What must be as it was for a captured program to be valid: the Python state that the function reads.

Watched are, from the function's closure cells and the globals it names, and from plain functions reached that way:

- numbers, strings, booleans and None, by value;
- layers: which sublayers, parameters, buffers and hooks they hold, their own plain attributes (``training`` among
  them), and whatever else the code names: functions, lists, methods and attributes of the user's class;
- optimizers: their plain attributes, gradient clip and rate, and which gradients there are;
- tensors by identity; what lists, tuples and dicts hold, up to 4,096 items;
- arrays, sets and bytearrays by identity and content, but for arrays in files (``memmap``);
- other objects with a ``__dict__`` and classes of the user's: what the code names of them.

What the capture itself changed is not watched; whether that was a counter tells :meth:`Guards.has_counter`. Not
watched are modules, functions' own code, and anything reached only through calls into other packages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dis import get_instructions
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

from numpy import memmap, ndarray

from argosy.jit.contents import MUTABLE, content_check
from argosy.jit.places import ABSENT, Attribute, Place, kind_of
from argosy.nn.hooks import CHANGES, Hooks
from argosy.nn.layer import Layer
from argosy.optimizer.optimizer import Optimizer
from argosy_phi_ops.settings import CHECK_INDEX, VALUES
from argosy_tensorcore.tensor import Tensor

__all__ = ["ABSENT", "FOLLOWED", "Guards", "watch"]

_PLAIN = frozenset({int, float, bool, str, bytes, complex, type(None)})
FOLLOWED = 64  # how many functions are followed
Item = tuple[Mapping[Any, Any], Any, Any]


class _Versions(dict[Any, Any]):
    """A watched place that always holds the version of a tensor's memory."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__()
        self.tensor = tensor

    def get(self, name: Any, default: Any = None) -> Any:
        """The version now."""
        return self.tensor.payload.version


class Guards:
    """Watched places: dictionary entries and closure cells, each with what it held."""

    __slots__ = (
        "cells", "contents", "functions", "held", "kinds", "layers", "leaves", "namespaces", "plain", "rare", "seen",
        "sequences",
    )  # fmt: skip

    def __init__(self) -> None:
        self.functions: list[FunctionType] = []  # of the user's, which may be reached
        self.leaves: list[Tensor] = []  # an optimizer's parameters, whose gradients it reads
        self.plain: list[Item] = []
        self.held: list[Item] = []
        self.cells: list[tuple[CellType, Any]] = []
        self.sequences: list[tuple[Any, tuple[Any, ...]]] = []
        #: Hooks, layers' own forwards and whether indices are checked, looked at after a change of any.
        self.rare: list[Item] = [(VALUES, CHECK_INDEX.name, CHECK_INDEX.read())]
        self.kinds: list[tuple[Place, Any]] = []  # tensors that come and go, of which the kind has to stay
        self.layers: dict[int, Layer] = {}  # by the id of their attributes' dictionary
        self.namespaces: list[tuple[dict[Any, Any], dict[Any, Any], bool]] = []
        self.contents: list[Callable[[], bool]] = []  # of arrays, sets, long lists: whether they are as they were
        self.seen = CHANGES.count

    def note_read(self, read: Sequence[tuple[Tensor, int]]) -> None:
        """Watch that tensors whose values a capture took as they were are not written."""
        self.plain += [(_Versions(x), f"the version of {x.name}", version) for x, version in read]

    def hold(self) -> bool:
        """Whether everything watched is as it was. One loop: this runs with every call."""
        for place, name, value in self.held:
            if place.get(name, ABSENT) is not value:
                return False
        for place, name, value in self.plain:
            now = place.get(name, ABSENT)
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
                if now is not value and (type(value) not in _PLAIN or type(now) is not type(value) or now != value):
                    return False
        if (self.kinds or self.contents) and not self.contents_hold():
            return False
        return self.seen == CHANGES.count or self._still()

    def contents_hold(self) -> bool:
        """Whether tensors that come and go are of the kinds of the capture, and arrays and the like unchanged."""
        for place, kind in self.kinds:
            if kind_of(place.get()) != kind:
                return False
        return all([same() for same in self.contents])

    def _still(self) -> bool:
        """The same for what changes rarely."""
        if any(place.get(name, ABSENT) != value for place, name, value in self.rare):
            return False
        self.seen = CHANGES.count
        return True

    def broken_guard(self) -> str:
        """Which watched place is not as it was, in words; empty when all are."""
        for place, name, value in (*self.held, *self.plain, *self.rare):
            now = place.get(name, ABSENT)
            if now is not value and (type(value) not in _PLAIN or type(now) is not type(value) or now != value):
                return f"{name} was {_text_of(value)} and is {_text_of(now)}"
        for cell, value in self.cells:
            if cell.cell_contents is not value and (type(value) not in _PLAIN or cell.cell_contents != value):
                return (
                    f"a variable of the enclosing function was {_text_of(value)} and is {_text_of(cell.cell_contents)}"
                )
        for entry, kind in self.kinds:
            if kind_of(entry.get()) != kind:
                return f"{entry} has another shape, dtype or stop_gradient"
        if not all(same() for same in self.contents):
            return "an array, a set or a list that it reads has other contents"
        return "" if self.hold() else "a list or dict that it reads holds other tensors or layers"

    def watch_kind(self, place: Place) -> None:
        """Of the tensor at ``place``, which each call replaces or which is an input, watch the kind alone."""
        kind = kind_of(place.get())
        self.held = [item for item in self.held if not place.is_at(item[0], item[1])]
        self.plain = [item for item in self.plain if not place.is_at(item[0], item[1])]
        self.cells = [item for item in self.cells if not place.is_at(item[0])]
        self.kinds.append((place, kind))

    def watch_namespace(self, place: dict[Any, Any], names: Iterable[Any] = ()) -> None:
        """Notice tensors that a capture puts in ``place`` under ``names`` (none: any) in the place of other things."""
        names = list(names)
        before = {name: place.get(name, ABSENT) for name in names} if names else dict(place)
        self.namespaces.append((place, before, not names))

    def added_places(self) -> list[tuple[Place, Any]]:
        """Places in namespaces that hold a traced tensor now, with what they held before."""
        return [
            (self.place(place, name), before.get(name, ABSENT))
            for place, before, any_name in self.namespaces
            for name in (list(place) if any_name else before)
            if _is_traced(place.get(name)) and before.get(name, ABSENT) is not place[name]
        ]

    def place(self, holder: Any, name: Any = None) -> Place:
        """The place of that name, a layer's attribute where ``holder`` is what a watched layer has."""
        layer = self.layers.get(id(holder))
        return Place(holder, name) if layer is None else Attribute(layer, name)

    def watch_before(self, place: Place, before: Any) -> None:
        """Watch that ``place`` holds ``before``, which is no tensor, unless that is watched already."""
        watched = (*self.held, *self.plain, *((cell, None) for cell, _ in self.cells))
        if not any(place.is_at(*item[:2]) for item in watched):
            self.held.append((place.holder, place.name, before))
        if type(place) is Attribute:
            self.held.append((place.layer._buffers, place.name, ABSENT))  # where its tensor will be

    def has_counter(self) -> bool:
        """Whether a number or string of the user's has another value since, as a counter of calls has."""
        return (
            any(_has_moved(value, place.get(name, ABSENT)) for place, name, value in self.plain)
            or any(_has_moved(value, cell.cell_contents) for cell, value in self.cells)
            or any(not _are_same(now, items) for now, items in self.sequences)
            or any(not same() for same in self.contents)
        )

    def keep_unchanged(self) -> None:
        """Stop watching what has changed since: the capture did it."""
        self.held = [item for item in self.held if item[0].get(item[1], ABSENT) is item[2]]
        self.plain = [item for item in self.plain if item[0].get(item[1], ABSENT) == item[2]]
        self.cells = [(cell, value) for cell, value in self.cells if cell.cell_contents is value]
        self.sequences = [(now, items) for now, items in self.sequences if _are_same(now, items)]
        self.contents = [same for same in self.contents if same()]


def watch(function: Any, arguments: Iterable[Any]) -> Guards:
    """Guards for a call of ``function`` (a method watches its instance, too) with ``arguments``."""
    arguments = list(arguments)
    names: set[str] = set()
    while True:  # what is named may be known only after what it is named of was looked at
        watcher = _Watcher(names)
        watcher.function(function)
        watcher.in_arguments = True
        for x in arguments:
            watcher.value(x)
        if watcher.names == names:
            return watcher.guards
        names = watcher.names


def _is_traced(x: Any) -> bool:
    return type(x) is Tensor and x.payload.is_traced


def _has_moved(value: Any, now: Any) -> bool:
    """Whether a plain value became another one; None stands for what is not there yet."""
    return value is not None and type(value) in _PLAIN and type(now) in _PLAIN and now != value


def _are_same(now: Any, items: tuple[Any, ...]) -> bool:
    """Whether a list or dict holds these."""
    return len(now) == len(items) and all(
        x is y or (type(x) in _PLAIN and type(x) is type(y) and x == y) for x, y in zip(now, items, strict=True)
    )


def _text_of(value: Any) -> str:
    return "missing" if value is ABSENT else repr(value) if type(value) in _PLAIN else f"another {type(value).__name__}"


class _Watcher:
    def __init__(self, names: set[str]) -> None:
        self.guards = Guards()
        self.seen: set[int] = set()
        self.names = set(names)
        self.functions = 0
        self.in_arguments = False
        """Whether arguments are looked at, whose arrays are inputs."""

    def function(self, function: Any) -> None:
        """Watch what a plain Python function reads."""
        owners: list[Any] = []
        if isinstance(function, partial):
            for x in (*function.args, *function.keywords.values()):
                self.value(x)
            function = function.func
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
        self.names |= _names(function.__code__)
        for cell in function.__closure__ or ():
            self._cell(cell)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.value(default)
        for name in _globals(function.__code__) & function.__globals__.keys():
            self._entry(function.__globals__, name, function.__globals__[name])
        absent = _globals(function.__code__) - function.__globals__.keys()
        if absent:
            self.guards.watch_namespace(function.__globals__, absent)

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
        elif type(value) is Tensor or isinstance(value, _HELD):
            self.guards.held.append((place, name, value))
            self.value(value)
        elif isinstance(value, MethodType):
            self.function(value)
        elif hasattr(value, "__wrapped__"):
            self.function(value)
        elif isinstance(value, property):
            self.guards.held.append((place, name, value))
            self.value(value.fget)
        elif isinstance(value, SimpleNamespace) or _is_users_object(value) or _is_users_class(value):
            self.guards.held.append((place, name, value))
            self.value(value)
        elif callable(value) and not isinstance(value, type):
            self.guards.held.append((place, name, value))

    def value(self, x: Any) -> None:
        """Watch what hangs on a value."""
        if id(x) in self.seen or type(x) in _PLAIN or type(x) is Tensor:
            return
        if isinstance(x, (FunctionType, MethodType, partial)) or hasattr(x, "__wrapped__"):
            self.function(x)
            return
        if isinstance(x, MUTABLE):
            self._contents(x)
            return
        if _is_users_class(x):
            self._class(x)
            return
        self.seen.add(id(x))
        if isinstance(x, Layer):
            self._layer(x)
        elif isinstance(x, Optimizer):
            self.guards.leaves.extend(x._parameter_list)
            self._attributes(x.__dict__, ("_pending", "_restored", "_accumulators", "_master_weights", "_groups"))
        elif isinstance(x, (list, tuple, dict)):
            self._sequence(x)
        elif isinstance(x, SimpleNamespace) or _is_users_object(x):
            self._class(type(x))
            self._watch_names(vars(x))
            self.guards.watch_namespace(vars(x))

    def _contents(self, x: Any) -> None:
        if not (self.in_arguments and isinstance(x, ndarray)) and not isinstance(x, memmap):
            self.seen.add(id(x))
            self.guards.contents.append(content_check(x))

    def _watch_names(self, place: Any) -> None:
        """Watch what the code names of a namespace."""
        for name, value in [(n, v) for n, v in place.items() if n in self.names]:
            self._entry(place, name, value)

    def _class(self, cls: type) -> None:
        """Watch what the code names of a user's class, and follow its methods."""
        for c in filter(_is_users_class, cls.__mro__):
            if id(c) not in self.seen:
                self.seen.add(id(c))
                self._watch_names(vars(c))

    def _layer(self, layer: Layer) -> None:
        own = layer.__dict__
        self.guards.layers[id(own)] = layer
        self.guards.watch_namespace(own)
        for kind in ("_parameters", "_buffers", "_sub_layers"):
            members = own.get(kind, {})
            self.guards.watch_namespace(members)
            if type(layer).__module__ == _CONTAINERS:  # which hold whatever number
                self.guards.sequences.append((members.values(), tuple(members.values())))
            for name, member in members.items():
                self.guards.held.append((members, name, member))
                if kind == "_sub_layers" and member is not None:
                    self.value(member)
        self._attributes(own, ("_full_name", "_dtype", "_parameters", "_buffers", "_sub_layers", "_state_dict_hooks"))
        for kind in ("_forward_pre_hooks", "_forward_post_hooks"):
            self._hooks(own[kind])
        self.guards.rare.append((own, "forward", own.get("forward", ABSENT)))
        if _is_users_class(type(layer)):
            self.function(type(layer).forward)
            self._class(type(layer))
        for name in self.names & own.keys() - _OF_LAYERS:
            if type(own[name]) not in _PLAIN and type(own[name]) is not Tensor:
                self._entry(own, name, own[name])

    def _hooks(self, hooks: Hooks) -> None:
        self.guards.rare.append((vars(hooks), "changes", vars(hooks).get("changes", ABSENT)))
        for hook, _ in hooks.values():
            self.value(hook)

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
        if len(items) <= _SHORT or all(type(v) is Tensor or isinstance(v, Layer) for v in values):
            self.guards.sequences.append((values, tuple(values)))
        elif not isinstance(items, tuple):
            self.guards.contents.append(content_check(values))
        for x in list(values):
            self.value(x)


_SHORT = 64  # as many things as a list or dict may hold that are no tensors or layers, to be compared by value
_HELD = (Layer, Optimizer, FunctionType, partial, list, tuple, dict, *MUTABLE)
_OF_LAYERS = frozenset(vars(Layer())) | {"forward"}
_CONTAINERS = "argosy.nn.container"
_NOT_USERS = frozenset({"argosy", "argosy_autograd", "argosy_phi_ops", "argosy_tensorcore", "argosy_pir", "builtins"})
_OF_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL"})
_NOT_FOLLOWED = ("numpy", "types", "_frozen_importlib", "typing", "abc", "enum", "collections")


def _names(code: CodeType) -> set[str]:
    """Names of globals and attributes that the code and the functions defined in it use."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _globals(code: CodeType) -> frozenset[str]:
    """Those of them that are globals: an attribute may be called as some global is."""
    known = _known_globals.get(code)
    if known is None:
        names = {each.argval for each in get_instructions(code) if each.opname in _OF_GLOBALS}
        inner = [_globals(each) for each in code.co_consts if isinstance(each, CodeType)]
        known = _known_globals[code] = frozenset(names).union(*inner)
    return known


_known_globals: WeakKeyDictionary[CodeType, frozenset[str]] = WeakKeyDictionary()  # of code that lives


def _is_users_class(x: Any) -> bool:
    return isinstance(x, type) and x.__module__.partition(".")[0] not in (*_NOT_USERS, *_NOT_FOLLOWED)


def _is_users_object(x: Any) -> bool:
    return hasattr(x, "__dict__") and not callable(x) and _is_users_class(type(x))
