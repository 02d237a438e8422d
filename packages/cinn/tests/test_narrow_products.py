"""Products whose operands are narrower in memory than in arithmetic: quantised weights and bytes."""

import ml_dtypes
import numpy as np
import pytest
from programs import build, check, unguarded_report, values

from argosy_cinn import CinnCompiler
from argosy_cinn.runtime import set_threads
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.reference.interpreter import interpret
from argosy_tensorcore.storage import StridedArray

RNG = np.random.default_rng(0)
ROWS = (1, 7, 33)
#: Whether terms of whole lines become integers of 16 bits beside bytes.
WORDS = Target.host().has("avx512vnni") and not Target.host().multiplies_pairs


def linear(dtype, axis):
    """``(x @ w) * scale`` with ``w`` converted to ``dtype``; it is contracted over its given axis."""

    def program(x, w, scale):
        product = prim.dot_general(x, prim.cast(w, dtype=dtype), lhs_contract=(1,), rhs_contract=(axis,))
        return prim.mul(prim.cast(product, dtype="float32"), prim.broadcast_to(scale, product.shape))

    return program


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("stored", ["int8", "uint8", "bfloat16"])
def test_a_weight_is_converted_where_it_is_read(rows, axis, stored):
    """One kernel, no memory for the converted weight, whatever the number of rows and the weight's layout."""
    x, w = values(RNG, (rows, 1100), "float32"), values(RNG, (70, 1100), stored)
    w = w if axis == 1 else np.ascontiguousarray(w.T)
    scale = values(RNG, (70,), "float32", 0.01, 0.1)
    report = unguarded_report(check(linear("float32", axis), x, w, scale, scale=100))
    assert report["kernel_calls"] == 1
    assert report["arena_bytes"] == 0


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("stored", ["bfloat16", "int8"])
def test_bfloat16_activations_times_narrow_weights(rows, axis, stored):
    """Sums are in float32 and rounded once: a result is at most one rounding step of bfloat16 from exact."""
    x, w = values(RNG, (rows, 1100), "bfloat16"), values(RNG, (70, 1100), stored)
    exact = x.astype(np.float64) @ w.astype(np.float64).T
    arguments = [x, w if axis == 1 else np.ascontiguousarray(w.T), np.ones(70, np.float32)]
    executable = CinnCompiler().compile(build(linear("bfloat16", axis), arguments), device("cpu"))
    (got,) = executable.run([StridedArray.from_array(a) for a in arguments])
    step = 2.0 ** (np.floor(np.log2(np.abs(exact))) - 7)
    room = np.abs(x.astype(np.float64)) @ np.abs(w.astype(np.float64)).T * 1e-5
    assert (np.abs(got.array() - exact) <= step + room).all()
    assert executable.report()["kernel_calls"] == 1


@pytest.mark.parametrize("rows", [*ROWS, 200])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_integers_are_summed_exactly_in_int32(rows, dtype):
    info = np.iinfo(np.int8 if dtype == "int16" else dtype)
    x, w = (RNG.integers(info.min, info.max + 1, shape).astype(dtype) for shape in ((rows, 333), (75, 333)))

    def program(x, w):
        return prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(1,), accumulate="int32")

    executable = check(program, x, w)
    assert executable.report()["host_calls"] == {}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_computed_from_a_narrow_weight_is_computed_where_it_is_read(rows, axis, dtype):
    """Two numbers of four bits in a byte: their weights never lie in memory."""
    x, w = values(RNG, (rows, 300), dtype), RNG.integers(-128, 128, (35, 300)).astype(np.int8)
    arguments = [x, w if axis == 1 else np.ascontiguousarray(w.T)]

    def program(x, w):
        halves = (prim.shift_right(prim.shift_left(w, 4), 4), prim.shift_right(w, 4))
        return [prim.dot_general(x, prim.cast(h, dtype=dtype), lhs_contract=(1,), rhs_contract=(axis,)) for h in halves]

    executable = CinnCompiler().compile(build(program, arguments), device("cpu"))
    got = [out.array().astype(np.float64) for out in executable.run([StridedArray.from_array(a) for a in arguments])]
    low = ((w.astype(np.int32) & 15) ^ 8) - 8
    for result, half in zip(got, (low, w.astype(np.int32) >> 4), strict=True):
        exact = x.astype(np.float64) @ half.T
        np.testing.assert_allclose(result, exact, rtol=2e-2 if dtype == "bfloat16" else 1e-4, atol=1e-2)
    assert unguarded_report(executable)["arena_bytes"] == 0


def halves(x, w):
    """Products with the two numbers of four bits in each byte of ``w``."""
    parts = (prim.shift_right(prim.shift_left(w, 4), 4), prim.shift_right(w, 4))
    return [prim.dot_general(x, prim.cast(h, dtype="float32"), lhs_contract=(1,), rhs_contract=(1,)) for h in parts]


@pytest.mark.parametrize("size", [16, 300, 4500])
@pytest.mark.parametrize("rows", [1, 2, 3, 8])
def test_both_numbers_of_a_byte_come_from_one_read(rows, size):
    """One kernel makes both products, each with an epilogue of its own; without that, the same bits."""
    x, w = values(RNG, (rows, size), "float32"), RNG.integers(-128, 128, (75, size)).astype(np.int8)

    def program(x, w):
        low, high = halves(x, w)
        return [prim.mul(low, 0.5), prim.exp(prim.mul(high, 1e-4))]

    executable = check(program, x, w, scale=500)
    assert executable.report()["kernel_calls"] == 1
    apart = CinnCompiler().compile(build(program, [x, w]), device("cpu"), options={"without": ["siblings"]})
    assert apart.report()["kernel_calls"] == 2
    operands = [StridedArray.from_array(a) for a in (x, w)]
    together, alone = ([out.array().tobytes() for out in e.run(operands)] for e in (executable, apart))
    assert together == alone


def test_products_that_wait_for_each_other_are_made_in_turn():
    """What reads the other's results, in its epilogue or as an operand, is a kernel of its own."""
    x, w = values(RNG, (1, 64), "float32"), RNG.integers(-128, 128, (64, 64)).astype(np.int8)

    def epilogue(x, w):
        low, high = halves(x, w)
        return [low, prim.add(high, prim.reverse(low, axes=(1,)))]

    def operand(x, w):
        low, _ = halves(x, w)
        return [low, halves(prim.mul(low, 1e-3), w)[1]]

    for program in (epilogue, operand):
        assert check(program, x, w, scale=500).report()["kernel_calls"] >= 2


def test_products_with_other_activations_are_not_joined():
    """Equal weights alone do not make siblings."""
    x, y = (values(RNG, (1, 64), "float32") for _ in range(2))
    w = RNG.integers(-128, 128, (64, 64)).astype(np.int8)
    executable = check(lambda x, y, w: [halves(x, w)[0], halves(y, w)[1]], x, y, w, scale=500)
    assert executable.report()["kernel_calls"] == 2


def test_kernels_of_equal_shape_and_different_arithmetic_are_not_shared():
    """The same bytes as float32 and, rounded on the way, as bfloat16: two products of one program."""
    x, w = values(RNG, (2, 64), "float32"), values(RNG, (16, 64), "int8")

    def program(x, w):
        def product(x, dtype):
            return prim.dot_general(x, prim.cast(w, dtype=dtype), lhs_contract=(1,), rhs_contract=(1,))

        return [product(x, "float32"), product(prim.cast(x, dtype="bfloat16"), "bfloat16")]

    arguments = [x, w]
    exact, rounded = interpret(build(program, arguments), arguments, [])[0]
    executable = CinnCompiler().compile(build(program, arguments), device("cpu"))
    got = [out.array() for out in executable.run([StridedArray.from_array(a) for a in arguments])]
    np.testing.assert_allclose(got[0], exact, rtol=1e-5, atol=1e-3)
    assert got[1].dtype == np.dtype(ml_dtypes.bfloat16)
    np.testing.assert_allclose(got[1].astype(np.float32), rounded.astype(np.float32), rtol=2e-2, atol=4)


@pytest.mark.parametrize("after", ["nothing", "a sum"])
def test_results_are_rounded_to_nearest_even_whatever_rounds_them(after):
    """Ties, infinities and NaN come out of a product as bfloat16 has them, stored at once or used again."""
    rows = np.array([[1.0, 2.0**-8], [1.0, 3 * 2.0**-8], [np.inf, 1.0], [np.nan, 1.0], [3e38, 3e38], [0.0, -0.0]])
    x = np.tile(rows, (8, 1)).astype(ml_dtypes.bfloat16)
    w = np.ones((2, 40), ml_dtypes.bfloat16)

    def program(x, w):
        y = prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))
        return [y] if after == "nothing" else [y, prim.neg(y)]

    executable = CinnCompiler().compile(build(program, [x, w]), device("cpu"))
    got = [result.array().astype(np.float32) for result in executable.run([StridedArray.from_array(a) for a in (x, w)])]
    with np.errstate(over="ignore"):
        want = x.astype(np.float32).sum(1).astype(ml_dtypes.bfloat16).astype(np.float32)
    for result, sign in zip(got, (1, -1), strict=False):
        np.testing.assert_array_equal(result, np.tile(sign * want[:, None], 40))


def unpacked(x, w, accumulate="float32"):
    """Four-bit numbers where they lie in an int32, as `weight_only_linear` reads them."""
    wide = prim.cast(w, dtype="int32")
    parts = [prim.shift_left(wide, 28), prim.bitwise_and(wide, -16)]
    return [skinny(x, prim.cast(part, dtype=x.dtype), accumulate) for part in parts]


def skinny(x, w, accumulate="float32"):
    return prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(1,), accumulate=accumulate)


def parts_of(w, stored):
    """The weights of each product, in float64."""
    bits = w.astype(np.int32)
    return [part.astype(np.float64) for part in ([(bits << 28), bits & -16] if stored == "int4" else [w])]


def exact_products(x, w, stored):
    """What the products should be, in float64, and the sums of absolute terms."""
    pairs = [(x.astype(np.float64), part.T) for part in parts_of(w, stored)]
    return [a @ b for a, b in pairs], [np.abs(a) @ (np.abs(b) + 14) for a, b in pairs]


@pytest.mark.parametrize("size", [64, 70, 576])
@pytest.mark.parametrize("stored", ["bfloat16", "int8", "uint8"])
def test_every_bfloat16_of_an_input_is_multiplied(size, stored):
    """Whatever it becomes: equal terms times ones are exact, infinities and NaN stay. Denormal sums may be zero."""
    every = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    x, w = np.repeat(every[:, None], size, 1), np.ones((16, size), getattr(ml_dtypes, stored, stored))

    def program(x, w):
        return prim.dot_general(
            x, prim.cast(w, dtype="bfloat16"), lhs_contract=(1,), rhs_contract=(1,), accumulate="float32"
        )

    executable = CinnCompiler().compile(build(program, [x, w]), device("cpu"), options={"batch_invariant": True})
    got = executable.run([StridedArray.from_array(x), StridedArray.from_array(w)])[0].array()
    with np.errstate(all="ignore"):
        want = (every.astype(np.float64) * size).astype(np.float32)[:, None]
        close = np.isclose(got, want, rtol=1e-6, atol=0, equal_nan=True)
    assert (close | ((np.abs(want) < np.finfo(np.float32).tiny * size) & (got == 0))).all()


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("stored", ["bfloat16", "int8", "uint8", "int4"])
@pytest.mark.parametrize("rows", [1, 2, 5, 8])
@pytest.mark.parametrize("size", [16, 31, 64, 97, 513, 576, 6200])
def test_pairs_of_bfloat16_give_sums_in_float32(rows, size, stored):
    """Every length, complete lines or not: the error is that of float32 sums, and of integers of 16 bits that terms of
    whole lines become beside bytes where these are multiplied faster; threads change no bit."""
    x = values(RNG, (rows, size), "bfloat16")
    w = RNG.integers(0, 256, (67, size)).astype(np.uint8)
    w = (
        values(RNG, (67, size), "bfloat16")
        if stored == "bfloat16"
        else w.view(np.uint8 if stored == "uint8" else np.int8)
    )

    def program(x, w):
        return unpacked(x, w) if stored == "int4" else [skinny(x, prim.cast(w, dtype="bfloat16"))]

    executable = CinnCompiler().compile(build(program, [x, w]), device("cpu"))
    operands = [StridedArray.from_array(a) for a in (x, w)]
    got = [out.array() for out in executable.run(operands)]
    words = WORDS and stored != "bfloat16" and size % 64 == 0
    largest = np.abs(x.astype(np.float64)).max(1, keepdims=True) * words * 2.0**-15
    for result, exact, room, part in zip(got, *exact_products(x, w, stored), parts_of(w, stored), strict=True):
        rounded = largest * np.linalg.norm(part, axis=1)
        assert (np.abs(result - exact) <= room * 2.0**-24 * (size**0.5 + 4) + rounded).all()
    bits = set()
    for count in (1, 3):
        set_threads(count)
        bits.add(tuple(out.array().tobytes() for out in executable.run(operands)))
    assert len(bits) == 1


@pytest.mark.parametrize("stored", ["bfloat16", "int8"])
@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 3e38, 2.0**119])
def test_large_and_infinite_activations_times_bytes(special, stored):
    """An infinite number times a weight of any sign is infinite, and a sum that fits is not: bytes are taken apart only
    where their parts cannot overflow."""
    x = np.zeros((1, 200), ml_dtypes.bfloat16)
    x[0, 77] = special
    w = np.arange(-100, 100).repeat(200).reshape(200, 200).astype(np.int8)
    w = w.astype(ml_dtypes.bfloat16) if stored == "bfloat16" else w
    with np.errstate(all="ignore"):
        exact = (x.astype(np.float32)[:, 77:78] * w.astype(np.float32)[:, 77]).astype(np.float32)
    program = build(lambda x, w: skinny(x, prim.cast(w, dtype="bfloat16")), [x, w])
    (got,) = CinnCompiler().compile(program, device("cpu")).run([StridedArray.from_array(a) for a in (x, w)])
    np.testing.assert_array_equal(got.array(), exact)


@pytest.mark.parametrize("stored", ["int8", "uint8"])
@pytest.mark.parametrize("special", [np.inf, np.nan, 2.0**119])
def test_bits_of_a_row_do_not_depend_on_one_whose_parts_overflow(special, stored):
    """Which is computed in floats, itself alone."""
    x, w = values(RNG, (8, 513), "bfloat16"), values(RNG, (67, 513), stored)
    executable = CinnCompiler().compile(
        build(lambda x, w: skinny(x, prim.cast(w, dtype="bfloat16")), [x, w]), device("cpu")
    )

    def products(rows):
        return executable.run([StridedArray.from_array(a) for a in (rows, w)])[0].array()

    beside = x.copy()
    beside[2, 77] = special
    with np.errstate(all="ignore"):
        exact = beside[2].astype(np.float64) @ w.astype(np.float64).T
    got, want = products(beside), products(x)
    np.testing.assert_array_equal(np.delete(got, 2, 0), np.delete(want, 2, 0))
    np.testing.assert_allclose(got[2], exact, rtol=1e-6)


def test_activations_in_float32_are_not_rounded_for_narrow_weights():
    """Pairs of bfloat16 are for operands that are exact in it."""
    x, w = values(RNG, (1, 300), "float32"), values(RNG, (64, 300), "int8")
    executable = CinnCompiler().compile(
        build(lambda x, w: skinny(x, prim.cast(w, dtype="float32")), [x, w]), device("cpu")
    )
    (got,) = executable.run([StridedArray.from_array(a) for a in (x, w)])
    wide = x.astype(np.float64), w.astype(np.float64).T
    assert (np.abs(got.array() - wide[0] @ wide[1]) <= np.abs(wide[0]) @ np.abs(wide[1]) * 2.0**-21).all()
