"""What an operator takes: operands (tensors) and attributes (plain data), read off the Python signature of its body.

The annotation tells them apart: ``Tensor`` is an operand (a Python number is taken, too), ``Tensor | None`` an optional
one, ``Sequence[Tensor]`` a list of them; anything else is an attribute. Reading the code object is ten times cheaper
than ``inspect.signature``, which matters for hundreds of operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from argosy_phi_ops.declare.attribute_types import fits, quick_types, spell
from argosy_phi_ops.errors import OperatorError
from argosy_tensorcore.dtype import DType, as_dtype
from argosy_tensorcore.suggestions import did_you_mean
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    import inspect

__all__ = ["ATTRIBUTE", "LIST", "OPERAND", "OPTIONAL", "SHARED_ALIASES", "Parameter", "Signature"]

OPERAND, OPTIONAL, LIST, ATTRIBUTE = "operand", "optional", "list", "attribute"
_KINDS = {"Tensor": OPERAND, "Tensor | None": OPTIONAL, "Sequence[Tensor]": LIST}
_SCALARS = ("int", "int | None", "float", "float | None", "bool")
REQUIRED = object()

SHARED_ALIASES = {"input": "x", "x": "input", "other": "y", "dim": "axis", "keepdims": "keepdim", "tensors": "x"}
"""Other names that every operator takes for its parameters (as the wheel does), unless it uses them itself."""


class Parameter:
    """One parameter: its name, kind and default (``REQUIRED`` where there is none).

    note: its annotation; scalar: an attribute that is one number, for which a tensor of one element may stand; fitting:
    types of which every value fits, None where the annotation does not tell.
    """

    __slots__ = ("default", "fitting", "kind", "name", "note", "scalar")

    def __init__(self, name: str, kind: str, default: Any, note: str = "") -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.note = note
        self.scalar = note in _SCALARS
        self.fitting = quick_types(note) if kind == ATTRIBUTE and note else None

    def attribute(self, value: Any) -> Any:
        """``value``, given for an attribute, as plain data."""
        return _item(value) if self.scalar else normalise_attribute(value)


class Signature:
    """The parameters of an operator, and the binding of a call to them."""

    __slots__ = (
        "aliases", "attributes", "hidden", "keyword_only", "lists", "name", "operands", "parameters", "segmented",
        "visible",
    )  # fmt: skip

    def __init__(
        self, name: str, body: Callable[..., Any], aliases: dict[str, str], hidden: Sequence[str] = ()
    ) -> None:
        code = body.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        defaults = body.__defaults__ or ()
        first = code.co_argcount - len(defaults)
        by_name = dict(zip(code.co_varnames[first : code.co_argcount], defaults, strict=True))
        by_name.update(body.__kwdefaults__ or {})
        notes = body.__annotations__
        self.name = name
        self.parameters = tuple(
            Parameter(p, _KINDS.get(notes.get(p, ""), ATTRIBUTE), by_name.get(p, REQUIRED), notes.get(p, ""))
            for p in code.co_varnames[:count]
        )
        self.operands = tuple(p for p in self.parameters if p.kind != ATTRIBUTE)
        self.attributes = tuple(p for p in self.parameters if p.kind == ATTRIBUTE)
        self.segmented = any(p.kind != OPERAND for p in self.operands)
        self.aliases = aliases
        self.hidden = frozenset(hidden)
        self.visible = [p for p in self.parameters if p.name not in self.hidden]
        self.lists = any(p.kind == LIST for p in self.parameters)
        self.keyword_only = frozenset(code.co_varnames[code.co_argcount : count])

    def inspect_signature(
        self, notes: dict[str, str], out: bool, extra: dict[str, Any] | None = None, positional_out: bool = False
    ) -> inspect.Signature:
        """What ``inspect.signature`` shows: the parameters with their annotations, ``name=None``, the keywords
        ``extra`` and, with ``out``, the tensor that receives the result.
        """
        import inspect  # costs milliseconds that few programs need

        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        seen = [
            inspect.Parameter(
                p.name,
                kinds[p.name in self.keyword_only],
                default=inspect.Parameter.empty if p.default is REQUIRED else p.default,
                annotation=notes.get(p.name, Any),
            )
            for p in self.parameters
            if p.name not in self.hidden
        ]
        if positional_out:
            seen.append(inspect.Parameter("out", kinds[0], default=None, annotation="Tensor | None"))
        if not any(p.name == "name" for p in seen):
            seen.append(inspect.Parameter("name", kinds[0], default=None, annotation="str | None"))
        if out and not any(p.name == "out" for p in seen):
            seen.append(inspect.Parameter("out", kinds[1], default=None, annotation="Tensor | None"))
        seen += [inspect.Parameter(k, kinds[1], default=v, annotation=Any) for k, v in (extra or {}).items()]
        seen.sort(key=lambda p: p.kind)  # stable: keywords go last
        return inspect.Signature(seen, return_annotation=notes.get("return", Any))

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Flat operands and attributes of a call.

        An operator with optional or listed operands gets the attribute ``segments``: for each operand parameter the
        number of operands it holds (-1 for a missing optional one). Raises ``TypeError`` as Python would for a wrong
        call.
        """
        given = self.match(args, kwargs)
        operands: list[Any] = []
        segments: list[int] = []
        for p in self.operands:
            segments.append(self._take(p, given[p.name], operands))
        attributes = {p.name: p.attribute(given[p.name]) for p in self.attributes}
        self.check(attributes)
        if self.segmented:
            attributes["segments"] = tuple(segments)
        return tuple(operands), attributes

    def check(self, attributes: Mapping[str, Any]) -> None:
        """Raise :class:`OperatorTypeError` for plain data of a kind that its parameter does not take."""
        for p in self.attributes:
            value = attributes[p.name]
            if p.fitting is not None and type(value) not in p.fitting and value is not p.default:
                if not fits(value, p.note):
                    raise unfit(self.name, p.name, spell(p.note), value)

    def check_given(self, given: Mapping[str, Any]) -> None:
        """The same for what was given, which becomes plain data only where its type does not tell."""
        for p in self.attributes:
            value = given[p.name]
            if p.fitting is not None and type(value) not in p.fitting and value is not p.default:
                value = p.attribute(value)
                if not (type(value) in p.fitting or fits(value, p.note)):
                    raise unfit(self.name, p.name, spell(p.note), value)

    def match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The value of every parameter. Raises ``TypeError`` as Python would for a wrong call."""
        visible = self.visible
        if self.lists:
            args = self.gather_list(args)
        if len(args) > len(visible):
            if len(args) != len(visible) + 1 or not (args[-1] is None or isinstance(args[-1], str)):
                names = ", ".join(p.name for p in visible)
                raise TypeError(f"{self.name}() takes {len(visible)} arguments ({names}), got {len(args)}")
            args = args[:-1]  # Paddle's trailing name=None
        given = {p.name: value for p, value in zip(visible, args, strict=False)}
        for key, value in kwargs.items():
            name = key if any(p.name == key for p in self.parameters) else self._find_alias(key)
            if name in given:
                raise TypeError(f"{self.name}() got several values for argument {name!r}; expected one")
            given[name] = value
        given.pop("name", None)
        for p in self.parameters:
            if p.name not in given:
                if p.default is REQUIRED:
                    raise TypeError(f"{self.name}() needs argument {p.name!r}")
                given[p.name] = p.default
        if len(given) > len(self.parameters):
            taken = [p.name for p in visible]
            unknown = min(given.keys() - {p.name for p in self.parameters})
            meant = did_you_mean(unknown, taken)
            raise TypeError(f"{self.name}() has no argument {unknown!r}{meant or '.'} It takes {', '.join(taken)}")
        return given

    def _find_alias(self, key: str) -> str:
        """The parameter meant by another name: one of the operator's own aliases, or one that all operators share."""
        shared = SHARED_ALIASES.get(key, key)
        return self.aliases.get(key) or (shared if any(p.name == shared for p in self.parameters) else key)

    def gather_list(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """``args`` where tensors standing in a row at the place of a list are put into one: meshgrid(x, y)."""
        at = next((i for i, p in enumerate(self.parameters) if p.kind == LIST), len(args))
        if at >= len(args) or not is_operand(args[at]):
            return args
        stop = next((i for i in range(at, len(args)) if not is_operand(args[i])), len(args))
        return (*args[:at], args[at:stop], *args[stop:])

    def _take(self, p: Parameter, value: Any, operands: list[Any]) -> int:
        if p.kind == LIST:
            items = self._items(p, value)
            operands += [self._operand(p, item) for item in items]
            return len(items)
        if value is None and p.kind == OPTIONAL:
            return -1
        operands.append(self._operand(p, value))
        return 1

    def _items(self, p: Parameter, value: Any) -> list[Any]:
        if isinstance(value, str) or not hasattr(type(value), "__iter__"):
            kind = type(value).__name__
            raise OperatorTypeError(f"{self.name}(): argument {p.name!r} must be a sequence of Tensors, got {kind}")
        return list(value)

    def _operand(self, p: Parameter, value: Any) -> Any:
        if is_operand(value):
            return value
        if isinstance(value, int):
            return int(value)
        raise OperatorTypeError(
            f"{self.name}(): argument {p.name!r} must be a Tensor or a number, got {type(value).__name__}"
        )

    def regroup(self, operands: Sequence[Any], attributes: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments of the body: the inverse of :meth:`bind`.

        A program that was saved when the operator had fewer parameters does without the others.
        """
        kwargs = dict(attributes)
        segments = kwargs.pop("segments", None)
        if segments is None:
            if not self.segmented:
                kwargs.update(zip((p.name for p in self.operands), operands, strict=True))
                return kwargs
            segments = (1,) * len(operands)
        if len(segments) < len(self.operands):
            segments = (*segments, *[-1] * (len(self.operands) - len(segments)))
        at = 0
        for p, count in zip(self.operands, segments, strict=True):
            taken = list(operands[at : at + max(count, 0)])
            kwargs[p.name] = taken if p.kind == LIST else taken[0] if taken else None
            at += max(count, 0)
        return kwargs


class OperatorTypeError(OperatorError, TypeError):
    """An operand is neither a tensor nor a number, or an attribute is of another type than it should be."""


def unfit(function: str, name: str, wanted: str, value: Any) -> OperatorTypeError:
    """The error of an argument that should be ``wanted``."""
    kind = type(value).__name__
    return OperatorTypeError(f"{function}(): argument {name!r} should be {wanted}, got {kind} {value!r:.60}")


def is_operand(value: Any) -> bool:
    """Whether ``value`` can be an operand: a tensor, an IR value or a Python number."""
    if type(value) in (Tensor, int, float, bool, complex):
        return True
    return hasattr(value, "replace_all_uses_with") or (hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0)


def normalise_attribute(value: Any) -> Any:
    """``value`` as plain hashable data: dtypes become names, lists tuples, tensors and numpy numbers Python numbers."""
    kind = type(value)
    if value is None or kind in (int, float, bool, str, complex):
        return value
    if kind in (list, tuple):
        return tuple(_item(item) for item in value)
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Tensor):
        return normalise_attribute(_elements(value))
    if isinstance(value, type) or (hasattr(value, "char") and hasattr(value, "itemsize")):
        return as_dtype(value).name
    if hasattr(value, "tolist"):
        return normalise_attribute(value.tolist())
    if isinstance(value, (list, tuple)):
        return tuple(_item(item) for item in value)
    if hasattr(value, "__index__") and not hasattr(value, "evaluate"):
        return value.__index__()
    return value


def _item(value: Any) -> Any:
    """One number of an attribute: a tensor of one element is that, whatever its rank."""
    if isinstance(value, Tensor) and value.ndim and value.size == 1:
        value = value.payload.known_elements().item() if _is_made_of_sizes(value) else value.item()
    return normalise_attribute(value)


def _is_made_of_sizes(x: Tensor) -> bool:
    return x.payload.is_traced and x.payload.known_elements() is not None


def _elements(x: Tensor) -> Any:
    """The elements as nested lists; sizes of a program being captured may be symbolic."""
    return x.payload.known_elements().tolist() if _is_made_of_sizes(x) else x.tolist()
