"""The parser: reads what the printer writes, and what people write like it.

Only :class:`ParseError` comes out of it, whatever the text; nesting is bounded. Names in one function are
defined before they are used, once. Nothing is verified here: unknown dialects parse like known ones, and
``Program.verify`` checks the result.
"""

from __future__ import annotations

from argosy_pir.attributes import Attributes, FrozenDict
from argosy_pir.core import Block, Operation, Region
from argosy_pir.errors import IRError, VerifyError
from argosy_pir.opdef import RETURN
from argosy_pir.text.dims import parse_dim
from argosy_pir.text.lexer import tokenize
from argosy_pir.text.reader import Reader
from argosy_pir.text.values import read_attribute, read_attributes, read_location, read_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from argosy_pir.attributes import Attribute
    from argosy_pir.location import Location
    from argosy_pir.program import Program
    from argosy_pir.types import Type
    from argosy_pir.values import Value

__all__ = ["parse_attribute", "parse_dim", "parse_type", "read_program"]


def read_program(make: Callable[[str], Program], text: str, name: str = "<text>", verify: bool = False) -> Program:
    """The program that ``text`` describes, which ``make`` begins by its name; raises ``ParseError``, which shows
    ``name`` as the source. With ``verify`` a broken rule is shown at its operation."""
    parser = _Parser(Reader(text, tokenize(text), name))
    program = parser.program(make)
    if verify:
        parser.verify(program)
    return program


def parse_type(text: str) -> Type:
    """The type that ``text`` describes; raises ``ParseError``."""
    reader = Reader(text, tokenize(text), "<type>")
    return reader.finish(read_type(reader))


def parse_attribute(text: str) -> Attribute:
    """The attribute value that ``text`` describes; raises ``ParseError``."""
    reader = Reader(text, tokenize(text), "<attribute>")
    return reader.finish(read_attribute(reader))


class _Parser:
    """Recursive descent over tokens; ``_values`` are the names defined so far in the current function, ``_starts`` the
    first token of each operation."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._values: dict[str, Value] = {}
        self._starts: dict[Operation | None, int] = {}

    def verify(self, program: Program) -> None:
        try:
            program.verify()
        except VerifyError as error:
            if error.operation not in self._starts:
                raise
            raise self._reader.error(str(error), self._starts[error.operation]) from None

    def program(self, make: Callable[[str], Program]) -> Program:
        reader = self._reader
        reader.expect("program")
        program = make(reader.symbol())
        self._arguments(program.block)
        if reader.take("state"):
            reader.expect("(")
            while not reader.take(")"):
                self._state(program)
                reader.separate(")")
        self._body(program.attributes, program.block)
        while reader.peek():
            reader.expect("function")
            self._function(program)
        return program

    def _function(self, program: Program) -> None:
        at = self._reader.at
        try:
            function = program.new_function(self._reader.symbol())
        except IRError as error:
            raise self._reader.error(str(error), at) from None
        self._values = {}
        self._arguments(function.block)
        self._body(function.attributes, function.block)

    def _body(self, attributes: Attributes, block: Block) -> None:
        if self._reader.take("attributes"):
            attributes.update(read_attributes(self._reader))
        self._operations(block)

    def _state(self, program: Program) -> None:
        reader = self._reader
        at = reader.at
        label = reader.value_name()
        reader.expect("=")
        name = reader.string()
        reader.expect(":")
        type = read_type(reader)
        attributes = read_attributes(reader) if reader.peek() == "{" else {}
        try:
            state = program.add_state(name, type, attributes)
        except IRError as error:
            raise reader.error(str(error), at) from None
        self._define(label, state.argument, at)

    def _arguments(self, block: Block) -> None:
        reader = self._reader
        reader.expect("(")
        while not reader.take(")"):
            at = reader.at
            label = reader.value_name()
            reader.expect(":")
            self._define(label, block.add_argument(read_type(reader)), at)
            reader.separate(")")

    def _operations(self, block: Block) -> None:
        reader = self._reader
        reader.expect("{")
        while not reader.take("}"):
            block.append(self._operation())

    def _operation(self) -> Operation:
        reader = self._reader
        start = reader.at
        labels = self._result_names() if reader.peek()[:1] == "%" else []
        name = reader.operation_name()
        operands = self._operands(name == RETURN)
        attributes = read_attributes(reader) if reader.peek() == "{" else None
        types = self._types() if reader.take(":") else []
        annotations = read_attributes(reader) if reader.take("annotations") else None
        location = self._location() if reader.take("loc") else None
        if len(types) != len(labels):
            raise reader.error(f"'{name}' defines {len(labels)} values but gives {len(types)} types", start)
        regions = [self._region() for _ in iter(lambda: reader.take("region"), False)]
        op = Operation(name, operands, types, None, regions, location)
        self._starts[op] = start
        if attributes is not None:
            op.attributes = attributes
        if annotations is not None:
            op.annotations = FrozenDict.of_normal(annotations)
        for i, label in enumerate(labels):
            self._define(label, op.results[i], start + 2 * i)
        return op

    def _result_names(self) -> list[str]:
        reader = self._reader
        labels = [reader.value_name()]
        while reader.take(","):
            labels.append(reader.value_name())
        reader.expect("=")
        return labels

    def _operands(self, returns: bool) -> list[Value]:
        """Operands in parentheses; a return may set the states' new values off by a semicolon."""
        reader = self._reader
        reader.expect("(")
        operands: list[Value] = []
        if returns and reader.take(";"):
            returns = False
        while not reader.take(")"):
            operands.append(self._operand())
            if returns and reader.take(";"):
                returns = False
            else:
                reader.separate(")")
        return operands

    def _operand(self) -> Value:
        reader = self._reader
        value = self._values.get(reader.peek())
        if value is None:
            label = reader.value_name()
            raise reader.error(f"{label} is not defined before this use", reader.at - 1)
        reader.at += 1
        return value

    def _types(self) -> list[Type]:
        types = [read_type(self._reader)]
        while self._reader.take(","):
            types.append(read_type(self._reader))
        return types

    def _location(self) -> Location:
        self._reader.expect("(")
        location = read_location(self._reader)
        self._reader.expect(")")
        return location

    def _region(self) -> Region:
        reader = self._reader
        region = Region()
        if reader.take("none"):
            return region
        reader.enter()
        while True:
            block = region.append(Block())
            if reader.peek() == "(":
                self._arguments(block)
            self._operations(block)
            if not reader.take("next"):
                break
        reader.leave()
        return region

    def _define(self, label: str, value: Value, at: int) -> None:
        if label in self._values:
            raise self._reader.error(f"{label} is defined twice", at)
        self._values[label] = value
        value.name_hint = self._reader.hint(label)
