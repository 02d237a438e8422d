"""Settings: the variables of the environment that argosy reads, each declared once, with type, default and meaning.

This is the only module that reads the environment. A package declares its own settings in its ``settings`` module, and
reads them when it uses them; packages below this one take arguments instead. A setting of the compiler may also be
given as an option of one compilation, which comes first (:meth:`Setting.resolve`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

__all__ = [
    "CACHE_HOME", "CHECK_INDEX", "COUNT", "DETERMINISTIC", "DEVICES", "DUMP", "EAGER", "FALLBACK", "FUEL", "FUEL_LOG",
    "MEMORY", "NUMBER", "NUM_THREADS", "SWITCH", "TEXT", "VALUES", "VERIFY", "Kind", "Setting", "child_environment",
    "code_key", "declared_settings", "export", "one_of",
]  # fmt: skip

T = TypeVar("T")


class Kind(NamedTuple):
    """A type of settings: what text means, what an option may be instead, and how errors name both."""

    expected: str
    parse: Callable[[str], Any]
    """The value of a text, None where it has none."""
    expected_option: str
    accepts: Callable[[Any], bool]


def one_of(*words: str) -> Kind:
    """A choice of words."""
    expected = " or ".join(map(repr, words))
    return Kind(expected, lambda text: text if text in words else None, expected, ("", *words).__contains__)


def _memory(text: str) -> int | None:
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMG]iB|)", text.strip())
    return int(float(found[1]) * {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[found[2]]) if found else None


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


SWITCH = Kind("1 or 0", {"0": False, "1": True}.get, "True or False", lambda value: isinstance(value, bool))
NUMBER = Kind("a number", _number, "a number", _is_number)
COUNT = Kind("a positive integer", lambda text: _number(text) or None, "a positive integer", _is_number)
MEMORY = Kind("bytes, as in 500000000 or 512MiB", _memory, "a number of bytes", _is_number)
TEXT = Kind("text", str, "text", lambda value: isinstance(value, str))

_declared: dict[str, Setting[Any]] = {}


class Setting(Generic[T]):
    """A variable of the environment, declared by making one. Raises ValueError for a name that is declared already.

    An empty variable is an unset one, unless ``blank`` says that empty text is a value, too. ``changes_code``: programs
    are compiled otherwise under another value, which is part of the key of what was compiled (:func:`code_key`).
    """

    __slots__ = ("blank", "changes_code", "default", "doc", "kind", "name")

    def __init__(
        self, name: str, kind: Kind, default: T, doc: str, *, changes_code: bool = False, blank: bool = False
    ) -> None:
        if name in _declared:
            raise ValueError(f"setting {name} is declared twice")
        self.name, self.kind, self.default, self.doc = name, kind, default, doc
        self.changes_code, self.blank = changes_code, blank
        _declared[name] = self

    @property
    def is_set(self) -> bool:
        """Whether the environment gives it."""
        return os.environ.get(self.name, "") != "" or (self.blank and self.name in os.environ)

    def read(self) -> T:
        """The value now. Raises ValueError for text that has none."""
        if not self.is_set:
            return self.default
        text = os.environ[self.name]
        value: T | None = self.kind.parse(text)
        if value is None:
            raise ValueError(f"{self.name} is {text!r}: expected {self.kind.expected}")
        return value

    def write(self, text: str | None) -> None:
        """Set it for this process and those that it starts; None unsets it."""
        os.environ.pop(self.name, None)
        if text is not None:
            os.environ[self.name] = text

    @property
    def option(self) -> str:
        """The name of the option that gives it for one compilation."""
        return self.name.removeprefix("ARGOSY_").lower()

    def resolve(self, options: Mapping[str, Any]) -> T:
        """The option's value where it is given, else the setting's. Raises ValueError for one that does not fit."""
        given = options.get(self.option)
        if given is None:
            return self.read()
        if not self.kind.accepts(given):
            raise ValueError(f"option {self.option} is {given!r}: expected {self.kind.expected_option}")
        value: T = given
        return value


def declared_settings() -> list[Setting[Any]]:
    """The settings that the imported packages have declared, by name."""
    return [_declared[name] for name in sorted(_declared)]


def code_key(options: Mapping[str, Any]) -> str:
    """What the settings, or options instead of them, say about code that is compiled now."""
    return " ".join(
        f"{setting.option}={setting.resolve(options)}" for setting in declared_settings() if setting.changes_code
    )


def child_environment(changes: Mapping[Setting[Any], str] | None = None) -> dict[str, str]:
    """The environment of a process that this one starts, with these settings in it."""
    return os.environ | {setting.name: text for setting, text in (changes or {}).items()}


def export(variables: Mapping[str, str]) -> None:
    """Set variables that programs of the user, started or run by this one, read."""
    os.environ.update(variables)


class _Values(Mapping[str, Any]):
    """The settings' values now, by name."""

    def __getitem__(self, name: str) -> Any:
        return _declared[name].read()

    def __iter__(self) -> Iterator[str]:
        return iter(_declared)

    def __len__(self) -> int:
        return len(_declared)


VALUES = _Values()

EAGER = Setting("ARGOSY_EAGER", one_of("plain"), "", "plain: eager execution in Python alone, without native code")
FALLBACK = Setting(
    "ARGOSY_FALLBACK",
    one_of("warn", "error", "silent-counted"),
    "warn",
    "what happens where a device has no code for an operator, and the cpu has",
)
DEVICES = Setting(
    "ARGOSY_DEVICES",
    TEXT,
    "",
    "devices beside the cpu that may be opened, separated by commas; all by default",
)
DETERMINISTIC = Setting(
    "FLAGS_cudnn_deterministic",
    Kind("1 or true", lambda text: text.lower() in ("1", "true"), "True or False", lambda value: True),
    False,
    "1 leaves eager operators that round in an order of their own to numpy; read at import",
)
NUM_THREADS: Setting[int | None] = Setting(
    "ARGOSY_NUM_THREADS", COUNT, None, "threads of compiled programs and transforms; a core each by default"
)
CHECK_INDEX = Setting(
    "ARGOSY_CHECK_INDEX",
    SWITCH,
    True,
    "0 lets compiled programs clamp or drop indices that are out of range",
    changes_code=True,
)
FUEL: Setting[int | None] = Setting(
    "ARGOSY_FUEL",
    Kind("how many optimisations may happen, a number", _number, "a number", _is_number),
    None,
    "how many optimisations may happen in this process, whose programs are then compiled anew",
    changes_code=True,
)
VERIFY = Setting("ARGOSY_VERIFY", SWITCH, False, "1 verifies programs after each pass that runs")
DUMP = Setting("ARGOSY_DUMP", TEXT, "", "a folder that receives programs before and after each pass")
CACHE_HOME = Setting("XDG_CACHE_HOME", TEXT, "", "the user's folder of caches, instead of .cache in the home folder")
FUEL_LOG = Setting("ARGOSY_FUEL_LOG", TEXT, "", "a file that receives how many optimisations happened, and the last")
