"""Reading types, attribute values and locations."""

from __future__ import annotations

from argosy_pir.attributes import Attributes, Dense, FrozenDict, Symbol
from argosy_pir.location import UNKNOWN, Location
from argosy_pir.text.dims import parse_dim, parse_dims
from argosy_pir.types import FunctionType, OpaqueType, TensorType, TokenType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from argosy_pir.attributes import Attribute
    from argosy_pir.dims import Dim
    from argosy_pir.text.reader import Reader
    from argosy_pir.types import Type

_FLOATS = ("inf", "-inf", "nan", "-nan")


def read_type(reader: Reader) -> Type:
    """A type: ``tensor<[...], dtype>``, ``token``, ``function<(...) -> (...)>`` or ``opaque<"...">``."""
    token = reader.tokens[reader.at]
    known = reader.types.get(token)
    if known is not None:
        reader.at += 1
        return known
    if token[:7] == "tensor<":
        made = reader.types[token] = _tensor_type(reader, token)
        reader.at += 1
        return made
    if reader.take("token"):
        return TokenType()
    if reader.take("opaque"):
        reader.expect("<")
        text = reader.string()
        reader.expect(">")
        return OpaqueType(text)
    if reader.take("function"):
        return _function_type(reader)
    raise reader.error(f"expected a type, found {reader.describe_token()}")


def _tensor_type(reader: Reader, token: str) -> TensorType:
    sizes, bracket, dtype = token[7:-1].rpartition("]")
    sizes, dtype = sizes.strip(), dtype.strip()
    if not bracket or sizes[:1] != "[" or dtype[:1] != ",":
        raise reader.error("a tensor type is written tensor<[sizes], dtype>")
    try:
        return TensorType(parse_dims(sizes[1:]), dtype[1:].strip())
    except ValueError as error:
        raise reader.error(str(error)) from None


def _function_type(reader: Reader) -> FunctionType:
    reader.enter()
    reader.expect("<")
    inputs = _types(reader)
    reader.expect("->")
    results = _types(reader)
    reader.expect(">")
    reader.leave()
    return FunctionType(inputs, results)


def _types(reader: Reader) -> list[Type]:
    types: list[Type] = []
    reader.expect("(")
    while not reader.take(")"):
        types.append(read_type(reader))
        reader.separate(")")
    return types


def read_attributes(reader: Reader) -> Attributes:
    """Attributes in braces."""
    attributes = Attributes()
    reader.expect("{")
    while not reader.take("}"):
        token = reader.string() if reader.peek()[:1] == '"' else reader.advance()
        if not (token[:1].isalpha() or token[:1] == "_") and reader.tokens[reader.at - 1][:1] != '"':
            raise reader.error(f"expected an attribute's name, found '{token[:40]}'", reader.at - 1)
        if token in attributes:
            raise reader.error(f"attribute '{token}' is given twice", reader.at - 1)
        reader.expect("=")
        attributes[token] = read_attribute(reader)
        reader.separate("}")
    return attributes


def read_attribute(reader: Reader) -> Attribute:
    """Any attribute value."""
    token = reader.tokens[reader.at]
    first = token[:1]
    if first.isdecimal() or first == "-" or token in _FLOATS:
        return _number(reader)
    if first == '"':
        return reader.string()
    if first == "(":
        return _tuple(reader)
    if first == "@":
        return Symbol("@" + reader.symbol())
    if first == "{":
        reader.enter()
        items = FrozenDict(read_attributes(reader))
        reader.leave()
        return items
    if token[:4] == "dim<":
        return _dim(reader)
    read = _KEYWORDS.get(token)
    if read is None:
        return read_type(reader)
    reader.at += 1
    return read(reader)


def _number(reader: Reader) -> int | float:
    token = reader.advance()
    try:
        if token.removeprefix("-").isdecimal():
            return int(token)
        if "x" not in token:
            return float(token)
    except ValueError:
        pass
    raise reader.error(f"expected a number of reasonable length, found {reader.describe_token(-1)}", reader.at - 1)


def _dim(reader: Reader) -> Dim:
    token = reader.tokens[reader.at]
    try:
        size = parse_dim(token[4:-1])
    except ValueError as error:
        raise reader.error(str(error)) from None
    reader.at += 1
    return size


def _tuple(reader: Reader) -> tuple[Attribute, ...]:
    reader.enter()
    reader.expect("(")
    items = []
    while not reader.take(")"):
        items.append(read_attribute(reader))
        reader.separate(")")
    reader.leave()
    return tuple(items)


def _complex(reader: Reader) -> complex:
    reader.expect("(")
    real = _number(reader)
    reader.expect(",")
    imaginary = _number(reader)
    reader.expect(")")
    return complex(real, imaginary)


def _bytes(reader: Reader) -> bytes:
    reader.expect("<")
    data = _hexadecimal(reader)
    reader.expect(">")
    return data


def _hexadecimal(reader: Reader) -> bytes:
    token = reader.advance()
    if token[:2] == "0x" and len(token) % 2 == 0:
        return bytes.fromhex(token[2:])
    raise reader.error(f"expected bytes as 0x and pairs of digits, found {reader.describe_token(-1)}", reader.at - 1)


def _dense(reader: Reader) -> Dense:
    at = reader.at
    reader.expect("<")
    type = read_type(reader)
    reader.expect(",")
    if reader.peek() == "elided":
        raise reader.error("this constant was elided when the program was printed, so it cannot be read")
    if not isinstance(type, TensorType):
        raise reader.error(f"a constant is a tensor, not {type}", at)
    content = _hexadecimal(reader) if reader.peek()[:2] == "0x" else read_attribute(reader)
    reader.expect(">")
    if not isinstance(content, (bytes, int, float, complex)):
        raise reader.error(f"the elements of a constant are a number or bytes, not {content!r}", at)
    try:
        return Dense(type, content) if isinstance(content, bytes) else Dense.splat(type, content)
    except (ValueError, NotImplementedError) as error:
        raise reader.error(str(error), at) from None


def read_location(reader: Reader) -> Location:
    """A location: ``"file":line``, then perhaps ``:column`` and ``in "function"``; or ``fused[...]``."""
    if reader.take("fused"):
        return _read_fused(reader)
    file = reader.string()
    reader.expect(":")
    line = reader.integer()
    column = reader.integer() if reader.take(":") else 0
    function = reader.string() if reader.take("in") else ""
    location = Location(file, line, column, function)
    return UNKNOWN if location.is_unknown else location


def _read_fused(reader: Reader) -> Location:
    reader.enter()
    reader.expect("[")
    parts = []
    while not reader.take("]"):
        parts.append(read_location(reader))
        reader.separate("]")
    reader.leave()
    return Location.fuse(parts)


def _constant(value: Attribute) -> Callable[[Reader], Attribute]:
    return lambda reader: value


_KEYWORDS: dict[str, Callable[[Reader], Attribute]] = {
    "none": _constant(None),
    "true": _constant(True),
    "false": _constant(False),
    "complex": _complex,
    "bytes": _bytes,
    "dense": _dense,
}
