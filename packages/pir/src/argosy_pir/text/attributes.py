"""The text of attribute values and locations. Every form here is read back exactly by the parser."""

from __future__ import annotations

from re import ASCII
from re import compile as compile_pattern

from argosy_pir.attributes import Dense, FrozenDict, Symbol
from argosy_pir.dims import SymExpr
from argosy_pir.location import FusedLocation
from argosy_pir.scalars import decode_scalar, encode_scalar
from argosy_pir.text.strings import quote
from argosy_pir.types import ITEM_SIZES, Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from argosy_pir.attributes import Attribute
    from argosy_pir.location import Location

IDENTIFIER = compile_pattern(r"[A-Za-z_][A-Za-z0-9_$]*(?:\.[A-Za-z0-9_$]+)*", ASCII)


def format_attribute(value: Attribute, elide_above: int | None = None) -> str:
    """``value`` as text. Tensors of more than ``elide_above`` bytes print as ``elided``, which does not
    parse."""
    kind = type(value)
    if kind is int:
        return str(value)
    if kind is str:
        return quote(value)
    if kind is tuple:
        items = [format_attribute(item, elide_above) for item in value]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if kind is Dense:
        return format_dense(value, elide_above)
    if kind is FrozenDict:
        return format_attributes(value, elide_above)
    return _format_plain(value)


def format_attributes(attributes: Mapping[str, Attribute], elide_above: int | None = None) -> str:
    """A set of attributes in braces, in its own order."""
    items = [f"{format_name(key)} = {format_attribute(v, elide_above)}" for key, v in attributes.items()]
    return "{" + ", ".join(items) + "}"


def format_name(name: str) -> str:
    """A name as it is where it is an identifier, else in quotes."""
    return name if IDENTIFIER.fullmatch(name) else quote(name)


def format_dense(value: Dense, elide_above: int | None = None) -> str:
    """A constant tensor: its type, then one number for all elements or the bytes in hexadecimal."""
    data = value.data
    if len(data) == ITEM_SIZES.get(value.type.dtype):
        number = _exact_number(data, value.type.dtype)
        if number is not None:
            return f"dense<{value.type}, {number}>"
    if elide_above is not None and len(data) > elide_above:
        return f"dense<{value.type}, elided>"
    return f"dense<{value.type}, 0x{data.hex()}>"


def format_location(location: Location) -> str:
    """A location as it stands in ``loc(...)``."""
    if isinstance(location, FusedLocation):
        return "fused[" + ", ".join(map(format_location, location.locations)) + "]"
    text = f"{quote(location.file)}:{location.line}"
    if location.column:
        text += f":{location.column}"
    return f"{text} in {quote(location.function)}" if location.function else text


def _format_plain(value: Any) -> str:
    if value is None:
        return "none"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    if isinstance(value, bytes):
        return f"bytes<0x{value.hex()}>"
    if isinstance(value, Symbol):
        return "@" + format_name(value.name)
    if isinstance(value, SymExpr):
        return f"dim<{value}>"
    if isinstance(value, Type):
        return str(value)
    raise TypeError(f"{value!r} is not an attribute value")


def _as_read(value: Any) -> Any:
    """What the text of a number gives back: NaN without its sign."""
    if isinstance(value, complex):
        return complex(float(repr(value.real)), float(repr(value.imag)))
    return float(repr(value)) if isinstance(value, float) else value


def _exact_number(data: bytes, dtype: str) -> str | None:
    """The shortest number that encodes to exactly ``data``; None where none does (a NaN with a sign or a
    payload, say)."""
    try:
        value = _as_read(decode_scalar(data, dtype))
        if encode_scalar(value, dtype) != data:
            return None
    except (NotImplementedError, ValueError):
        return None
    if isinstance(value, float) and dtype != "float64":
        for digits in range(1, 10):
            short = float(f"{value:.{digits}g}")
            if encode_scalar(short, dtype) == data:
                return repr(short)
    return _format_plain(value) if not isinstance(value, int) or isinstance(value, bool) else str(value)
