"""Rewriting: patterns match what they say, the driver ends, and fuel stops it after so many steps."""

import pytest

from argosy_pir import Builder, DialectError, Program, TensorType
from argosy_pir.rewrite import (
    Pattern,
    Session,
    any_value,
    apply_patterns,
    attribute,
    computed_attribute,
    observe,
    op,
    rule,
    splat,
)

T = TensorType((4,), "int32")
x = any_value("x")
NEGATE_TWICE = rule("negate-twice", op("test.neg", op("test.neg", x)), x)


def negations(count):
    program = Program("p", [T])
    value = program.inputs[0]
    for _ in range(count):
        value = Builder(program.block).create("test.neg", [value]).result
    program.set_outputs([value])
    return program


def names(program):
    return [o.name for o in program.block][:-1]


def test_long_chains_collapse_in_few_iterations():
    """A thousand negations vanish, and the statistics count each application."""
    program = negations(1000)
    result = apply_patterns(program, [NEGATE_TWICE])
    assert program.outputs == program.inputs
    assert result.applied["negate-twice"] == 500
    assert result.converged
    program.verify()


def test_long_dead_chains_go_at_once():
    """What dies with a dead operation goes in the same iteration."""
    program = negations(300)
    program.set_outputs(program.inputs)
    result = apply_patterns(program, [], max_iterations=1)
    assert len(program.block) == 1
    assert result.applied == {"dead": 300}


def test_fuel_allows_only_so_many_steps():
    """With fuel for three steps three happen, and the session names the last."""
    program = negations(20)
    with observe(fuel=3) as session:
        apply_patterns(program, [rule("twice", op("test.neg", op("test.neg", x)), x)])
    assert sum(session.statistics.values()) == 3
    assert session.fuel == 0
    program.verify()
    with observe() as session:
        apply_patterns(program, [NEGATE_TWICE])
    assert session.statistics["negate-twice"] >= 7
    assert program.outputs == program.inputs


def test_the_driver_stops_at_its_bound():
    """A pattern that undoes itself for ever is stopped, and the result says so."""
    program = negations(1)
    flip = [
        rule("there", op("test.neg", x), op("test.pure", x, type=T)),
        rule("back", op("test.pure", x), op("test.neg", x)),
    ]
    result = apply_patterns(program, flip, max_iterations=7)
    assert not result.converged
    assert result.iterations == 7
    program.verify()


def test_attributes_are_captured_and_computed():
    """Attribute variables match, constrain, and feed computed attributes."""
    program = Program("p", [T])
    builder = Builder(program.block)
    a = builder.create("test.typed", program.inputs, {"axis": 2}, [T]).result
    b = builder.create("test.typed", [a], {"axis": 3}, [T]).result
    program.set_outputs([b])
    add = rule(
        "add-axes",
        op("test.typed", op("test.typed", x, axis=attribute("i")), axis=attribute("j", lambda j: j > 2)),
        op("test.typed", x, axis=computed_attribute(lambda m: m["i"] + m["j"]), type=T),
    )
    apply_patterns(program, [add])
    assert names(program) == ["test.typed"]
    assert program.block.first.attributes["axis"] == 5


def test_repeated_names_splats_and_either_order():
    """A name used twice needs the same value; commutative operands match in both orders; splats match by number."""
    program = Program("p", [T, T])
    a, b = program.inputs
    builder = Builder(program.block)
    one = builder.constant(T, 1)
    same = builder.create("test.sub", [a, a]).result
    other = builder.create("test.sub", [a, b]).result
    plus = builder.create("test.add", [one, b]).result
    program.set_outputs([same, other, plus])
    patterns = [
        rule("minus-itself", op("test.sub", x, x), splat(0)),
        rule("plus-one", op("test.add", x, splat(1)), op("test.neg", x)),
    ]
    result = apply_patterns(program, patterns)
    assert result.applied["minus-itself"] == result.applied["plus-one"] == 1
    assert [v.op.name for v in program.outputs] == ["builtin.constant", "test.sub", "test.neg"]
    program.verify()


def test_benefit_decides_and_conditions_hold_back():
    """The pattern of higher benefit goes first; ``where`` sees the match."""
    program = negations(1)
    low = rule("low", op("test.neg", x), op("test.pure", x, type=T))
    high = rule("high", op("test.neg", x), op("test.effect", x, type=T), benefit=2)
    never = rule("never", op("test.neg", x), x, benefit=3, where=lambda m: m["root"].attributes.get("go", False))
    assert apply_patterns(program, [low, high, never]).applied == {"high": 1}


def test_replacements_keep_types():
    """A rule that would change the type of a value is a mistake in the dialect, and named."""
    program = negations(1)
    wrong = rule("wrong", op("test.neg", x), op("test.pure", x, type=TensorType((5,), "int32")))
    with pytest.raises(DialectError, match=r"rule 'wrong' replaces tensor<\[4\], int32> by tensor<\[5\], int32>"):
        apply_patterns(program, [wrong])


def test_class_patterns_see_every_operation():
    """A pattern without a root is tried everywhere, in regions too, and survives erasing whole trees."""

    class DropEffects(Pattern):
        name = "drop-effects"

        def rewrite(self, op, rewriter):
            if op.name != "test.effect" or any(r.uses for r in op.results):
                return False
            rewriter.erase(op)
            return True

    text = """program @p() {
      test.effect() region { test.effect() test.effect() region { test.effect() } }
      test.pure() region { test.effect() }
      return()
    }"""
    program = Program.parse(text)
    apply_patterns(program, [DropEffects()])
    assert len(program.block) == 1


def test_a_session_leaves_out_steps_and_lets_others_happen_for_nothing():
    """Steps of a kind that is left out do not happen; those that must happen take no fuel."""
    session = Session(fuel=1, without=("rewrite", "fold"), always=("dce",))
    took = [session.take(step, program) for step, program in [
        ("rewrite.add", None), ("fold", None), ("dce", None), ("cse", "here"), ("cse", None), ("dce", None),
    ]]  # fmt: skip
    assert took == [False, False, True, True, False, True]
    assert session.statistics == {"dce": 2, "cse": 1}
    assert (session.spent, session.fuel, session.last) == (1, 0, "cse of here")


def test_patterns_without_fuel_are_not_tried():
    """A pattern that is left out changes nothing, and others go on."""
    program = negations(4)
    with observe(Session(without=("negate-twice",))):
        assert apply_patterns(program, [NEGATE_TWICE]).applied == {}
    assert apply_patterns(program, [NEGATE_TWICE], max_iterations=1).applied == {"negate-twice": 2}


def test_a_block_alone_is_rewritten_without_its_regions():
    """What takes an operation's place is rewritten before its users are looked at."""
    text = """program @p(%0: tensor<[4], int32>) {
      %1 = test.neg(%0) : tensor<[4], int32>
      %2 = test.neg(%1) : tensor<[4], int32>
      test.effect(%2) region {
        %3 = test.neg(%0) : tensor<[4], int32>
        %4 = test.neg(%3) : tensor<[4], int32>
        test.effect(%4)
      }
      return()
    }"""
    program = Program.parse(text)
    assert apply_patterns(program.block, [NEGATE_TWICE]).applied == {"negate-twice": 1, "dead": 1}
    assert apply_patterns(program, [NEGATE_TWICE]).applied == {"negate-twice": 1, "dead": 1}
