"""Passes keep what programs mean: outputs and the order of effects, on random programs with control flow and calls."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pir_interpreter import Interpreter
from pir_programs import steady

from argosy_pir import Block, Builder, Function, Operation, Program, Region, Symbol, TensorType
from argosy_pir.passes import PassManager
from argosy_pir.rewrite import observe

INT = TensorType((), "int64")
FLAG = TensorType((), "bool")
ROW = TensorType((3,), "int64")


class Source:
    """Grows random blocks of integer operations."""

    def __init__(self, draw, program, flag, row):
        self.draw, self.program, self.flag, self.row = draw, program, flag, row

    def pick(self, values):
        return self.draw(st.sampled_from(values))

    def fill(self, block, values, depth):
        """Add operations to ``block``; returns all integers in sight at its end."""
        values = list(values)
        builder = Builder(block)
        for _ in range(self.draw(st.integers(0, 4))):
            kind = self.draw(st.sampled_from("add add sub neg constant effect if for scan call".split()))
            if kind in ("if", "for", "scan") and (depth == 0 or not self.row):
                kind = "neg"
            values += getattr(self, kind)(builder, values, depth)
        return values

    def add(self, builder, values, depth, name="test.add"):
        op = builder.create(name, [self.pick(values), self.pick(values)])
        if self.draw(st.booleans()):
            op.attributes["outline"] = self.draw(st.sampled_from(["a", "b"]))
        return [op.result]

    def sub(self, builder, values, depth):
        return self.add(builder, values, depth, "test.sub")

    def neg(self, builder, values, depth):
        return [builder.create("test.neg", [self.pick(values)]).result]

    def constant(self, builder, values, depth):
        return [builder.constant(INT, self.draw(st.integers(0, 2)))]

    def effect(self, builder, values, depth):
        builder.create("test.effect", [self.pick(values)], {}, [])
        return []

    def call(self, builder, values, depth):
        if not self.program.functions:
            return []
        name = self.pick(sorted(self.program.functions))
        op = builder.create("builtin.call", [self.pick(values)], {"callee": Symbol(name)}, [INT])
        return [op.result]

    def region(self, types, values, count, depth):
        block = Block(types)
        inner = self.fill(block, [*values, *(a for a in block.arguments if a.type == INT)], depth - 1)
        Builder(block).create("control.yield", [self.pick(inner) for _ in range(count)])
        return Region([block])

    def _condition(self, builder):
        return self.flag if self.draw(st.booleans()) else builder.constant(FLAG, self.draw(st.booleans()))

    def if_(self, builder, values, depth):
        regions = [self.region([], values, 2, depth) for _ in range(2)]
        return list(builder.create("control.if", [self._condition(builder)], regions=regions).results)

    def for_(self, builder, values, depth):
        bounds = [builder.constant(INT, n) for n in (0, self.draw(st.integers(0, 3)), 1)]
        operands = [*bounds, self.pick(values), self.pick(values)]
        regions = [self.region([INT, INT, INT], values, 2, depth)]
        return list(builder.create("control.for", operands, regions=regions).results)

    def scan(self, builder, values, depth):
        carried = [self.pick(values), self.pick(values)]
        regions = [self.region([INT, INT, INT], values, 3, depth)]
        attributes = {"inputs": 1, "reverse": self.draw(st.booleans())}
        op = builder.create("control.scan", [self.pick(self.row), *carried], attributes, regions=regions)
        self.row = [*self.row, op.results[0]] if builder.block is self.program.block else self.row
        return list(op.results[1:])


setattr(Source, "if", Source.if_)
setattr(Source, "for", Source.for_)


@st.composite
def meaningful_programs(draw):
    """Programs of one flag, one row and two integers, with a state, effects, control flow and functions."""
    program = Program("p", [FLAG, ROW, INT, INT])
    state = program.add_state("s", INT)
    for name in draw(st.sampled_from([(), ("f",), ("f", "g")])):
        function = Function(name, [INT])
        values = Source(draw, program, None, ()).fill(function.block, function.block.arguments, 0)
        function.block.append(Operation("builtin.return", [draw(st.sampled_from(values))]))
        program.add_function(function)
    flag, row, *integers = program.inputs
    source = Source(draw, program, flag, [row])
    values = source.fill(program.block, [*integers, state.argument], 2)
    outputs = [*(draw(st.sampled_from(values)) for _ in range(2)), source.row[-1]]
    program.set_outputs(outputs, [draw(st.sampled_from(values))])
    program.verify()
    return program


ARGUMENTS = st.tuples(
    st.booleans(), st.lists(st.integers(-9, 9), min_size=3, max_size=3), *[st.integers(-9, 9)] * 3
).map(list)


def meaning(program, arguments):
    interpreter = Interpreter(program)
    return interpreter.run(arguments), interpreter.trace


@pytest.mark.parametrize(
    "pipeline",
    ["canonicalize", "cse", "dce", "inline,symbol-dce", "outline{repeated=2}", "outline,inline,canonicalize,cse,dce"],
)
@steady
@given(program=meaningful_programs(), arguments=ARGUMENTS)
def test_passes_keep_the_meaning(pipeline, program, arguments):
    """Outputs, new states and the sequence of effects are what they were."""
    before = meaning(program, arguments)
    PassManager(pipeline).run(program)
    assert meaning(program, arguments) == before


@settings(steady, max_examples=40)
@given(program=meaningful_programs(), arguments=ARGUMENTS, fuel=st.integers(0, 12))
def test_any_amount_of_fuel_leaves_a_right_program(program, arguments, fuel):
    """Stopping after any number of steps leaves a valid program of the same meaning."""
    before = meaning(program, arguments)
    manager = PassManager("inline,canonicalize,cse,dce", fuel=fuel)
    manager.run(program)
    assert meaning(program, arguments) == before
    assert sum(manager.session.statistics.values()) <= fuel
    with observe(fuel=0):
        assert not PassManager("cse", fuel=0).run(program)
