"""Arguments held against the annotations of the function that takes them, with errors that name the argument.

Annotations are read as text, so that nothing is imported for them. A part that is not in the table below (``Any``, a
class) admits everything: what it needs is for the function itself to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from opcode import opname
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from argosy_tensorcore.suggestions import did_you_mean
from argosy_tensorcore.tensor import Tensor

__all__ = ["Checked", "Sizes", "blame_inputs", "check_arguments", "check_choice", "checked", "held", "named"]

P = ParamSpec("P")
R = TypeVar("R")
Test = Callable[[Any], bool]
Sizes = int | Sequence[int]
"""One integer for all axes, or one for each."""


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
}
_WORDS = {
    "int": "an integer", "float": "a number", "bool": "a bool", "str": "a string", "Tensor": "a Tensor",
    "Sequence[int]": "a sequence of integers", "Sequence[float]": "a sequence of numbers",
    "Sequence[Any]": "a sequence", "Sizes": "an integer or a sequence of integers",
    "Padding": "an integer or a sequence of integers", "LRScheduler": "an lr.LRScheduler",
}  # fmt: skip


@cache
def _tests(function: FunctionType) -> dict[str, tuple[str, tuple[Test, ...]]]:
    """Annotation and tests by parameter, of those parameters of which every part of the annotation has a test."""
    found = {}
    for name, annotation in function.__annotations__.items():
        parts = annotation.split(" | ") if isinstance(annotation, str) else ["Any"]
        if all(part in _TESTS for part in parts):
            found[name] = " or ".join(_WORDS.get(p, p) for p in parts), tuple(_TESTS[p] for p in parts)
    return found


def _parameters(function: FunctionType) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def check_arguments(
    title: str, function: FunctionType, args: Iterable[Any], kwargs: Mapping[str, Any], skip: int = 0
) -> None:
    """Raise TypeError where an argument is of no type that ``function``, without its first ``skip`` parameters, takes.

    The message names ``title``, the argument, what is expected and what came. Missing and surplus arguments are left
    to the call.
    """
    tests = _tests(function)
    for name, value in (*zip(_parameters(function)[skip:], args, strict=False), *kwargs.items()):
        if name in tests and not any(test(value) for test in tests[name][1]):
            kind = type(value).__name__
            raise TypeError(f"{title}(): argument {name!r} must be {tests[name][0]}, got {value!r:.80} ({kind})")


def check_choice(owner: str, name: str, value: Any, words: tuple[str, ...]) -> None:
    """Raises ValueError where ``value`` is none of ``words``."""
    if value not in words:
        raise ValueError(f"{owner}(): argument {name!r} should be one of {', '.join(words)}, got {value!r:.80}")


def blame_inputs(
    title: str,
    function: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    error: Exception,
    skip: int = 1,
    tensors: bool = True,
) -> None:
    """After ``error``, raise what a user can use of it: TypeError for an argument of ``function`` that should be a
    tensor and is not; where Python or numpy failed in argosy's own code, an error of that kind with the arguments.

    What argosy's code raised on purpose gets the arguments, where it says none of them. The first ``skip`` parameters
    are not among the arguments (``self`` of methods); with ``tensors`` those without a test are tensors. Errors of
    classes of argosy and those of users' code stand as they are.
    """
    _suggest(title, function, error)
    kinds = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, AssertionError, StopIteration)
    plain = type(error).__module__.partition(".")[0] in ("builtins", "numpy")
    if not plain or not isinstance(error, kinds) or f"{title}(): " in str(error):
        return
    at = _innermost(error)
    if at is None or not (isinstance(function, FunctionType) and _is_own(function.__module__) and _is_own(_module(at))):
        return
    if title in str(error):
        _add_given(title, function, args, kwargs, error, skip)
        return
    check_arguments(title, function, args, kwargs, skip)
    given = [*zip(_parameters(function)[skip:], args, strict=False), *kwargs.items()]
    tested = _tests(function)
    for name, value in given if tensors else ():
        foreign = None if name in tested else _foreign(value)
        if foreign is not None:
            kind = type(foreign).__name__
            raise TypeError(f"{title}(): argument {name!r} must hold Tensors, got {foreign!r:.80} ({kind})") from error
    if not _is_raise(at) or isinstance(error, (AssertionError, LookupError)):
        shown = ", ".join(f"{name}={_shown(value)}" for name, value in given)
        chosen: type[Exception] = TypeError if isinstance(error, (TypeError, AttributeError)) else ValueError
        if isinstance(error, IndexError) and title.endswith("__getitem__"):
            chosen = IndexError  # which is how a loop over a sequence learns that it has ended
        raise chosen(f"{title}(): cannot take these arguments: {shown} ({error or type(error).__name__})") from error
    _add_given(title, function, args, kwargs, error, skip)


def _suggest(title: str, function: Any, error: Exception) -> None:
    """Where Python refused a keyword of ``function``, raise TypeError with the nearest one that it takes."""
    found = re.search(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'", str(error))
    if found is None or type(error) is not TypeError or found[1] != getattr(function, "__name__", None):
        return
    code = function.__code__
    names = [name for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if name != "self"]
    meant = did_you_mean(found[2], names)
    raise TypeError(f"{title}() has no argument {found[2]!r}{meant or '.'} It takes {', '.join(names)}") from None


def _add_given(
    title: str, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception, skip: int
) -> None:
    """Raise ``error``, which says what is wrong, with the arguments by name, where it does not name them."""
    message = str(error)
    if type(error) not in (ValueError, TypeError, IndexError) or "[given " in message or "argument '" in message:
        return
    given = [*zip(_parameters(function)[skip:], args, strict=False), *kwargs.items()]
    if not given:
        return
    shown = ", ".join(f"{name}={_shown(value)}" for name, value in given)
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


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype.name} {list(value.shape)}"
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return f"[{', '.join(map(_shown, value[:4]))}{', ...' if len(value) > 4 else ''}]"
    return f"{value!r:.60}"


def _foreign(value: Any) -> Any:
    """The first thing in nests of lists and tuples that is neither a tensor nor a number; None where there is none."""
    if isinstance(value, (list, tuple)):
        return next((found for v in value if (found := _foreign(v)) is not None), None)
    return None if value is None or hasattr(value, "dtype") or hasattr(value, "__float__") else value


def named(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: when ``function`` fails in Python's own words, say which argument is of no type that it takes."""
    plain = _undecorated(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            blame_inputs(plain.__name__, plain, args, kwargs, error, skip=0)
            raise

    return call


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: the same of functions and methods that take other things than tensors."""
    skip = int(_parameters(function)[:1] == ("self",))  # type: ignore[arg-type]
    title = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            blame_inputs(title, function, args[skip:], kwargs, error, skip, tensors=False)
            raise

    return call


def held(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: arguments are held against annotations before ``function`` runs; its own errors, which may be of
    user's code that it calls, stand as they are."""
    skip = int(_parameters(function)[:1] == ("self",))  # type: ignore[arg-type]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        check_arguments(function.__qualname__, function, args[skip:], kwargs, skip)  # type: ignore[arg-type]
        return function(*args, **kwargs)

    return call


def _undecorated(function: Any) -> Any:
    """What decorators have wrapped (inspect's own takes milliseconds to import)."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _telling(make: FunctionType) -> Any:
    """A constructor whose errors tell which arguments came."""

    @wraps(make)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            make(self, *args, **kwargs)
        except Exception as error:
            blame_inputs(type(self).__name__, _undecorated(make), args, kwargs, error, tensors=False)
            raise

    return construct


class _ConstructorSignature:
    """What ``inspect.signature`` and completion show of a class: its constructor's parameters, not ``__new__``'s."""

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is not None or vars(Checked)["__new__"].__func__ is not owner.__new__:
            raise AttributeError("__signature__")
        import inspect

        shown = inspect.signature(_undecorated(owner.__init__))  # type: ignore[misc]
        return shown.replace(parameters=list(shown.parameters.values())[1:], return_annotation=shown.empty)


class Checked:
    """A base of classes whose constructors, where they are argosy's, hold their arguments against their annotations,
    and tell in errors what came."""

    __signature__ = _ConstructorSignature()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        make = cls.__dict__.get("__init__")
        if isinstance(make, FunctionType) and _is_own(cls.__module__):
            type.__setattr__(cls, "__init__", _telling(make))  # an assignment would hide the parameters from tools

    if not TYPE_CHECKING:  # tools would show its parameters instead of the constructor's

        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            make = _undecorated(cls.__init__)
            if isinstance(make, FunctionType) and _is_own(make.__module__):
                check_arguments(cls.__name__, make, args, kwargs, skip=1)
            return super().__new__(cls)
