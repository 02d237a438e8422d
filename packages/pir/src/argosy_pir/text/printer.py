"""The printer: programs as text that a person can read and the parser reads back exactly.

Values print with their name hints; equal hints are told apart by ``#1``, ``#2``, ...; values without one are
numbered.
"""

from __future__ import annotations

from argosy_pir.opdef import RETURN
from argosy_pir.text.attributes import IDENTIFIER, format_attributes, format_location, format_name
from argosy_pir.text.strings import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from argosy_pir.core import Block, Operation, Region
    from argosy_pir.program import Function, Program
    from argosy_pir.types import Type
    from argosy_pir.values import Value


def print_program(program: Program, locations: bool = True, elide_above: int | None = None) -> str:
    """``program`` as text. ``locations=False`` leaves out where operations come from; constants of more than
    ``elide_above`` bytes are elided, which makes the text unreadable for the parser."""
    printer = Printer(locations, elide_above)
    printer.program(program)
    for function in program.functions.values():
        printer.function(function)
    return "".join(printer.parts)


def print_operation(op: Operation, locations: bool = False, elide_above: int | None = 64) -> str:
    """One operation with its regions, for messages and debugging."""
    printer = Printer(locations, elide_above)
    printer.operation(op, "", None)
    return "".join(printer.parts).rstrip("\n")


class Printer:
    """Collects the pieces of text in ``parts``."""

    def __init__(self, locations: bool = True, elide_above: int | None = None) -> None:
        self.parts: list[str] = []
        self._locations = locations
        self._elide_above = elide_above
        self._types: dict[Type, str] = {}
        self._start_scope()

    def program(self, program: Program) -> None:
        """The header with inputs, states and attributes, then the body."""
        self._start_scope()
        text = f"program @{format_name(program.name)}({self._arguments(program.inputs)})"
        if program.states:
            text += " state(" + ", ".join(self._state(program, i) for i in range(len(program.states))) + ")"
        if program.attributes:
            text += f" attributes {format_attributes(program.attributes, self._elide_above)}"
        self.parts.append(text + " {\n")
        self.block(program.block, "  ", len(program.states))
        self.parts.append("}\n")

    def function(self, function: Function) -> None:
        """A function with its arguments, attributes and body."""
        self._start_scope()
        text = f"\nfunction @{format_name(function.name)}({self._arguments(function.block.arguments)})"
        if function.attributes:
            text += f" attributes {format_attributes(function.attributes, self._elide_above)}"
        self.parts.append(text + " {\n")
        self.block(function.block, "  ", None)
        self.parts.append("}\n")

    def block(self, block: Block, indent: str, states: int | None = None) -> None:
        """The operations, one a line; ``states`` of a program's block splits the return's operands."""
        op = block._first
        while op is not None:
            self.operation(op, indent, states)
            op = op._next

    def operation(self, op: Operation, indent: str, states: int | None) -> None:
        """One operation: results, name, operands, attributes, types, annotations, location, regions."""
        operands = [self._names.get(v) or self._name(v) for v in op._operands]
        if op.name == RETURN:
            text = "return(" + _split_return(operands, states) + ")"
        else:
            text = f"{self._operation_name(op.name)}({', '.join(operands)})"
        if op.attributes:
            text += " " + format_attributes(op.attributes, self._elide_above)
        if op.results:
            types = ", ".join([self._types.get(r.type) or self._type(r.type) for r in op.results])
            names = ", ".join([self._names.get(r) or self._name(r) for r in op.results])
            text = f"{names} = {text} : {types}"
        if op.annotations:
            text += f" annotations {format_attributes(op.annotations, self._elide_above)}"
        if self._locations and not op.location.is_unknown:
            text += f" loc({format_location(op.location)})"
        self.parts.append(indent + text)
        for region in op.regions:
            self._region(region, indent)
        self.parts.append("\n")

    def _region(self, region: Region, indent: str) -> None:
        self.parts.append(" region")
        if not region.blocks:
            self.parts.append(" none")
        for i, block in enumerate(region.blocks):
            arguments = f" ({self._arguments(block.arguments)})" if block.arguments else ""
            self.parts.append(f"{' next' if i else ''}{arguments} {{\n")
            self.block(block, indent + "  ")
            self.parts.append(indent + "}")

    def _state(self, program: Program, index: int) -> str:
        state = program.states[index]
        text = f"{self._name(state.argument)} = {quote(state.name)}: {self._type(state.type)}"
        if state.attributes:
            text += " " + format_attributes(state.attributes, self._elide_above)
        return text

    def _arguments(self, arguments: Sequence[Value]) -> str:
        return ", ".join(f"{self._name(a)}: {self._type(a.type)}" for a in arguments)

    def _type(self, type: Type) -> str:
        text = self._types.get(type)
        if text is None:
            text = self._types[type] = str(type)
        return text

    def _operation_name(self, name: str) -> str:
        return name if "." in name and IDENTIFIER.fullmatch(name) else quote(name)

    def _start_scope(self) -> None:
        self._names: dict[Value, str] = {}
        self._taken: dict[str, int] = {}
        self._number = 0

    def _name(self, value: Value) -> str:
        name = self._names.get(value)
        if name is not None:
            return name
        hint = value.name_hint
        if hint is None:
            name = f"%{self._number}"
            self._number += 1
        else:
            name = "%" + format_name(hint)
            count = self._taken.get(name, 0)
            self._taken[name] = count + 1
            if count:
                name += f"#{count}"
        self._names[value] = name
        return name


def _split_return(operands: list[str], states: int | None) -> str:
    if not states or len(operands) < states:
        return ", ".join(operands)
    cut = len(operands) - states
    return ", ".join(operands[:cut]) + "; " + ", ".join(operands[cut:])
