"""Programs: one block of operations over inputs and named states, and the functions it calls."""

from __future__ import annotations

from argosy_pir.attributes import Attributes
from argosy_pir.core import Block, Operation, Region
from argosy_pir.dims import SymExpr, dim_symbols
from argosy_pir.errors import IRError
from argosy_pir.opdef import RETURN
from argosy_pir.types import FunctionType, TensorType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from argosy_pir.attributes import Attribute
    from argosy_pir.types import Type
    from argosy_pir.values import BlockArgument, Value

__all__ = ["Function", "Program", "State", "from_bytes", "parse_program", "program_of"]


class State:
    """A named tensor that a program reads and writes in place: a parameter, a moment, a running statistic.

    ``argument`` is the block argument that holds its value on entry; ``attributes`` say what it is for.
    """

    __slots__ = ("argument", "attributes", "name")

    def __init__(self, name: str, argument: BlockArgument, attributes: Mapping[str, Attribute] | None = None) -> None:
        self.name = name
        self.argument = argument
        self.attributes = Attributes(attributes or {})

    @property
    def type(self) -> Type:
        """The type of the tensor."""
        return self.argument.type

    def __repr__(self) -> str:
        return f"<State {self.name!r}: {self.type}>"


class Function:
    """A named block that ``builtin.call`` runs; it ends in ``builtin.return``. ``parent`` is its program."""

    __slots__ = ("attributes", "name", "parent", "region")

    def __init__(self, name: str, argument_types: Iterable[Type] = ()) -> None:
        self.name = _check_name(name)
        self.attributes = Attributes()
        self.parent: Program | None = None
        self.region = Region([Block(argument_types)])
        self.region.parent = self

    @property
    def block(self) -> Block:
        """Its body."""
        return self.region.block

    @property
    def type(self) -> FunctionType:
        """What it takes and gives; raises ``IRError`` before it has a terminator."""
        return FunctionType([a.type for a in self.block.arguments], [v.type for v in _returned_values(self.block)])

    def clone(self, mapping: dict[Value, Value] | None = None) -> Function:
        """A copy that belongs to no program."""
        made = Function(self.name)
        made.attributes = self.attributes.copy()
        made.region = self.region.clone({} if mapping is None else mapping)
        made.region.parent = made
        return made

    def __repr__(self) -> str:
        return f"<Function @{self.name}>"


class Program:
    """A whole program. Its block's arguments are the inputs, then the states.

    The block ends in ``builtin.return(outputs..., new value of each state...)``; a state returned as itself
    is read-only. Build it with :meth:`add_input`, :meth:`add_state`, a ``Builder`` on ``.block``, and
    :meth:`set_outputs`.
    """

    __slots__ = ("_names", "attributes", "functions", "name", "region", "states")

    def __init__(self, name: str = "main", input_types: Iterable[Type] = ()) -> None:
        self.name = _check_name(name)
        self.attributes = Attributes()
        self.functions: dict[str, Function] = {}
        self.states: list[State] = []
        self._names: set[str] = set()
        self.region = Region([Block(input_types)])
        self.region.parent = self

    @property
    def block(self) -> Block:
        """Its body."""
        return self.region.block

    @property
    def inputs(self) -> tuple[BlockArgument, ...]:
        """The block arguments that callers pass."""
        arguments = self.block.arguments
        return arguments[: len(arguments) - len(self.states)]

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The returned values; raises ``IRError`` before :meth:`set_outputs`."""
        values = _returned_values(self.block)
        return values[: len(values) - len(self.states)]

    @property
    def state_updates(self) -> tuple[Value, ...]:
        """The new value of each state, in the order of ``states``."""
        values = _returned_values(self.block)
        return values[len(values) - len(self.states) :]

    def add_input(self, type: Type, name_hint: str | None = None) -> BlockArgument:
        """Add an input after the existing ones."""
        return self.block.add_argument(type, name_hint, len(self.inputs))

    def add_state(
        self,
        name: str,
        type: Type,
        attributes: Mapping[str, Attribute] | None = None,
        name_hint: str | None = None,
    ) -> State:
        """Add a state; its value on entry is ``.argument``. If the program has a terminator already, it
        returns the state unchanged. Raises ``IRError`` for a name that is taken."""
        if name in self._state_names():
            raise IRError(f"program '{self.name}' already has a state named {name!r}")
        self._names.add(name)
        state = State(name, self.block.add_argument(type, name_hint), attributes)
        self.states.append(state)
        last = self.block.last
        if last is not None and last.name == RETURN:
            last.set_operands((*last.operands, state.argument))
        return state

    def _state_names(self) -> set[str]:
        """Names that are taken; collected anew where states came or went otherwise."""
        if len(self._names) != len(self.states):
            self._names = {state.name for state in self.states}
        return self._names

    def set_outputs(self, outputs: Iterable[Value], state_updates: Sequence[Value] | None = None) -> Operation:
        """End the block with a return of ``outputs`` and the states' new values (None: all unchanged, or as
        already returned). Replaces a terminator that is there."""
        last = self.block.last
        if state_updates is None:
            ended = last is not None and last.name == RETURN
            state_updates = self.state_updates if ended else [state.argument for state in self.states]
        if len(state_updates) != len(self.states):
            raise IRError(f"program '{self.name}' has {len(self.states)} states but {len(state_updates)} updates")
        values = (*outputs, *state_updates)
        if last is not None and last.name == RETURN:
            last.erase()
        return self.block.append(Operation(RETURN, values))

    def add_function(self, function: Function) -> Function:
        """Take in ``function``; raises ``IRError`` for a name that is taken."""
        if function.name in self.functions:
            raise IRError(f"program '{self.name}' already has a function @{function.name}")
        function.parent = self
        self.functions[function.name] = function
        return function

    def new_function(self, name: str) -> Function:
        """An empty function of this program; raises ``IRError`` for a name that is taken."""
        return self.add_function(Function(name))

    def symbols(self) -> tuple[str, ...]:
        """Names of the symbolic sizes in its input and state types, in order of appearance."""
        found: dict[str, None] = {}
        for argument in self.block.arguments:
            if isinstance(argument.type, TensorType):
                for size in argument.type.shape:
                    if isinstance(size, SymExpr):
                        found.update(dict.fromkeys(sorted(dim_symbols(size))))
        return tuple(found)

    def walk(self) -> Iterator[Operation]:
        """All operations: the block's, then each function's, pre-order with regions."""
        yield from self.region.walk()
        for function in tuple(self.functions.values()):
            yield from function.region.walk()

    def clone(self, mapping: dict[Value, Value] | None = None) -> Program:
        """A deep copy; ``mapping`` receives old value to new value."""
        mapping = {} if mapping is None else mapping
        made = Program(self.name)
        made.attributes = self.attributes.copy()
        made.region = self.region.clone(mapping)
        made.region.parent = made
        arguments = made.block.arguments[len(self.inputs) :]
        made.states = [State(s.name, a, s.attributes) for s, a in zip(self.states, arguments, strict=True)]
        for function in self.functions.values():
            made.add_function(function.clone(mapping))
        return made

    def become(self, other: Program) -> None:
        """Take over all that ``other`` is, which is nothing afterwards: what a pass does that makes a program anew."""
        self.name, self.attributes, self.functions = other.name, other.attributes, other.functions
        self.states, self._names, self.region = other.states, other._names, other.region
        self.region.parent = self
        for function in self.functions.values():
            function.parent = self
        other.functions, other.states, other._names, other.region = {}, [], set(), Region([Block()])
        other.region.parent = other

    def verify(self) -> None:
        """Check every rule; raises ``VerifyError`` at the first that is broken."""
        from argosy_pir.verifier import verify_program

        verify_program(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickling and deep copies go through the binary form."""
        from argosy_pir.serialization import to_bytes

        return from_bytes, (to_bytes(self),)

    @staticmethod
    def parse(text: str, name: str = "<text>", verify: bool = False) -> Program:
        """The program that ``text`` describes; raises ``ParseError``, which shows ``name`` as the source. With
        ``verify`` it is checked, too, and a broken rule shown at its operation."""
        from argosy_pir.text.parser import read_program

        return read_program(Program, text, name, verify)

    def __str__(self) -> str:
        from argosy_pir.text.printer import print_program

        return print_program(self)

    def _repr_html_(self) -> str:
        """What notebooks show: the text, folded under name and size."""
        from html import escape

        count = sum(1 for _ in self.walk())
        title = f"<b>Program</b> {escape(self.name)}: {count} operations"
        return f"<details open><summary>{title}</summary><pre>{escape(str(self))}</pre></details>"

    def __repr__(self) -> str:
        return f"<Program {self.name} of {len(self.block)} operations>"


parse_program = Program.parse


def from_bytes(data: bytes) -> Program:
    """The program in ``data``, which is not verified; raises ``FormatError`` for anything else."""
    from argosy_pir.serialization import read_bytes

    return read_bytes(Program, data)


def _check_name(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise IRError(f"programs and functions have non-empty names, got {name!r}")
    return name


def _returned_values(block: Block) -> tuple[Value, ...]:
    last = block.last
    if last is None or last.name != RETURN:
        raise IRError(f"the block does not end in {RETURN} yet")
    return last.operands


def program_of(op: Operation) -> Program | None:
    """The program an operation is in, through all regions and functions; None while detached."""
    while op.parent is not None and op.parent.parent is not None:
        owner = op.parent.parent.parent
        if isinstance(owner, Operation):
            op = owner
        else:
            return owner.parent if isinstance(owner, Function) else owner
    return None
