"""Arguments held against the annotations of the function that takes them, before it runs, with errors that name the
argument; and the annotation of errors that only running it could bring up.

Annotations are read as text, so that nothing is imported for them. A part that is not in the table below (``Any``, a
class) admits everything: what it needs is for the function itself to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from opcode import opname
from types import FunctionType, TracebackType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from argosy.argument_repr import ArgumentRepr
from argosy_tensorcore.suggestions import did_you_mean
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "CheckedConstructor",
    "Sizes",
    "TensorLike",
    "annotate_error",
    "check_arguments",
    "check_choice",
    "check_keywords",
    "validate_call",
]

P = ParamSpec("P")
R = TypeVar("R")
Test = Callable[[Any], bool]
Sizes = int | Sequence[int]
"""One integer for all axes, or one for each."""
TensorLike = Any
"""A tensor, a number, or lists of them."""
_MOST_SEEN = 64  # types of the arguments of a function, together
_VAR_KEYWORDS = 0x08  # `inspect.CO_VARKEYWORDS`; that module takes milliseconds to import


def _is_integer(value: Any) -> bool:
    return hasattr(value, "__index__") or (isinstance(value, float) and value.is_integer())


def _is_flag(value: Any) -> bool:
    return value is None or (hasattr(value, "__bool__") and hasattr(value, "__float__"))


def _is_rate(value: Any) -> bool:
    return hasattr(value, "get_lr")


def _is_sequence(value: Any) -> bool:
    return hasattr(type(value), "__iter__") and not isinstance(value, (str, bytes, Mapping))


def _are_integers(value: Any) -> bool:
    return _is_sequence(value) and (not isinstance(value, (list, tuple)) or all(map(_is_integer, value)))


def _is_tensor_like(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(v is None or _is_tensor_like(v) for v in value)
    return hasattr(value, "dtype") or hasattr(value, "__float__")


_TESTS: dict[str, Test] = {
    "int": _is_integer,
    "float": lambda value: hasattr(value, "__float__"),
    "bool": _is_flag,
    "str": lambda value: isinstance(value, str) or hasattr(value, "__fspath__"),
    "None": lambda value: value is None,
    "Sequence[int]": _are_integers,
    "Sequence[float]": lambda value: _is_sequence(value) and all(hasattr(v, "__float__") for v in value),
    "Sequence[Any]": _is_sequence,
    "Sizes": lambda value: _is_integer(value) or _are_integers(value),
    "Padding": lambda value: _is_integer(value) or _are_integers(value),
    "LRScheduler": _is_rate,
    "Tensor": lambda value: isinstance(value, Tensor) or hasattr(value, "dtype"),
    "TensorLike": _is_tensor_like,
}
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (float, int), "bool": (bool, type(None)), "str": (str,), "None": (type(None),),
    "Sizes": (int,), "Padding": (int,), "Tensor": (Tensor,), "TensorLike": (Tensor,),
}  # fmt: skip
"""Types of which every value passes the test."""
_WORDS = {
    "int": "an integer", "float": "a number", "bool": "a bool", "str": "a string", "Tensor": "a Tensor",
    "TensorLike": "a Tensor",
    "Sequence[int]": "a sequence of integers", "Sequence[float]": "a sequence of numbers",
    "Sequence[Any]": "a sequence", "Sizes": "an integer or a sequence of integers",
    "Padding": "an integer or a sequence of integers", "LRScheduler": "an lr.LRScheduler",
}  # fmt: skip


class _Parameter(NamedTuple):
    """What a parameter takes: ``tests`` by its annotation, in ``words``. Values of ``types`` need no test."""

    name: str
    types: frozenset[type]
    tests: tuple[Test, ...]
    words: str


@cache
def _checks(function: FunctionType) -> tuple[tuple[_Parameter | None, ...], dict[str, _Parameter | None]]:
    """The parameters of a function in order and by name, None where a part of the annotation has no test."""
    code = function.__code__
    checks: dict[str, _Parameter | None] = {}
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        annotation = function.__annotations__.get(name)
        parts = annotation.split(" | ") if isinstance(annotation, str) else ["Any"]
        checks[name] = None
        if all(part in _TESTS for part in parts):
            words = " or ".join(_WORDS.get(p, p) for p in parts)
            types = frozenset(kind for p in parts for kind in _TYPES.get(p, ()))
            checks[name] = _Parameter(name, types, tuple(_TESTS[p] for p in parts), words)
    return tuple(checks.values())[: code.co_argcount], checks


def _parameters(function: FunctionType) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def check_arguments(
    title: str, function: FunctionType, args: Iterable[Any], kwargs: Mapping[str, Any], skip: int = 0
) -> bool:
    """Raise TypeError where ``function``, without its first ``skip`` parameters, has no argument of some name, or takes
    none of that type. The answer is whether any other values of these types would do.

    The message names ``title``, the argument, what is expected and what came. Missing and surplus arguments are left
    to the call.
    """
    in_order, by_name = _checks(function)
    if kwargs:
        check_keywords(title, function, kwargs)
    given = [*zip(in_order[skip:], args, strict=False), *((by_name.get(name), x) for name, x in kwargs.items())]
    tested = [(p, value) for p, value in given if p is not None and type(value) not in p.types]
    for parameter, value in tested:
        _check(title, parameter, value)
    return not tested


def _check(title: str, parameter: _Parameter, value: Any) -> None:
    if not any(test(value) for test in parameter.tests):
        kind = type(value).__name__
        raise TypeError(f"{title}(): argument {parameter.name!r} must be {parameter.words}, got {value!r:.80} ({kind})")


def check_keywords(title: str, function: Any, kwargs: Mapping[str, Any]) -> None:
    """Raise TypeError where ``function`` has no argument of some name: with the nearest one that it has."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & _VAR_KEYWORDS:
        return
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    for name in kwargs:
        if name not in names[code.co_posonlyargcount :]:
            names = [name for name in names if name != "self"]
            meant = did_you_mean(name, names)
            raise TypeError(f"{title}() has no argument {name!r}{meant or '.'} It takes {', '.join(names)}")


def check_choice(owner: str, name: str, value: Any, words: tuple[str, ...]) -> None:
    """Raises ValueError where ``value`` is none of ``words``."""
    if value not in words:
        raise ValueError(f"{owner}(): argument {name!r} should be one of {', '.join(words)}, got {value!r:.80}")


def annotate_error(
    title: str, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception, skip: int = 0
) -> None:
    """After ``error``, which no look at the arguments could foresee (shapes that do not fit, values), raise it with
    them, where it says none: what argosy raised on purpose keeps its class and words, and where Python or numpy failed
    in argosy's own code, it becomes a TypeError or a ValueError.

    The first ``skip`` parameters are not among the arguments (``self`` of methods). Errors of classes of argosy and
    those of users' code stand as they are.
    """
    kinds = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, AssertionError, StopIteration)
    plain = type(error).__module__.partition(".")[0] in ("builtins", "numpy")
    message = str(error)
    if not plain or not isinstance(error, kinds) or f"{title}(): " in message:
        return
    function, at = _unwrap(function), _innermost(error)
    if at is None or not (isinstance(function, FunctionType) and _is_own(function.__module__) and _is_own(_module(at))):
        return
    given = [*zip(_parameters(function)[skip:], args, strict=False), *kwargs.items()]
    shown = ", ".join(f"{name}={_describe(value)}" for name, value in given)
    if title not in message and (not _is_raise(at) or isinstance(error, (AssertionError, LookupError))):
        chosen: type[Exception] = TypeError if isinstance(error, (TypeError, AttributeError)) else ValueError
        if isinstance(error, IndexError) and title.endswith("__getitem__"):
            chosen = IndexError  # which is how a loop over a sequence learns that it has ended
        raise chosen(f"{title}(): cannot take these arguments: {shown} ({message or type(error).__name__})") from error
    if not given or type(error) not in (ValueError, TypeError, IndexError):
        return
    if "[given " in message or "argument '" in message:
        return
    start = "" if title in message or re.match(r"[\w.]+(\(\))?: ", message) else f"{title}: "
    raise type(error)(f"{start}{message} [given {shown}]") from error


def _is_own(module: str) -> bool:
    return module.partition(".")[0].partition("_")[0] == "argosy"


def _innermost(error: Exception) -> TracebackType | None:
    """Where ``error`` left the last code that is not numpy's or Pillow's."""
    at, found = error.__traceback__, None
    while at is not None:
        if _module(at).partition(".")[0] not in ("numpy", "PIL"):
            found = at
        at = at.tb_next
    return found


def _module(at: TracebackType) -> str:
    return str(at.tb_frame.f_globals.get("__name__", ""))


def _is_raise(at: TracebackType) -> bool:
    """Whether the code stands at a ``raise`` statement there, rather than at something that failed."""
    return opname[at.tb_frame.f_code.co_code[at.tb_lasti]] == "RAISE_VARARGS"


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype.name} {list(value.shape)}"
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return f"[{', '.join(map(_describe, value[:4]))}{', ...' if len(value) > 4 else ''}]"
    return f"{value!r:.60}"


def validate_call(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: arguments are held against the annotations before ``function`` runs; errors tell which came.

    Tensors in the first places, where they may be, are looked at no further; nor are types that were seen before and
    decide.
    """
    plain = _unwrap(function)
    skip = int(_parameters(plain)[:1] == ("self",))
    of_class = skip and plain.__name__ in ("__init__", "forward")
    tensors = -1  # in so many places
    seen: set[tuple[Any, ...]] = set()

    def title(args: tuple[Any, ...]) -> str:
        return type(args[0]).__name__ if of_class and args else str(plain.__qualname__)

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        nonlocal tensors
        if tensors < 0:
            in_order = _checks(plain)[0]
            tensors = next((i for i, p in enumerate(in_order) if p and Tensor not in p.types), len(in_order))
        types = (*map(type, args), *kwargs, *map(type, kwargs.values()))
        if types in seen:
            return
        decides = check_arguments(title(args), plain, args, kwargs)
        if decides and len(seen) < _MOST_SEEN and all(map(_stays, types)):
            seen.add(types)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs or len(args) > tensors:
            check(args, kwargs)
        else:
            for x in args[skip:] if skip else args:
                if type(x) is not Tensor:
                    check(args, kwargs)
                    break
        try:
            return function(*args, **kwargs)
        except Exception as error:
            annotate_error(title(args), plain, args[skip:], kwargs, error, skip)
            raise

    return call


def _stays(x: Any) -> bool:
    """Whether a type, or a name, is there as long as the process: a user's class, with all that it names, may go."""
    return isinstance(x, str) or x.__module__ == "builtins" or _is_own(x.__module__)


def _unwrap(function: Any) -> Any:
    """What decorators have wrapped (inspect's own takes milliseconds to import)."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _checked_constructor(make: FunctionType) -> Any:
    """The constructor ``make``, the same for who makes an object of a class that has it; the class is named."""
    plain, rename = _unwrap(make), getattr(make, "rename", None)

    @wraps(make)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        title = type(self).__name__
        if rename is not None:
            rename(kwargs)
        check_arguments(title, plain, args, kwargs, 1)
        try:
            make(self, *args, **kwargs)
        except Exception as error:
            annotate_error(title, plain, args, kwargs, error, 1)
            raise

    return construct


class CheckedConstructor(ArgumentRepr):
    """A base of classes whose constructors, where they are argosy's, hold their arguments against their annotations,
    and tell in errors what came."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        make = cls.__dict__.get("__init__")
        if isinstance(make, FunctionType) and _is_own(cls.__module__):
            type.__setattr__(cls, "__init__", _checked_constructor(make))  # an assignment would hide it from tools
