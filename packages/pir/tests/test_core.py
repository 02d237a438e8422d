"""Operations, blocks, regions and values: both sides of every link agree after every change."""

import random
from itertools import pairwise

import pytest

from argosy_pir import (
    Block,
    Builder,
    IRError,
    Operation,
    Program,
    Region,
    TensorType,
    print_program,
    structurally_equal,
)
from argosy_pir.program import program_of
from argosy_pir.values import VALUE_OPERATORS, Value, set_value_operators

T = TensorType((2, 3), "float32")


def make_chain(count: int) -> Program:
    program = Program()
    value = program.add_input(T, "x")
    builder = Builder(program.block)
    for _ in range(count):
        value = builder.create("foo.step", [value], {}, [T]).result
    program.set_outputs([value])
    return program


def test_uses_are_ordered_and_follow_replacement():
    """Uses list (operation, index) oldest first, and replacing a value moves all of them."""
    program = Program("p", [T, T])
    x, y = program.inputs
    builder = Builder(program.block)
    a = builder.create("foo.add", [x, x], None, [T])
    b = builder.create("foo.add", [y, x], None, [T])
    assert x.uses == ((a, 0), (a, 1), (b, 1))
    assert x.users == (a, b)
    x.replace_all_uses_with(y)
    assert x.uses == ()
    assert b.operands == (y, y)
    assert y.uses == ((b, 0), (a, 0), (a, 1), (b, 1))


def test_a_name_is_a_dialect_and_a_kind():
    """What stands before the first dot is the dialect, all after it the kind."""
    for name, dialect, kind in (
        ("prim.add", "prim", "add"),
        ("phi.mine.shift", "phi", "mine.shift"),
        ("add", "add", ""),
    ):
        op = Operation(name)
        assert (op.dialect, op.kind) == (dialect, kind)


def test_annotations_are_no_part_of_what_an_operation_means():
    """What is built in an operation's place and its copies carry its annotations; programs that differ in them alone
    are equal, unless one asks."""
    program = make_chain(2)
    other = program.clone()
    first = program.block.first
    first.annotate(stage=1)
    first.annotate(note=[2, 3])
    assert first.annotations == {"stage": 1, "note": (2, 3)}
    assert not first.attributes
    beside = [*(b.create("foo.a", (), {}, ()) for b in (Builder.before(first), Builder.after(first))), first.clone()]
    assert all(op.annotations == first.annotations for op in beside)
    for op in beside[:2]:
        op.erase()
    assert structurally_equal(program, other)
    assert not structurally_equal(program, other, annotations=True)
    assert "annotations {stage = 1, note = (2, 3)}" in print_program(program)


def test_erase_refuses_while_used():
    """An operation whose result is used stays; the error names the user."""
    program = make_chain(2)
    first = program.block.first
    with pytest.raises(IRError, match=r"result 0 is used by 'foo.step'"):
        first.erase()
    assert len(program.block) == 3


def test_iteration_survives_erasing_and_inserting():
    """Each operation present at the start and not erased is visited once, whatever happens around it."""
    program = make_chain(6)
    seen = []
    for op in program.block:
        seen.append(op)
        if op.name == "foo.step":
            op.replace_with(op.operands)
            following = program.block.first
            if len(program.block) == 4:
                following.replace_with(following.operands)  # the one that comes next
    assert len(seen) == 6
    assert [op.name for op in program.block] == ["builtin.return"]
    assert program.outputs == program.inputs


def test_iteration_backwards():
    """A block reads the same from both ends."""
    block = make_chain(4).block
    assert list(reversed(block)) == list(block)[::-1] == list(block.operations)[::-1]
    assert block.operations[-1] is block.last


def test_move_and_order():
    """Moving keeps the links whole, and order queries follow."""
    block = Block()
    a, b, c = (block.append(Operation(f"foo.{n}")) for n in "abc")
    c.move_before(a)
    assert [op.name for op in block] == ["foo.c", "foo.a", "foo.b"]
    assert c.is_before(a)
    assert a.is_before(b)
    a.move_after(b)
    assert [op.name for op in reversed(block)] == ["foo.a", "foo.b", "foo.c"]
    assert not a.is_before(b)


@pytest.mark.parametrize("place", ["first", "last", "anywhere"])
def test_order_after_many_insertions(place):
    """Order queries agree with the list wherever operations come in and go, also where numbers run out."""
    block, choice = Block(), random.Random(0)
    ops = [block.append(Operation("foo.op")) for _ in range(2)]
    for _ in range(300):
        at = {"first": 1, "last": len(ops) - 1, "anywhere": choice.randrange(len(ops))}[place]
        ops.insert(at, block.insert_before(ops[at], Operation("foo.op")))
        one, other = sorted(choice.sample(range(len(ops)), 2))
        assert ops[one].is_before(ops[other])
        assert not ops[other].is_before(ops[one])
        if place == "anywhere" and len(ops) > 20:
            ops.pop(choice.randrange(len(ops))).erase()
    assert all(one.is_before(other) for one, other in pairwise(ops))


def test_clone_is_deep_and_independent():
    """A clone has its own operations, regions and arguments, and maps every value."""
    body = Block([T])
    body.append(Operation("foo.yield", [body.arguments[0]]))
    program = make_chain(1)
    builder = Builder.before(program.block.last)
    op = builder.create("foo.loop", [program.inputs[0]], {"n": 3}, [T], [Region([body])])
    mapping: dict = {}
    copy = program.clone(mapping)
    assert str(copy) == str(program)
    assert mapping[op.result].op.regions[0].block.arguments[0] is mapping[body.arguments[0]]
    mapping[op.result].op.attributes["n"] = 4
    assert op.attributes["n"] == 3
    copy.verify()


def test_walk_is_preorder_through_regions():
    """Walking gives an operation before what its regions hold, and that before what follows."""
    inner = Block()
    inner.append(Operation("foo.inner"))
    outer = Operation("foo.outer", regions=[Region([inner])])
    block = Block()
    block.append(outer)
    block.append(Operation("foo.after"))
    assert [op.name for op in block.walk()] == ["foo.outer", "foo.inner", "foo.after"]
    assert inner.first.parent_op is outer
    assert outer.is_ancestor_of(inner.first)
    assert not inner.first.is_ancestor_of(outer)


def test_values_refuse_arithmetic_without_a_provider():
    """Operators on values say which package gives them meaning, and iteration does not run away."""
    installed = {name: getattr(Value, name) for name in VALUE_OPERATORS}
    set_value_operators({})
    try:
        x = Program("p", [T]).inputs[0]
        with pytest.raises(TypeError, match="argosy_phi_ops"):
            x + 1
        with pytest.raises(TypeError):
            iter(x)
        assert x == x  # identity, never an operation
    finally:
        set_value_operators(installed)  # other packages in this process need theirs


def test_a_program_becomes_another():
    """Inputs, states, functions and attributes come with their program; the other one is empty afterwards."""
    text = """program @b(%x: tensor<[2], int32>) state(%s = "s": tensor<[2], int32>) attributes {a = 1} {
  %y = test.neg(%x) : tensor<[2], int32>
  return(%y; %s)
}
"""
    program, other = Program("a"), Program.parse(text)
    program.become(other)
    program.verify()
    assert print_program(program) == text
    assert program_of(program.block.first) is program
    assert (len(other.block), other.states) == (0, [])
