"""Weights rounded to few bits: programs of the same results, up to what the report says, in fewer bytes."""

import gc

import numpy as np
import pytest

from argosy_infer import LoadedProgram, Predictor, load_program, save_program
from argosy_infer.compress import round_to_nearest
from argosy_infer.weights import lay_out_array, lay_out_weights
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir.builder import Builder
from argosy_pir.dims import SymExpr
from argosy_pir.program import Program
from argosy_pir.types import TensorType

SHAPES = {"first": (128, 64), "bias": (64,), "second": (40, 64), "tied": (40, 40), "odd": (40, 3)}


def loaded():
    """x @ first + bias, @ second^T, @ tied @ tied, @ odd."""
    program = Program("layers")
    x = program.add_input(TensorType((SymExpr.symbol("n"), 128), "float32"), "x")
    states = {name: program.add_state(name, TensorType(shape, "float32")).argument for name, shape in SHAPES.items()}
    builder = Builder.at_end(program.block)

    def apply(name, *args, **kwargs):
        operands, attributes = get_operator(name).signature.bind(args, kwargs)
        return builder.create(f"phi.{name}", operands, attributes).result

    with emit_at(builder):
        x = apply("linear", x, states["first"], states["bias"])
        x = apply("matmul", x, states["second"], transpose_y=True)
        x = apply("matmul", apply("matmul", x, states["tied"]), states["tied"])
        program.set_outputs([apply("matmul", x, states["odd"])])
    rng = np.random.default_rng(0)
    return LoadedProgram(program, {n: rng.standard_normal(shape).astype(np.float32) for n, shape in SHAPES.items()})


@pytest.mark.parametrize(("bits", "group_size"), [(8, -1), (8, 64), (4, -1), (4, 64)])
def test_the_rounded_program_is_that_of_the_weights_that_its_bytes_stand_for(bits, group_size, tmp_path):
    """Dequantised weights in the first program give the same; a file of it is smaller and loads."""
    source = loaded()
    made, report = round_to_nearest(source, bits, group_size)
    expected = {"first", "second", "odd"} if bits == 8 else {"first", "second"}
    assert {layer.name for layer in report.layers} == (expected if group_size < 0 else expected - {"odd"})
    assert "2 operations use it" in report.skipped["tied"]
    states = dict(source.states)
    dequantize = get_operator("weight_dequantize")
    for layer in report.layers:
        packed, scales = (made.states[f"{layer.name}.{what}"] for what in ("bytes", "scales"))
        algo = f"weight_only_int{bits}"
        types = [TensorType(a.shape, a.dtype.name) for a in (packed, scales)]
        program = dequantize.expand(types, {"algo": algo, "out_dtype": None, "group_size": group_size}).program
        (whole,) = Predictor(LoadedProgram(program, {}), "reference").run(packed, scales)
        whole = whole.T if layer.name == "second" else whole
        error = np.linalg.norm(whole - states[layer.name]) / np.linalg.norm(states[layer.name])
        assert layer.error == pytest.approx(error, rel=1e-4)
        assert layer.bytes_after < layer.bytes_before * (0.3 if bits == 8 else 0.17)
        states[layer.name] = whole
    x = np.random.default_rng(1).standard_normal((5, 128)).astype(np.float32)
    (want,) = Predictor(LoadedProgram(source.program, states), "reference").run(x)
    save_program(made.program, made.states, tmp_path / "small")
    (got,) = Predictor(load_program(tmp_path / "small"), "reference").run(x)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize(("bits", "group_size"), [(8, -1), (8, 64), (4, -1), (4, 64)])
def test_inputs_in_bytes_are_rounded_by_rows_and_summed_exactly(bits, group_size):
    """Every layer is integer arithmetic on what its inputs round to; a row that is not finite spoils no other."""
    source = loaded()
    made, report = round_to_nearest(source, bits, group_size, input_bits=8)
    x = np.random.default_rng(1).standard_normal((5, 128)).astype(np.float32)
    weights = {layer.name: integers_of(made.states, layer.name, bits) for layer in report.layers}

    def product(x, name, turned=False):
        if name not in weights:
            return x @ (source.states[name].T if turned else source.states[name])
        whole, scales = weights[name]
        steps = np.abs(x).max(1, keepdims=True) / np.float32(127.5)
        rounded = np.clip(np.rint(x / steps), -128, 127).astype(np.int64)
        groups = [np.split(a, len(scales), axis=1) for a in (rounded, whole)]
        return sum((g @ w.T) * s for g, w, s in zip(*groups, scales, strict=True)) * steps

    want = product(product(x, "first") + source.states["bias"], "second", True) @ source.states["tied"]
    want = product(want @ source.states["tied"], "odd")
    predictor = Predictor(made, "reference")
    (got,) = predictor.run(x)
    np.testing.assert_allclose(got, want, rtol=0, atol=0.02 * np.abs(want).max())  # a byte may be its neighbour
    for number in (np.inf, np.nan, 1e30):
        special = x.copy()
        special[2, 7] = number
        (spoiled,) = predictor.run(special)
        np.testing.assert_array_equal(np.delete(spoiled, 2, 0), np.delete(got, 2, 0))
        assert np.isfinite(spoiled[2]).all() == (number == 1e30)
    with pytest.raises(ValueError, match="input_bits None or 8"):
        round_to_nearest(source, bits, group_size, input_bits=4)


def integers_of(states, name, bits):
    """The numbers [out, in] of a weight, and its scales [groups, out]."""
    packed, scales = states[f"{name}.bytes"], states[f"{name}.scales"]
    whole = packed if bits == 8 else np.concatenate([packed << 4 >> 4, packed >> 4])
    return whole.astype(np.int64), scales.astype(np.float64).reshape(-1, len(whole))


@pytest.mark.parametrize("size", [8, 1 << 20])
def test_weights_that_are_laid_out_begin_with_a_cache_line(size):
    """Small ones and large ones, which have pages of their own and keep their memory."""
    weight = np.arange(2 * size, dtype=np.int32).reshape(size, 2).T
    made = lay_out_array(weight)
    assert made.ctypes.data % 64 == 0
    assert made.flags.c_contiguous
    assert made.flags.writeable
    gc.collect()
    np.testing.assert_array_equal(made, weight)


def test_weights_that_a_file_has_in_order_stay_its_pages():
    """What is mapped as [out, in] takes no second copy; the rest is turned."""
    source = loaded()
    pages = np.ascontiguousarray(source.states["first"].T)
    laid = lay_out_weights(LoadedProgram(source.program, {**source.states, "first": pages.T}))
    assert np.shares_memory(laid.states["first"], pages)
    assert laid.states["first"].shape == (64, 128)
    np.testing.assert_array_equal(laid.states["odd"], source.states["odd"].T)
    assert not np.shares_memory(laid.states["odd"], source.states["odd"])


def test_what_does_not_divide_is_named():
    _, report = round_to_nearest(loaded(), 4, 64)
    assert report.skipped["odd"] == "3 outputs do not fill bytes of two"
    assert round_to_nearest(loaded(), 8, 128)[1].skipped["second"] == "64 inputs are no multiple of 128"
    with pytest.raises(ValueError, match="bits 8 or 4"):
        round_to_nearest(loaded(), 3)


def test_weights_that_are_to_be_skipped_stay_as_they_are():
    source = loaded()
    made, report = round_to_nearest(source, skip=["f*st"])
    assert report.skipped["first"] == "it was to be skipped"
    np.testing.assert_array_equal(made.states["first"], source.states["first"])
    with pytest.raises(ValueError, match="'third' is no weight of a product; there are first, second"):
        round_to_nearest(source, skip=["third"])
