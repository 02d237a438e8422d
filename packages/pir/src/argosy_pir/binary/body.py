"""The operations in binary: one stream of numbers that refer to the tables and to values by order of
definition."""

from __future__ import annotations

from argosy_pir.attributes import NO_ANNOTATIONS, Attributes, FrozenDict
from argosy_pir.binary import format as form
from argosy_pir.binary.format import Numbers, Sections, read_strings, write_strings, write_varints
from argosy_pir.binary.tables import MAX_DEPTH, Reader, Writer
from argosy_pir.core import Block, Operation, Region
from argosy_pir.dialect import get_dialect, loaded_dialects
from argosy_pir.errors import FormatError
from argosy_pir.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from argosy_pir.attributes import Attribute
    from argosy_pir.program import Program
    from argosy_pir.types import Type


def write_program(program: Program) -> Sections:
    """The sections of a file."""
    writer = _BodyWriter()
    writer.program(program)
    tables = writer.tables
    dialects = _dialect_versions(program, tables)
    sections = {
        form.STRINGS: write_strings(tables.strings),
        form.TYPES: write_varints(tables.types),
        form.ATTRIBUTES: write_varints(tables.attributes),
        form.BLOB: bytes(tables.blob),
        form.LOCATIONS: write_varints(tables.locations),
        form.DIALECTS: write_varints(dialects),
        form.PROGRAM: write_varints(writer.out),
    }
    if writer.annotations:
        sections[form.ANNOTATIONS] = write_varints(writer.annotations)
    return sections


def read_program(make: Callable[[str], Program], sections: Sections) -> Program:
    """The program in the sections of a file, which ``make`` begins by its name; sections that are not known here are
    passed over."""
    missing = [tag for tag in range(form.STRINGS, form.PROGRAM + 1) if tag not in sections]
    if missing:
        raise FormatError(f"sections {missing} are missing")
    strings = read_strings(sections[form.STRINGS])
    _check_dialects(Numbers(sections[form.DIALECTS]), strings)
    tables = Reader(
        strings,
        sections[form.TYPES],
        sections[form.ATTRIBUTES],
        sections[form.BLOB],
        sections[form.LOCATIONS],
    )
    annotations = _read_annotations(tables, Numbers(sections.get(form.ANNOTATIONS, b"")))
    return _BodyReader(tables, Numbers(sections[form.PROGRAM]), annotations).program(make)


def _read_annotations(tables: Reader, numbers: Numbers) -> dict[int, FrozenDict]:
    """The annotations of operations by their number."""
    found = {}
    while numbers.at < len(numbers.numbers):
        number = numbers.read()
        found[number] = FrozenDict.of_normal(tables.pairs(numbers.take(2 * numbers.count())))
    return found


def _dialect_versions(program: Program, tables: Writer) -> list[int]:
    """Name and version of each known dialect in the program."""
    out: list[int] = []
    for name in sorted({op.dialect for op in program.walk()}):
        dialect = get_dialect(name)
        if dialect is not None:
            out += [tables.string(name), *dialect.version]
    return out


def _check_dialects(numbers: Numbers, strings: list[str]) -> None:
    """Refuse a program of a newer major version of a dialect that is loaded. Reading a file loads no
    plugin."""
    loaded = {dialect.name: dialect.version for dialect in loaded_dialects()}
    while numbers.at < len(numbers.numbers):
        name, major, minor = numbers.take(3)
        known = loaded.get(strings[name])
        if known is not None and major > known[0]:
            raise FormatError(
                f"the program uses version {major}.{minor} of dialect '{strings[name]}'; "
                f"version {known[0]}.{known[1]} is loaded"
            )


class _BodyWriter:
    def __init__(self) -> None:
        self.tables = Writer()
        self.out: list[int] = []
        self.annotations: list[int] = []  #: of operations that have any: their number, how many, names and values
        self._numbers: dict[Value, int] = {}
        self._operations = 0

    def program(self, program: Program) -> None:
        self.out.append(self.tables.string(program.name))
        self._attributes(program.attributes, self.out)
        self.out.append(len(program.states))
        for state in program.states:
            self.out.append(self.tables.string(state.name))
            self._attributes(state.attributes, self.out)
        self._block(program.block, 0)
        self.out.append(len(program.functions))
        for function in program.functions.values():
            self._numbers = {}
            self.out.append(self.tables.string(function.name))
            self._attributes(function.attributes, self.out)
            self._block(function.block, 0)

    def _attributes(self, attributes: Mapping[str, Attribute], out: list[int]) -> None:
        out.append(len(attributes))
        for name, value in attributes.items():
            out.append(self.tables.string(name))
            out.append(self.tables.attribute(value))

    def _define(self, values: Sequence[Value]) -> None:
        tables, out, numbers = self.tables, self.out, self._numbers
        out.append(len(values))
        for value in values:
            numbers[value] = len(numbers)
            out.append(tables.type(value.type))
            out.append(0 if value.name_hint is None else tables.string(value.name_hint) + 1)

    def _block(self, block: Block, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise FormatError(f"regions are nested deeper than {MAX_DEPTH} levels")
        self._define(block.arguments)
        self.out.append(len(block))
        op = block._first
        while op is not None:
            self._operation(op, depth)
            op = op._next

    def _operation(self, op: Operation, depth: int) -> None:
        out = self.out
        if op.annotations:
            self.annotations.append(self._operations)
            self._attributes(op.annotations, self.annotations)
        self._operations += 1
        out.append(self.tables.string(op.name))
        out.append(len(op._operands))
        count = len(self._numbers)
        for value in op._operands:
            number = self._numbers.get(value)
            if number is None:
                raise FormatError(f"'{op.name}' uses a value that is not defined before it")
            out.append(count - 1 - number)
        self._attributes(op.attributes, out)
        out.append(self.tables.location(op.location))
        out.append(len(op.regions))
        for region in op.regions:
            out.append(len(region.blocks))
            for block in region.blocks:
                self._block(block, depth + 1)
        self._define(op.results)


class _BodyReader:
    def __init__(self, tables: Reader, numbers: Numbers, annotations: dict[int, FrozenDict]) -> None:
        self._tables = tables
        self._annotations = annotations
        self._number = 0
        self._in = numbers
        self._values: list[Value] = []

    def program(self, make: Callable[[str], Program]) -> Program:
        numbers, strings = self._in, self._tables.strings
        program = make(strings[numbers.read()])
        program.attributes.update(self._attributes())
        states = [(strings[numbers.read()], self._attributes()) for _ in range(numbers.count())]
        arguments = self._arguments()
        if len(arguments) < len(states):
            raise FormatError(f"{len(states)} states are announced, but the block has {len(arguments)} arguments")
        inputs = len(arguments) - len(states)
        for type, hint in arguments[:inputs]:
            self._values.append(program.add_input(type, hint))
        for (type, hint), (name, attributes) in zip(arguments[inputs:], states, strict=True):
            self._values.append(program.add_state(name, type, attributes, hint).argument)
        self._operations(program.block, 0)
        for _ in range(numbers.count()):
            self._function(program)
        numbers.finish()
        if beyond := [number for number in self._annotations if number >= self._number]:
            raise FormatError(f"operations {beyond} have annotations; there are {self._number}")
        return program

    def _function(self, program: Program) -> None:
        self._values = []
        function = program.new_function(self._tables.strings[self._in.read()])
        function.attributes.update(self._attributes())
        self._fill(function.block, 0)

    def _attributes(self) -> Attributes:
        return self._tables.pairs(self._in.take(2 * self._in.count()))

    def _arguments(self) -> list[tuple[Type, str | None]]:
        tables = self._tables
        pairs = self._in.take(2 * self._in.count())
        return [(tables.types[t], self._hint(h)) for t, h in zip(pairs[::2], pairs[1::2], strict=True)]

    def _hint(self, code: int) -> str | None:
        return self._tables.strings[code - 1] if code else None

    def _fill(self, block: Block, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise FormatError(f"regions are nested deeper than {MAX_DEPTH} levels")
        for type, hint in self._arguments():
            self._values.append(block.add_argument(type, hint))
        self._operations(block, depth)

    def _operations(self, block: Block, depth: int) -> None:
        for _ in range(self._in.count()):
            block._link(self._operation(depth), block._last, None)

    def _operation(self, depth: int) -> Operation:
        numbers, tables, values = self._in, self._tables, self._values
        annotations = self._annotations.get(self._number, NO_ANNOTATIONS)
        self._number += 1
        name = tables.strings[numbers.read()]
        last = len(values) - 1
        operands = [values[self._position(last, back)] for back in numbers.take(numbers.count())]
        attributes = self._attributes()
        location = tables.locations[numbers.read()]
        regions = [self._region(depth) for _ in range(numbers.count())]
        results = self._arguments()
        op = Operation(name, operands, [type for type, _ in results], None, regions, location)
        op.attributes = attributes
        op.annotations = annotations
        for result, (_, hint) in zip(op.results, results, strict=True):
            result.name_hint = hint
        values.extend(op.results)
        return op

    def _position(self, last: int, back: int) -> int:
        if back > last:
            raise FormatError(f"an operand is {back} values back, but only {last + 1} are defined")
        return last - back

    def _region(self, depth: int) -> Region:
        region = Region()
        for _ in range(self._in.count()):
            self._fill(region.append(Block()), depth + 1)
        return region
