"""Masks by hand are told exactly, and attention by hand is made incremental."""

import numpy as np
import pytest

from argosy_infer import Generator, LoadedProgram, Predictor, make_incremental
from argosy_infer.caches import caches_of
from argosy_infer.errors import IncrementalError
from argosy_infer.masks import COLUMN, ROW, Bands, causal_window, mask_of
from argosy_infer.weights import apply_operator
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.passes.decompose import Decompose
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir.builder import Builder
from argosy_pir.dims import SymExpr
from argosy_pir.program import Program
from argosy_pir.types import TensorType

B, S = SymExpr.symbol("b"), SymExpr.symbol("s")
INFINITY = float("inf")


def op(name):
    return get_operator(name)


def square(value, dtype="float32"):
    return prim.constant(value, dtype, (S, S))


def rows_and_columns(dtype="int64"):
    """Positions of queries [s, 1] and of keys [1, s]."""
    line = prim.iota(shape=(S,), axis=0, dtype=dtype)
    return op("unsqueeze")(line, 1), op("unsqueeze")(line, 0)


def compared(name, shift=0, dtype="int64"):
    rows, columns = rows_and_columns(dtype)
    return op(name)(columns, prim.add(rows, shift) if shift else rows)


def windowed(size):
    return op("logical_and")(compared("less_equal"), compared("greater_than", -size))


MASKS = {
    "tril of booleans": (lambda: op("tril")(square(True, "bool")), 0),
    "triu of minus infinity": (lambda: op("triu")(square(-INFINITY), 1), 0),
    "one less tril, times minus a billion": (lambda: prim.mul(prim.sub(1.0, op("tril")(square(1.0))), -1e9), 0),
    "where": (lambda: op("where")(compared("greater_than"), square(-1e30), square(0.0)), 0),
    "columns before the next row": (lambda: compared("less_than", 1), 0),
    "floats": (lambda: compared("less_equal", 0, "float32"), 0),
    "not after": (lambda: prim.logical_not(compared("greater_than")), 0),
    "doubled": (lambda: prim.le(*(prim.mul(prim.iota(shape=(S, S), axis=a, dtype="int64"), 2) for a in (1, 0))), 0),
    "window": (lambda: windowed(3), 3),
    "window by distance": (
        lambda: op("logical_and")(
            *(op(name)(prim.sub(*rows_and_columns()), n) for name, n in (("greater_equal", 0), ("less_than", 4)))
        ),
        4,
    ),
    "band of tril and triu": (lambda: op("triu")(op("tril")(square(1.0)), -1), None),
    "sum of two": (lambda: prim.add(op("triu")(square(-INFINITY), 1), op("tril")(square(-1e9), -2)), 2),
    "one": (lambda: prim.eq(*(prim.iota(shape=(S, S), axis=a, dtype="int64") for a in (0, 1))), 1),
    "turned round": (lambda: prim.transpose(op("triu")(square(True, "bool")), permutation=(1, 0)), 0),
    "anti-causal": (lambda: compared("greater_equal"), None),
    "without itself": (lambda: compared("less_than"), None),
    "beyond itself": (lambda: compared("less_equal", 1), None),
    "all": (lambda: square(True, "bool"), None),
    "a bias that falls": (lambda: prim.cast(prim.sub(*reversed(rows_and_columns())), dtype="float32"), None),
    "every second": (lambda: prim.eq(prim.floor_mod(prim.iota(shape=(S, S), axis=1, dtype="int64"), 2), 0), None),
    "positions that are rounded": (lambda: compared("less_equal", 0, "bfloat16"), None),
    "positions that wrap around": (lambda: compared("less_equal", 0, "uint8"), None),
    "a little": (lambda: op("triu")(square(-3.0), 1), None),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
def test_masks_are_told_exactly(name):
    """Bands hold what the interpreter computes at every pair of positions."""
    build, window = MASKS[name]
    program = Program("mask")
    ids = program.add_input(TensorType((S, S), "bool"))
    with emit_at(Builder.at_end(program.block)):
        value = build()
        program.set_outputs([value, ids])
    found = mask_of(value, (ROW, COLUMN))
    assert (causal_window(found) if isinstance(found, Bands) else None) == window
    if isinstance(found, Bands):
        (expected, _), _ = interpret(program, [np.zeros((9, 9), bool)], [])
        told = [[found.value_at(j - i) for j in range(9)] for i in range(9)]
        np.testing.assert_array_equal(told, expected)


def attend_by_hand(q, k, v, mask, scale=0.5, softcap=0.0, select=False):
    """[b, s, h, d] by products and a softmax, over [b, h, s, s]."""
    scores = prim.dot_general(q, k, lhs_contract=(3,), rhs_contract=(3,), lhs_batch=(0, 2), rhs_batch=(0, 2))
    scores = prim.mul(scores, scale)
    if softcap:
        scores = prim.mul(prim.tanh(prim.div(scores, softcap)), softcap)
    scores = op("where")(mask(), scores, square(-1e9)) if select else op("add")(scores, mask())
    weights = apply_operator("softmax", scores)
    mixed = prim.dot_general(weights, v, lhs_contract=(3,), rhs_contract=(1,), lhs_batch=(0, 1), rhs_batch=(0, 2))
    return prim.transpose(mixed, permutation=(0, 2, 1, 3))


def attend_with_mask(q, k, v, mask):
    return apply_operator("scaled_dot_product_attention", q, k, v, mask(), scale=0.3)


def model(attend, real=None, **rule):
    """Embeddings, two heads of attention, logits. ``real``: the dtype of a second input [b, s], of which a mask is made
    as [b, 1, 1, s]."""
    program = Program("model")
    ids = program.add_input(TensorType((B, S), "int64"), "ids")
    given = None if real is None else program.add_input(TensorType((B, S), real), "real")
    shapes = {"table": (11, 8), "qkv": (8, 24)}
    states = {name: program.add_state(name, TensorType(shape, "float32")).argument for name, shape in shapes.items()}
    with emit_at(Builder.at_end(program.block)):
        x = op("embedding")(ids, states["table"])
        heads = op("reshape")(op("matmul")(x, states["qkv"]), [0, 0, 3, 2, 4])
        if given is not None:
            spread, mask = op("unsqueeze")(given, [1, 2]), rule.pop("mask")
            rule["mask"] = lambda: mask(spread)
        mixed = attend(*(op("squeeze")(part, 2) for part in op("split")(heads, 3, 2)), **rule)
        logits = op("matmul")(op("reshape")(mixed, [0, 0, 8]), states["table"], transpose_y=True)
    program.set_outputs([logits])
    rng = np.random.default_rng(0)
    return program, {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def whole(program, states, *inputs):
    plain = program.clone()
    Decompose().run(plain)
    return interpret(plain, list(inputs), [states[s.name] for s in program.states])[0][0]


WAYS = {
    "added": (attend_by_hand, {"mask": MASKS["triu of minus infinity"][0]}, 0),
    "capped": (attend_by_hand, {"mask": MASKS["one less tril, times minus a billion"][0], "softcap": 1.5}, 0),
    "selected": (attend_by_hand, {"mask": lambda: windowed(3), "select": True}, 3),
    "selected and capped": (attend_by_hand, {"mask": MASKS["tril of booleans"][0], "select": True, "softcap": 0.7}, 0),
    "mask": (attend_with_mask, {"mask": lambda: windowed(2)}, 2),
    "mask of every head": (attend_with_mask, {"mask": lambda: op("unsqueeze")(MASKS["where"][0](), [0, 1])}, 0),
}


@pytest.mark.parametrize("name", WAYS)
def test_attention_by_hand_is_decoded_as_it_is_computed_whole(name):
    attend, rule, window = WAYS[name]
    program, states = model(attend, **rule)
    assert {(c.kind, c.window) for c in caches_of(make_incremental(program))} == {
        ("window" if window else "full", window)
    }
    ids = np.array([3, 1, 4, 1, 5, 9, 2])
    generator = Generator(LoadedProgram(program, states), 16, 4, "reference")
    made = np.concatenate([generator.step(ids[a:b], range(a, b), [0] * (b - a)) for a, b in ((0, 4), (4, 5), (5, 7))])
    np.testing.assert_allclose(made, whole(program, states, ids[None])[0], rtol=0, atol=1e-5)


def test_masks_that_are_states_are_computed():
    """The first rows and columns of a buffer; positions are those that it has. Another buffer is left alone."""
    program, states = model(attend_with_mask, mask=lambda: square(True, "bool"))
    buffer = program.add_state("seen", TensorType((1, 1, 12, 12), "bool")).argument
    (attention,) = (op for op in program.block if op.name == "phi.scaled_dot_product_attention")
    with emit_at(Builder.before(attention)):
        attention.set_operand(3, prim.slice(buffer, start=(0,) * 4, limit=(1, 1, S, S), stride=(1,) * 4))
    seen = np.tril(np.ones((1, 1, 12, 12), bool)) & ~np.tril(np.ones((12, 12), bool), -3)
    made = make_incremental(program, states={**states, "seen": seen})
    assert made.attributes["positions_limit"] == 12
    assert {c.window for c in caches_of(made)} == {3}
    ids = np.array([3, 1, 4, 1, 5, 9, 2])
    generator = Generator(LoadedProgram(program, {**states, "seen": seen}), 16, 4, "reference")
    logits = np.concatenate([generator.step(ids[a:b], range(a, b), [0] * (b - a)) for a, b in ((0, 4), (4, 7))])
    np.testing.assert_allclose(logits, whole(program, {**states, "seen": seen}, ids[None])[0], rtol=0, atol=1e-5)
    seen[..., 7, 2] ^= True
    with pytest.raises(IncrementalError, match=r"pairs|cuts a table|tokens"):
        make_incremental(program, states={**states, "seen": seen})


@pytest.mark.parametrize("mask", ["anti-causal", "a little", "a bias that falls"])
def test_other_masks_are_refused(mask):
    program, _ = model(attend_by_hand, mask=MASKS[mask][0], select=mask == "anti-causal")
    with pytest.raises(IncrementalError, match=r"pairs|tokens"):
        make_incremental(program)


def both(real):
    return op("logical_and")(compared("less_equal"), op("cast")(real, "bool"))


PADDED = {
    "a boolean mask of both": (attend_with_mask, both, "bool", {}),
    "a window": (attend_with_mask, lambda real: op("logical_and")(windowed(3), real), "bool", {}),
    "an added mask of both": (attend_by_hand, lambda real: op("where")(both(real), 0.0, -1e9), "int64", {}),
    "one less both, times minus a billion": (
        attend_by_hand, lambda real: prim.mul(prim.sub(1.0, op("cast")(both(real), "float32")), -1e9), "bool", {}
    ),
    "a sum of two": (
        attend_with_mask,
        lambda real: op("add")(op("triu")(square(-INFINITY), 1), prim.mul(prim.sub(1.0, real), -1e9)), "float32", {}
    ),
    "selected": (attend_by_hand, both, "int64", {"select": True}),
}  # fmt: skip


@pytest.mark.parametrize("name", PADDED)
def test_masks_of_keys_that_inputs_make_are_cached_with_them(name):
    """The mask runs along the tokens; in pieces they have the logits that the whole program gives padded texts."""
    attend, build, dtype, rule = PADDED[name]
    program, states = model(attend, dtype, mask=build, **rule)
    made = make_incremental(program)
    assert {c.window for c in caches_of(made)} == {3 if name == "a window" else 0}
    ids, real = np.array([3, 1, 4, 1, 5, 9, 2]), np.array([1, 0, 1, 1, 1, 0, 1]).astype(dtype)
    caches = {cache.name: cache.allocate(2) for cache in caches_of(made)}
    predictor, logits = Predictor(LoadedProgram(made, {**states, **caches}), "reference"), []
    for a, b in ((0, 4), (4, 5), (5, 7)):
        given = {"positions": range(a, b), "starts": [0, b - a], "block_tables": [[1]], "outputs": range(b - a)}
        logits += predictor.run(tokens=ids[a:b], real=real[a:b], **{k: list(v) for k, v in given.items()})
    expected = whole(program, states, ids[None], real[None])[0]
    np.testing.assert_allclose(np.concatenate(logits), expected, rtol=0, atol=1e-5)


def test_masks_of_keys_beside_soft_caps_and_in_bytes_are_refused():
    program, _ = model(attend_by_hand, "bool", mask=both, select=True, softcap=1.5)
    with pytest.raises(IncrementalError, match="a mask of keys beside a soft cap"):
        make_incremental(program)
    program, _ = model(attend_with_mask, "bool", mask=both)
    with pytest.raises(IncrementalError, match="caches of bytes"):
        make_incremental(program, cache_dtype="int8")
