"""Functions composed of operators: what users call like an operator, but which needs no declaration of its own.

::

    @compose()
    def hstack(x: Sequence[Tensor]) -> Tensor:
        '''Tensors side by side.'''

A composed function is written with operators, so that gradients, capture, sharding and compiled code come with them.
Like an operator it takes Paddle's other names of its parameters, ``name`` and ``out``, becomes a method of ``Tensor``,
and has an in-place form where it says so. Its Python body may look at shapes and decide by them; where it looks at
values it runs eagerly only.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from argosy_phi_ops.declare.aliases import ALIASES
from argosy_phi_ops.declare.index import COMPOSED
from argosy_phi_ops.declare.operator import Operator, find_operator
from argosy_phi_ops.declare.signature import (
    ATTRIBUTE,
    LIST,
    OPERAND,
    OPTIONAL,
    REQUIRED,
    OperatorTypeError,
    Parameter,
    Signature,
    is_operand,
)
from argosy_phi_ops.errors import FOREIGN, OperatorError
from argosy_phi_ops.extension import evaluator
from argosy_tensorcore.tensor import Tensor

__all__ = ["FUNCTIONS", "Composition", "compose", "find_composition", "find_function"]

FUNCTIONS: dict[str, Composition] = {}
"""The composed functions declared so far; :func:`find_composition` imports what is missing."""

_VARIADIC = 0x04  # the flag of code objects with *args
_TENSORS: dict[str, tuple[type, ...]] = {OPERAND: (Tensor,), OPTIONAL: (Tensor, type(None)), LIST: ()}
"""Types of which operands can be given as they stand."""
_NOWHERE = (-1, False, None)  # what is known of a name that is no parameter's


def _rows(x: Tensor) -> list[Tensor]:
    return list(find_operator("unbind")(x))  # type: ignore[misc]


class _ShownSignature:
    def __get__(self, function: Composition | None, owner: type) -> Any:
        if function is None:
            raise AttributeError("__signature__")
        if function.variadic:
            return import_module("inspect").signature(function.body)
        return function.signature.inspect_signature(function.body.__annotations__, function.out)


class Composition:
    """A composed function; see the module's docstring."""

    __signature__ = _ShownSignature()
    view = False

    def __init__(
        self,
        body: Callable[..., Any],
        aliases: dict[str, str] | None = None,
        inplace: bool = False,
        out: bool = False,
        form: Callable[..., Any] | None = None,
        rows: bool = False,
    ) -> None:
        self.name = self.__name__ = body.__name__
        self.__doc__ = body.__doc__
        self.body = body
        self.inplace = inplace
        self.out = out
        self.form = form
        self.rows = rows
        self.variadic = bool(body.__code__.co_flags & _VARIADIC)
        self.signature = Signature(self.name, body, aliases or {})
        places = [p for p in self.signature.parameters if p.name not in self.signature.keyword_only]
        self.fewest = sum(p.default is REQUIRED for p in self.signature.parameters)
        self.most = len(places)
        self.fitting = [p.fitting if p.kind == ATTRIBUTE else _TENSORS[p.kind] for p in places]
        self.named = {p.name: (i, p.default is REQUIRED, self.fitting[i]) for i, p in enumerate(places)}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the body, with other names of its parameters resolved and the result put in ``out`` if it is given."""
        out = kwargs.pop("out", None) if self.out else None
        if self.variadic:
            result = self.body(*args, **kwargs)
        elif self._takes_named(args, kwargs) if kwargs else self._takes(args):
            try:
                result = self.body(*args, **kwargs)
            except FOREIGN as error:
                self._explain(self.signature.match(args, kwargs), error)
                raise
        else:
            if self.form is not None and (meant := self.form(self, args, kwargs)) is not None:
                _, args, kwargs = meant
            if self.rows and len(args) == 1 and isinstance(args[0], Tensor):
                args = (_rows(args[0]),)
            given = self.signature.match(args, kwargs)
            for p in self.signature.operands:
                given[p.name] = self._operand(p, given[p.name])
            result = self._apply_body(given)
        return result if out is None else evaluator().deliver(self, result, out)

    def _takes(self, args: tuple[Any, ...]) -> bool:
        """Whether the body can have the arguments as they stand: numbers of these types fit any value."""
        if not self.fewest <= len(args) <= self.most:
            return False
        for x, fitting in zip(args, self.fitting, strict=False):
            if fitting is not None and type(x) not in fitting:
                return False
        return True

    def _takes_named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """The same for a call with keywords, all of them names of parameters after those in a row."""
        needed = self.fewest - len(args)
        if self.form is not None or len(args) > self.most:
            return False
        for name, x in kwargs.items():
            at, required, fitting = self.named.get(name, _NOWHERE)
            if at < len(args) or (fitting is not None and type(x) not in fitting):
                return False
            needed -= required
        for x, fitting in zip(args, self.fitting, strict=False):
            if fitting is not None and type(x) not in fitting:
                return False
        return needed <= 0

    def _apply_body(self, given: dict[str, Any]) -> Any:
        """The body's result; errors of Python's insides become :class:`OperatorError`, as those of operators do."""
        self.signature.check_given(given)
        try:
            return self.body(**given)
        except FOREIGN as error:
            self._explain(given, error)
            raise

    def _explain(self, given: dict[str, Any], error: Exception) -> None:
        """Raise what is to be said to users of an error of Python's insides, where there is anything."""
        operands = [given[p.name] for p in self.signature.operands]
        known = [p for p in self.signature.attributes if not _is_traced(given[p.name])]  # others have no value to show
        attributes = {p.name: p.attribute(given[p.name]) for p in known}
        better = import_module("argosy_phi_ops.checks.error_messages").explain_error(self, operands, attributes, error)
        if better is not None:
            raise better from error

    def _operand(self, p: Parameter, value: Any) -> Any:
        """``value`` as what ``p`` takes: numbers become tensors. Raises :class:`OperatorTypeError` otherwise."""
        if value is None and p.kind == OPTIONAL:
            return None
        if self.rows and isinstance(value, Tensor):
            value = _rows(value)
        items = value if p.kind == LIST and isinstance(value, (list, tuple)) else [value]
        for item in items:
            if not is_operand(item):
                raise OperatorTypeError(
                    f"{self.name}(): argument {p.name!r} must be a Tensor or a number, got {type(item).__name__}"
                )
        made = [Tensor(v) if isinstance(v, (bool, int, float, complex)) else v for v in items]
        return made if p.kind == LIST else made[0]

    def __repr__(self) -> str:
        return f"<function {self.name}({', '.join(p.name for p in self.signature.parameters)}) composed of operators>"


def compose(**options: Any) -> Callable[[Callable[..., Any]], Composition]:
    """Decorator: declare a composed function.

    Options: ``aliases`` (other names of parameters), ``inplace`` (a variant ``name_`` exists), ``out`` (the result can
    be put in a given tensor), ``form`` (another way to write the call, of
    :mod:`argosy_phi_ops.declare.call_overloads`), ``rows`` (a tensor in place of a list of tensors is the list of its
    rows).
    """

    def declare(body: Callable[..., Any]) -> Composition:
        new = Composition(body, **options)
        if new.name in FUNCTIONS:
            raise OperatorError(f"function {new.name} is declared twice")
        FUNCTIONS[new.name] = new
        return new

    return declare


def find_composition(name: str) -> Composition | None:
    """The composed function of that name (or alias), or None."""
    name = ALIASES.get(name, name)
    if name not in FUNCTIONS and name in COMPOSED:
        import_module("argosy_phi_ops.compositions." + COMPOSED[name])
    return FUNCTIONS.get(name)


def find_function(name: str) -> Composition | Operator | None:
    """What users get under ``name``: a composed function, else the operator, or None."""
    return find_composition(name) or find_operator(name)


def _is_traced(x: Any) -> bool:
    """Whether a tensor is one of a program that is being captured."""
    return isinstance(x, Tensor) and x.payload.is_traced
