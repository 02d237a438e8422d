"""Complex numbers have native code: functions, moves, sums, products, loops; only transforms run on the host."""

import numpy as np
import pytest
from programs import build, check

from argosy_cinn import CinnCompiler
from argosy_cinn.complex_lowering.functions import BINARY, UNARY
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Block, Builder, Operation, Program, Region, TensorType
from argosy_tensorcore.storage import StridedArray

RNG = np.random.default_rng(3)
COMPLEX = ("complex64", "complex128")


def numbers(*shape, dtype="complex64"):
    return (RNG.uniform(-1.5, 1.5, shape) + 1j * RNG.uniform(-1.5, 1.5, shape)).astype(dtype)


def native(function, *arguments, scale=50.0, **keywords):
    """Compiled and compared, with no host call."""
    report = check(function, *arguments, scale=scale, **keywords).report()
    assert report["host_calls"] == {}
    return report


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("shape", [(), (1,), (3, 64), (5, 37), (0, 4)])
def test_functions_of_one_and_two_numbers(dtype, shape):
    x, y = numbers(*shape, dtype=dtype), numbers(*shape, dtype=dtype)
    native(lambda x: [getattr(prim, name)(x) for name in UNARY], x, scale=10)
    native(lambda x, y: [getattr(prim, name)(x, y) for name in BINARY], x, y)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_special_values_of_arithmetic(dtype):
    special = [0, -0.0, 1, -1, 1j, -1j, 3e5, complex(0, -3e5), complex(np.inf, 1), complex(-2, np.nan)]
    x = np.array([a for a in special for _ in special], dtype)
    y = np.array([b for _ in special for b in special], dtype)
    finite = np.isfinite(x) & np.isfinite(y)
    native(lambda x, y: [prim.add(x, y), prim.sub(x, y), prim.eq(x, y), prim.ne(x, y)], x, y, scale=1)
    native(lambda x: [prim.abs(x), prim.is_nan(x), prim.is_inf(x), prim.is_finite(x), prim.sign(x)], x[finite], scale=1)
    native(lambda x, y: prim.div(x, y), x[finite], y[finite], scale=10)
    native(lambda x: [prim.sqrt(x), prim.abs(x)], x[finite], scale=10)


def test_branch_cuts_follow_the_sign_of_zero():
    x = np.array([complex(-2, 0.0), complex(-2, -0.0), complex(-0.5, -0.0)], "complex128")
    native(lambda x: [prim.sqrt(x), prim.log(x)], x, scale=1)
    native(lambda x: [prim.asinh(x), prim.acos(x), prim.atanh(prim.div(x, prim.constant(4, x.dtype, x.shape)))], x)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_conversions(dtype):
    z, x = numbers(4, 9, dtype=dtype), RNG.uniform(-2, 2, (4, 9))
    native(lambda z: [prim.cast(z, dtype=d) for d in ("complex64", "complex128", "float64", "int32", "bool")], z)
    native(lambda x: [prim.cast(x, dtype=dtype), prim.complex(x, prim.neg(x))], x)
    native(lambda z: [prim.iota(shape=(3, 4), axis=1, dtype=dtype), prim.real(z), prim.imag(z)], z)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 17), (6, 32), (64, 5)])
def test_moves(dtype, rows, columns):
    def program(x, y, i):
        fill = prim.constant(2 - 1j, dtype)
        half = prim.slice(x, start=(0, 0), limit=(rows, (columns + 1) // 2), stride=(1, 1))
        first = prim.constant(0, "int64")
        return [
            prim.transpose(x, permutation=(1, 0)), prim.reverse(x, axes=(1,)), prim.concat(x, y, axis=0), half,
            prim.pad(x, fill, low=(1, 0), high=(0, 2), interior=(0, 1)), prim.gather(x, i, axes=(0,)),
            prim.scatter(x, i, y, axes=(0,), kind="add"), prim.scatter(x, i, y, axes=(0,), kind="set"),
            prim.dynamic_update_slice(x, half, first, first), x, prim.reshape(x, shape=(rows * columns,)),
            prim.broadcast(y, shape=(2, rows, columns), axes=(1, 2)),
            prim.select(prim.lt(prim.real(x), prim.imag(y)), x, y),
        ]  # fmt: skip

    indices = RNG.permutation(rows).astype(np.int64)[:, None]
    native(program, numbers(rows, columns, dtype=dtype), numbers(rows, columns, dtype=dtype), indices)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_sums_products_and_running_ones(dtype):
    def program(x):
        totals = [getattr(prim, f"reduce_{kind}")(x, axes=a) for kind in ("sum", "prod") for a in ((0,), (1,), (0, 1))]
        kinds = [("sum", False), ("sum", True), ("prod", False), ("prod", True)]
        return totals + [prim.cumulative(x, axis=1, kind=k, reverse=r) for k, r in kinds]

    native(program, numbers(5, 7, dtype=dtype))


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (7, 33, 19), (64, 70, 48), (2, 0, 3)])
def test_matrix_products_of_complex_numbers(dtype, m, k, n):
    def program(x, w):
        y = prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))
        turned = prim.transpose(prim.conj(w), permutation=(1, 0))
        return [y, prim.dot_general(y, turned, lhs_contract=(1,), rhs_contract=(0,))]

    native(program, numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype), scale=500)


def test_a_convolution_of_complex_numbers():
    def program(x, w):
        return prim.conv(x, w, strides=(1, 2), padding=((1, 1), (0, 0)), lhs_dilation=(1, 1), rhs_dilation=(1, 1))

    native(program, numbers(2, 3, 8, 9), numbers(4, 3, 3, 3), scale=100)


@pytest.mark.usefixtures("unguarded")
def test_states_of_complex_numbers_are_updated_in_place():
    def program(x, s):
        turned = prim.mul(s, prim.constant(1j, s.dtype, s.shape))
        return [prim.reduce_sum(prim.mul(x, s), axes=(0, 1))], [prim.add(turned, x)]

    report = native(program, numbers(7, 33), states=[numbers(7, 33)])
    assert report["arena_bytes"] <= 64


@pytest.mark.parametrize("length", [16, 17, 67])
def test_transforms_of_any_length_are_native(length):
    def program(x, y):
        spectrum = prim.mul(prim.fft(prim.conj(x), axes=(1,)), y)
        return prim.real(prim.fft(prim.transpose(spectrum, permutation=(1, 0)), axes=(0,), inverse=True))

    made = check(program, numbers(4, length), numbers(4, length), scale=50)
    assert made.report()["host_calls"] == {}


def test_loops_carry_complex_numbers():
    program = Program("loop")
    x = program.add_input(TensorType((3, 21), "complex64"))
    builder = Builder.at_end(program.block)
    with emit_at(builder):
        bounds = [prim.constant(v, "int64") for v in (0, 4, 1)]
        block = Block([bounds[0].type, x.type])
        with emit_at(Builder.at_end(block)):
            i, z = block.arguments
            scale = prim.broadcast_to(prim.cast(i, dtype="complex64"), (3, 21))
            block.append(Operation("control.yield", [prim.add(prim.mul(z, x), scale)]))
        body = Region()
        body.append(block)
        loop = builder.create("control.for", [*bounds, prim.conj(x)], {}, [x.type], [body])
        program.set_outputs([loop.results[0]])
    array = numbers(3, 21)
    (want,), _ = interpret(program, [array])
    executable = CinnCompiler().compile(program, device("cpu"))
    np.testing.assert_allclose(executable.run([StridedArray.from_array(array)])[0].array(), want, rtol=1e-3, atol=1e-4)
    assert executable.report()["host_calls"] == {}


@pytest.mark.parametrize("turn", [lambda a: a.T, lambda a: a[::2, ::-1], lambda a: np.broadcast_to(a[:1], a.shape)])
def test_arguments_with_any_strides(turn):
    array = turn(numbers(12, 34))
    made = build(lambda x: prim.mul(x, x), [array])
    got = CinnCompiler().compile(made, device("cpu")).run([StridedArray.from_array(array)])[0].array()
    np.testing.assert_allclose(got, array * array, rtol=1e-5, atol=1e-5)
