"""Control flow: result types come from the regions, and mismatches are named."""

import pytest

from argosy_pir import Block, Builder, Program, Region, SymExpr, TensorType, VerifyError

T = TensorType((3,), "float32")
INDEX = TensorType((), "int64")
FLAG = TensorType((), "bool")


def region(argument_types, build, terminator="control.yield"):
    """A region of one block whose terminator takes what ``build(builder, *arguments)`` returns."""
    block = Block(argument_types)
    builder = Builder(block)
    builder.create(terminator, build(builder, *block.arguments))
    return Region([block])


def neg(builder, x):
    return builder.create("test.neg", [x]).result


def test_if():
    """Both regions yield the results; a difference or a wrong condition is refused."""
    program = Program("p", [FLAG, T])
    flag, x = program.inputs
    builder = Builder(program.block)
    op = builder.create("control.if", [flag], regions=[region([], lambda b: [neg(b, x)]), region([], lambda b: [x])])
    assert op.result.type == T
    with pytest.raises(ValueError, match=r"yields \(\), expected \(tensor<\[3\], float32>\)"):
        builder.create("control.if", [flag], regions=[region([], lambda b: [x]), region([], lambda b: [])])
    with pytest.raises(TypeError, match="the condition is a"):
        builder.create("control.if", [x], regions=[region([], lambda b: []), region([], lambda b: [])])
    program.set_outputs([op.result])
    program.verify()


def test_while_and_for():
    """Carried values keep their types through the regions."""
    program = Program("p", [FLAG, T, INDEX])
    flag, x, n = program.inputs
    builder = Builder(program.block)
    condition = region([T], lambda b, v: [flag], "control.condition")
    loop = builder.create("control.while", [x], regions=[condition, region([T], lambda b, v: [neg(b, v)])])
    counted = builder.create(
        "control.for", [n, n, n, loop.result], regions=[region([INDEX, T], lambda b, i, v: [neg(b, v)])]
    )
    program.set_outputs([counted.result])
    program.verify()
    with pytest.raises(VerifyError, match=r"region 0 takes \(tensor<\[3\], float32>\), expected \(tensor<\[\], int64>"):
        builder.create("control.for", [n, n, n, x], regions=[region([T], lambda b, v: [x])])


def test_scan_stacks_and_carries():
    """Stacked results get the scanned length in front; carried ones keep their type."""
    rows = SymExpr.symbol("rows")
    program = Program("p", [TensorType((rows, 3), "float32"), T])
    xs, carry = program.inputs
    builder = Builder(program.block)

    def body(b, x, c):
        total = b.create("test.add", [x, c]).result
        return [total, total]

    op = builder.create("control.scan", [xs, carry], {"inputs": 1, "reverse": True}, regions=[region([T, T], body)])
    assert [r.type for r in op.results] == [TensorType((rows, 3), "float32"), T]
    program.set_outputs(op.results)
    program.verify()
    with pytest.raises(ValueError, match="agree in one leading size"):
        builder.create("control.scan", [carry], {"inputs": 0}, regions=[region([T], lambda b, c: [c])])

    block = Block([T])
    Builder(block).create("test.neg", block.arguments)
    with pytest.raises(ValueError, match=r"found .test\.neg"):
        builder.create("control.scan", [carry], {"inputs": 0, "length": 4}, regions=[Region([block])])


def test_missing_attributes_and_operands_are_named():
    """Building with too little says what is missing instead of failing inside the dialect."""
    program = Program("p", [T])
    builder = Builder(program.block)
    with pytest.raises(VerifyError, match="needs attribute 'inputs'"):
        builder.create("control.scan", program.inputs, regions=[Region()])
    with pytest.raises(VerifyError, match=r"takes operands \(start, stop, step, \*carried\), got 1"):
        builder.create("control.for", program.inputs, regions=[Region()])
    with pytest.raises(ValueError, match="found 0 blocks"):
        builder.create("control.while", program.inputs, regions=[Region(), Region()])
