"""Views, joins, indexing and reductions give what their reference kernels give, fused or not."""

import numpy as np
import pytest
from programs import ON_HOST, check, on_host, unguarded_report, values

from argosy_cinn import explain
from argosy_phi_ops import prim

RNG = np.random.default_rng(0)


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16"])
def test_views_of_every_kind(dtype):
    x = values(RNG, (4, 6, 10), dtype)

    def program(x):
        return [
            prim.transpose(x, permutation=(2, 0, 1)),
            prim.reshape(x, shape=(8, 30)),
            prim.reshape(prim.transpose(x, permutation=(1, 0, 2)), shape=(24, 10)),
            prim.reshape(prim.transpose(x, permutation=(0, 2, 1)), shape=(40, 6)),
            prim.slice(x, start=(1, 0, 2), limit=(4, 6, 9), stride=(2, 1, 3)),
            prim.reverse(x, axes=(0, 2)),
            prim.broadcast(
                prim.slice(x, start=(0, 0, 0), limit=(4, 1, 10), stride=(1, 1, 1)), shape=(4, 5, 10), axes=(0, 1, 2)
            ),
            prim.broadcast(prim.reshape(x, shape=(240,)), shape=(2, 240, 3), axes=(1,)),
            prim.concat(x, prim.reverse(x, axes=(1,)), x, axis=1),
            prim.concat(x, x, axis=2),
        ]

    check(program, x)


@pytest.mark.parametrize(
    ("low", "high", "interior"),
    [((1, 2), (0, 3), (0, 0)), ((0, 0), (2, 0), (2, 1)), ((-1, 3), (-2, -4), (0, 0)), ((-2, -1), (5, 1), (1, 2))],
)
def test_pads_with_crops_and_gaps(low, high, interior):
    def program(x):
        y = prim.pad(x, prim.constant(1.5, "float32"), low=low, high=high, interior=interior)
        return [y, prim.mul(prim.exp(y), 2.0)]

    check(program, f32(5, 7))


def test_iota_of_all_axes_and_dtypes():
    check(
        lambda: [
            prim.iota(shape=(3, 20), axis=a, dtype=d) for a in (0, 1) for d in ("int64", "int32", "float32", "uint8")
        ]
    )


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(3, 5, 33), (7, 1, 16), (2, 64, 65)])
def test_sums_and_maxima_over_any_axes(shape, axes):
    x = f32(*shape)
    check(lambda x: [prim.reduce_sum(x, axes=axes), prim.reduce_max(prim.mul(x, x), axes=axes),
                     prim.reduce_min(x, axes=axes), prim.reduce_prod(x, axes=axes)], x, scale=8)  # fmt: skip


def test_statistics_of_channels_are_native():
    def program(x):
        mean = prim.reduce_sum(x, axes=(0, 2, 3))
        return [prim.sub(x, prim.broadcast(mean, shape=x.shape, axes=(1,))), prim.reduce_max(x, axes=(1, 3))]

    assert not check(program, f32(4, 3, 5, 17), scale=8).report()["host_calls"]


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int32", "uint8", "int64"])
def test_reductions_of_every_dtype(dtype):
    x = values(RNG, (9, 40), dtype)
    check(
        lambda x: [f(x, axes=a) for f in (prim.reduce_sum, prim.reduce_max, prim.reduce_min) for a in ((0,), (1,))], x
    )


def test_boolean_reductions():
    x = RNG.random((6, 50)) < 0.97
    check(
        lambda x: [
            f(x, axes=a) for f in (prim.reduce_and, prim.reduce_or, prim.reduce_max) for a in ((0,), (1,), (0, 1))
        ],
        x,
    )


def test_extremes_spread_nan_and_infinities():
    x = f32(6, 40)
    x[1, 3], x[2, 39], x[4] = np.nan, np.inf, -np.inf
    check(lambda x: [f(x, axes=a) for f in (prim.reduce_max, prim.reduce_min) for a in ((0,), (1,))], x)


def test_reductions_over_nothing_are_identities():
    x = np.zeros((4, 0), np.float32)
    check(lambda x: [prim.reduce_sum(x, axes=(1,)), prim.reduce_max(x, axes=(1,)), prim.reduce_prod(x, axes=(0, 1)),
                     prim.add(x, 1.0),
                     prim.pad(x, prim.constant(2.0, "float32"), low=(0, 1), high=(0, 2), interior=(0, 0)),
                     prim.dot_general(x, x, lhs_contract=(1,), rhs_contract=(1,))], x)  # fmt: skip


def test_gathers_clamp_and_scatters_drop():
    x, i = f32(7, 5), np.array([[0], [6], [-3], [9], [2]], np.int64)

    def program(x, i):
        rows = prim.gather(x, i, axes=(0,), batch=0)
        columns = prim.gather(x, i, axes=(1,), batch=0)
        return [rows, prim.tanh(rows), columns, prim.scatter(x, i, rows, axes=(0,), batch=0, kind="add")]

    check(program, x, i)
    check(lambda x, i: prim.gather(x, i, axes=(1, 0), batch=0), x, np.array([[4, 6], [0, 0], [9, -9]], np.int32))
    labels = np.array([[1], [0], [4], [3], [2], [7], [-1]], np.int64)
    picked = lambda x, i: prim.gather(x, i, axes=(1,), batch=1)  # noqa: E731
    check(lambda x, i: [picked(x, i), prim.scatter(x, i, picked(x, i), axes=(1,), batch=1, kind="add"),
                        prim.scatter(x, i, picked(x, i), axes=(1,), batch=1, kind="set")], x, labels)  # fmt: skip


def test_dynamic_slices_stay_inside():
    x, u = f32(6, 9), f32(2, 4)
    for a, b in ((1, 2), (5, -4), (-1, 100)):
        starts = np.array(a, np.int64), np.array(b, np.int64)
        check(lambda x, u, a, b: [prim.dynamic_slice(x, a, b, sizes=(3, 4)), prim.dynamic_update_slice(x, u, a, b)],
              x, u, *starts)  # fmt: skip


def test_host_calls_split_the_program_and_are_counted():
    def program(x):
        y = prim.mul(x, 2.0)
        s = on_host(y, 1)
        return [prim.add(s, 1.0), prim.cumulative(prim.exp(y), axis=0, kind="sum"), prim.argmax(y, axis=1)]

    report = check(program, f32(5, 30)).report()
    assert report["host_calls"] == {ON_HOST: 1}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32"])
def test_products_of_all_layouts(dtype):
    a, b = values(RNG, (3, 17, 20), dtype), values(RNG, (3, 20, 9), dtype)

    def program(a, b):
        swapped = prim.transpose(b, permutation=(0, 2, 1))
        merged = prim.reshape(a, shape=(51, 20))
        first = prim.reshape(prim.slice(b, start=(1, 0, 0), limit=(2, 20, 9), stride=(1, 1, 1)), shape=(20, 9))
        return [
            prim.dot_general(a, b, lhs_contract=(2,), rhs_contract=(1,), lhs_batch=(0,), rhs_batch=(0,)),
            prim.dot_general(a, swapped, lhs_contract=(2,), rhs_contract=(2,), lhs_batch=(0,), rhs_batch=(0,)),
            prim.dot_general(merged, first, lhs_contract=(1,), rhs_contract=(0,)),
            prim.dot_general(a, first, lhs_contract=(2,), rhs_contract=(0,)),
            prim.dot_general(a, a, lhs_contract=(0, 1), rhs_contract=(0, 1)),
            prim.dot_general(prim.transpose(a, permutation=(1, 0, 2)), first, lhs_contract=(2,), rhs_contract=(0,)),
        ]

    check(program, a, b, scale=20)


def test_products_with_constants_are_sums():
    def program(a, b):
        ones = prim.constant(2.0, "float32", (3, 5, 20))
        row = prim.constant(1.0, "float32", (20,))
        batch = {"lhs_batch": (0,), "rhs_batch": (0,)}
        return [
            prim.dot_general(a, ones, lhs_contract=(2,), rhs_contract=(2,), **batch),
            prim.dot_general(ones, a, lhs_contract=(2,), rhs_contract=(2,), **batch),
            prim.dot_general(row, a, lhs_contract=(0,), rhs_contract=(2,)),
            prim.dot_general(
                a, prim.cast(prim.constant(1, "int64", (20, 4)), dtype="float32"), lhs_contract=(2,), rhs_contract=(0,)
            ),
            prim.dot_general(b, prim.constant(3, "int32", (20, 2)), lhs_contract=(1,), rhs_contract=(0,)),
        ]

    check(program, f32(3, 17, 20), values(RNG, (6, 20), "int32"), scale=20)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("strides", "padding", "spread", "dilation"),
    [((1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)), ((2, 1), ((1, 2), (0, 1)), (1, 1), (1, 2)),
     ((1, 1), ((2, 2), (3, 1)), (2, 3), (1, 1)), ((1, 2), ((-1, 1), (0, 0)), (1, 2), (2, 1))],
)  # fmt: skip
def test_convolutions_are_products_of_patches(groups, strides, padding, spread, dilation):
    x, w = f32(2, 4, 9, 8), f32(6, 4 // groups, 3, 2)
    attributes = {"strides": strides, "padding": padding, "lhs_dilation": spread, "rhs_dilation": dilation}
    report = check(lambda x, w: prim.tanh(prim.conv(x, w, groups=groups, **attributes)), x, w, scale=20).report()
    assert not report["host_calls"]


def test_a_convolution_of_one_pixel_reads_its_input_in_place():
    plain = {"strides": (1, 1), "padding": ((0, 0), (0, 0)), "lhs_dilation": (1, 1), "rhs_dilation": (1, 1)}
    report = check(lambda x, w: prim.conv(x, w, groups=1, **plain), f32(3, 8, 5, 7), f32(6, 8, 1, 1), scale=20).report()
    assert report["kernel_calls"] == 1


@pytest.mark.parametrize("low", [(0, 0), (3, 2), (13, 4)])
def test_a_block_assigned_to_a_state_is_written_in_place(low):
    """Padding a mask and a block and selecting: only the block is computed, and the rest is not touched."""
    rng = np.random.default_rng(0)
    state, block = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 8), (3, 4)))
    edges = {"low": low, "high": (13 - low[0], 4 - low[1]), "interior": (0, 0)}

    def program(block, state):
        mask = prim.pad(prim.constant(True, "bool", (3, 4)), prim.constant(False, "bool", ()), **edges)
        padded = prim.pad(prim.mul(block, 2.0), prim.constant(0.0, "float32", ()), **edges)
        new = prim.select(mask, padded, state)
        return [prim.reduce_sum(new, axes=(1,))], [new]

    executable = check(program, block, states=[state], scale=4)
    assert unguarded_report(executable)["arena_bytes"] == 0
    assert "3 rows of 4" in explain(executable)


def test_a_bias_before_heads_are_split_is_the_products_epilogue():
    """What views of a sum are contracted is kept as the sum, which the product before it makes."""

    def program(x, w, bias):
        made = prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))
        total = prim.reshape(prim.add(made, prim.broadcast(bias, shape=(24, 96), axes=(1,))), shape=(2, 12, 3, 32))
        q, k, v = (prim.reshape(prim.slice(total, start=(0, 0, i, 0), limit=(2, 12, i + 1, 32), stride=(1,) * 4),
                                shape=(2, 12, 32)) for i in range(3))  # fmt: skip
        scores = prim.dot_general(q, k, lhs_contract=(2,), rhs_contract=(2,), lhs_batch=(0,), rhs_batch=(0,))
        return prim.dot_general(scores, v, lhs_contract=(2,), rhs_contract=(1,), lhs_batch=(0,), rhs_batch=(0,))

    executable = check(program, f32(24, 40), f32(40, 96), f32(96), scale=1000)
    assert executable.report()["kernel_calls"] <= 3
    assert "epilogue of 0" not in executable.manifest.calls[0].text


def test_a_weight_that_every_sample_reads_is_copied_once():
    def program(x, w):
        turned = prim.reverse(w, axes=(0,))
        wide = prim.broadcast(turned, shape=(16, 32, 40), axes=(1, 2))
        return prim.dot_general(wide, x, lhs_contract=(2,), rhs_contract=(1,), lhs_batch=(0,), rhs_batch=(0,))

    executable = check(program, f32(16, 40, 24), f32(32, 40), scale=100)
    assert unguarded_report(executable)["arena_bytes"] <= 32 * 40 * 4 + 64


def test_a_part_of_a_concatenation_reads_nothing_before_it():
    """Rows of the later part are numbered from its own beginning: those of the part before it have no place there."""

    def program(x, y, scale):
        scaled = prim.mul(y, prim.broadcast(scale, shape=y.shape, axes=(0,)))
        return prim.concat(prim.reshape(x, shape=(128,)), prim.reshape(scaled, shape=(256,)), axis=0)

    check(program, *(np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in ((2, 64), (4, 64), (4,))))


def test_a_middle_axis_is_summed_where_the_axes_after_it_stay_apart():
    """Products of members of stacks, taken at constant places: sums of them over the second axis."""
    pairs = [(i, j) for i in range(13) for j in range(i, 13)]
    places = [[pairs.index((min(i, j), max(i, j)))] for i in range(13) for j in range(13)]
    first, second, partners, places = (
        np.asarray(n, np.int64)
        for n in ([[i] for i, _ in pairs], [[j] for _, j in pairs], [[i] for i in range(13)] * 13, places)
    )

    def sums(x, first, second, partners, places):
        squares = prim.mul(prim.gather(x, first, axes=(0,)), prim.gather(x, second, axes=(0,)))
        products = prim.mul(prim.gather(x, partners, axes=(0,)), prim.gather(squares, places, axes=(0,)))
        return prim.reduce_sum(prim.reshape(products, shape=(13, 13, 3, 16)), axes=(1,))

    check(sums, RNG.standard_normal((13, 3, 16)), first, second, partners, places, scale=100)
