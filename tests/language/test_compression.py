"""Weights in few bits by calibration: what a trained model loses, what its export weighs, and that it serves."""

import sys

import numpy as np
import pytest

import argosy as paddle
from argosy.jit.export import export_program
from argosy.models import GPT, GPTConfig
from argosy.static import InputSpec
from argosy_infer import Generator, LoadedProgram, Predictor, compress, load_program, save_program
from argosy_infer.compress import awq, gptq, mixed_precision, round_to_float8, round_to_nearest, smooth_quant
from argosy_infer.compress.calibration import observe_inputs
from argosy_infer.errors import InputError
from argosy_infer.weights import find_weight_products, lay_out_weights

LENGTH, STEPS = 48, 160


def text(seed, size):
    """Sentences of a small grammar: letters that a model of this size learns to foresee."""
    rng = np.random.default_rng(seed)
    names = ["ada", "grace", "emmy", "sofia", "lise", "marie", "rosalind", "hedy", "mary", "barbara"]
    verbs = ["found", "proved", "built", "wrote", "measured", "computed", "sailed with", "drew"]
    things = [
        "a ring",
        "the engine",
        "seven stars",
        "an old map",
        "the argosy",
        "a fast ship",
        "two theorems",
        "a lens",
    ]
    made = ""
    while len(made) < size:
        count = int(rng.integers(2, 40))
        made += f"{rng.choice(names)} {rng.choice(verbs)} {rng.choice(things)} {count} times, {count + 1} more. "
    return np.frombuffer(made[:size].encode(), np.uint8).astype(np.int64)


def windows(tokens):
    return tokens[: len(tokens) // LENGTH * LENGTH].reshape(-1, LENGTH)


def train(model, rate, steps):
    """The last loss of so many steps on the text, with a vocabulary of 128."""
    optimizer = paddle.optimizer.AdamW(rate, parameters=model.parameters())

    @paddle.jit.to_static(full_graph=True)
    def step(ids):
        logits = model(ids[:, :-1])
        loss = paddle.nn.functional.cross_entropy(logits.reshape([-1, 128]), ids[:, 1:].reshape([-1]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    data, rng = windows(text(0, 60_000)), np.random.default_rng(1)
    for _ in range(steps):
        loss = step(paddle.to_tensor(data[rng.integers(0, len(data), 16)]))
    return float(loss)


@pytest.fixture(scope="module")
def trained():
    """The export of a small GPT after some hundred steps."""
    paddle.seed(0)
    model = GPT(GPTConfig(vocabulary=128, positions=LENGTH, width=128, layers=2, heads=4))
    assert train(model, 2e-3, STEPS) < 1.2
    model.eval()
    return export_program(model, [InputSpec([None, None], "int64", "ids")])


def perplexity(loaded):
    return compress.perplexity(loaded, windows(text(2, 12_000)))


def calibration(size=9_600):
    return [[windows(text(3, size))]]


def layers():
    """The export of two linear layers and what lies between."""
    paddle.seed(0)
    model = paddle.nn.Sequential(paddle.nn.Linear(128, 64), paddle.nn.GELU(), paddle.nn.Linear(64, 40))
    return export_program(model, [InputSpec([None, 128], "float32", "x")])


@pytest.mark.parametrize("method", [awq, mixed_precision])
def test_any_pass_rounds_inputs_to_bytes(method):
    """Weights are those of the same pass with inputs as they are, and results are close to its."""
    source, data = layers(), [[np.random.default_rng(1).standard_normal((64, 128)).astype(np.float32)]]
    (floats, _), (in_bytes, _) = (method(source, data, group_size=64, input_bits=bits) for bits in (None, 8))
    for name, array in floats.states.items():
        np.testing.assert_array_equal(in_bytes.states[name], array)
    products = [op for op in in_bytes.program.block if op.name == "phi.weight_only_linear"]
    assert products
    assert all(op.operand(0).dtype == "int8" for op in products)
    (exact,), (want,), (got,) = (Predictor(each).run(*data[0]) for each in (source, floats, in_bytes))
    assert 0 < np.linalg.norm(got - want) < 0.03 * np.linalg.norm(want)
    assert np.linalg.norm(got - exact) < 1.2 * np.linalg.norm(want - exact)
    with pytest.raises(ValueError, match="input_bits None or 8"):
        method(source, data, input_bits=4)


@pytest.mark.exhaustive
def test_calibrated_rounding_loses_less_than_rounding_to_the_nearest(trained, tmp_path, monkeypatch):
    """In four bits with groups of 32, on text that neither training nor calibration has seen; in eight bits next to
    nothing is lost. Files are as small as their bits say."""
    whole = perplexity(trained)
    (nearest, _), (eight, _) = round_to_nearest(trained, 4, 32), round_to_nearest(trained, 8)
    made = {
        "gptq": gptq(trained, calibration(), 4, 32),
        "gptq with order": gptq(trained, calibration(), 4, 32, act_order=True),
        "awq": awq(trained, calibration(), 4, 32),
    }
    lost = {name: perplexity(loaded) / whole - 1 for name, (loaded, _) in made.items()}
    assert perplexity(eight) / whole - 1 < 0.005
    worst = perplexity(nearest) / whole - 1
    assert max(lost.values()) < worst
    assert lost["gptq"] < 0.02
    mixed, report = mixed_precision(trained, calibration(), 5.0, 32, evaluation=windows(text(2, 12_000)))
    check_precision_of_layers(trained, report)
    assert report.perplexities == pytest.approx((whole, perplexity(mixed)))
    assert 0 < report.perplexity_gap < worst
    assert f"{report.perplexity_gap:+.2%}" in str(report).splitlines()[-1]
    assert report.bytes_after < 0.2 * report.bytes_before
    small, report = round_to_float8(trained, 32)
    assert abs(perplexity(small) / whole - 1) < 0.005
    assert all(layer.bytes_after < 0.3 * layer.bytes_before and 0.01 < layer.error < 0.04 for layer in report.layers)
    sizes = {}
    for name, loaded in {"whole": trained, "eight": eight, "four": made["gptq"][0]}.items():
        sizes[name] = save_program(loaded.program, loaded.states, tmp_path / name)[1].stat().st_size
    assert sizes["eight"] < 0.32 * sizes["whole"]
    assert sizes["four"] < 0.22 * sizes["whole"]
    monkeypatch.setattr(sys.modules["argosy_infer.compress.perplexity"], "_LOGITS", LENGTH * 6_400)  # 50 rows
    assert perplexity(trained) == pytest.approx(whole, rel=1e-6)
    again = load_program(tmp_path / "four")
    assert perplexity(again) == perplexity(made["gptq"][0])


def check_precision_of_layers(trained, report):
    """Those that results depend on most have eight bits, as far as these are allowed; others have four."""
    bits = {x.name: 8 if x.bytes_after > 0.25 * x.bytes_before else 4 for x in report.layers}
    sizes = {name: trained.states[name].size for name in bits}
    worth = {name: report.sensitivity[name] / sizes[name] for name in bits}
    assert 4.5 < sum(bits[name] * sizes[name] for name in bits) / sum(sizes.values()) <= 5
    assert bits[max(worth, key=worth.get)] == 8
    eight, four = ([worth[name] for name in bits if bits[name] == count] for count in (8, 4))
    assert np.mean(eight) > 2 * np.mean(four)


@pytest.mark.parametrize("calibrated", [gptq, awq])
def test_reports_say_what_was_done(trained, calibrated):
    """Every weight product of the model; errors are those of the numbers that are stored."""
    loaded, report = calibrated(trained, calibration(1_920), 4, 64)
    products, _ = find_weight_products(trained.program)
    assert {layer.name for layer in report.layers} == set(products)
    for layer in report.layers:
        assert layer.bytes_after < 0.17 * layer.bytes_before
        assert 0 < layer.error < 0.4
        assert f"{layer.name}.bytes" in loaded.states
    for with_data in (calibrated, mixed_precision):
        with pytest.raises(InputError, match="there is no entry"):
            with_data(trained, [])
    with pytest.raises(ValueError, match="4 bits or more"):
        mixed_precision(trained, calibration(), 3)
    with pytest.raises(ValueError, match="groups of -1, 32, 64 or 128"):
        calibrated(trained, calibration(), 4, 48)


@pytest.mark.parametrize("static", [pytest.param(False, marks=pytest.mark.exhaustive), True])
def test_products_of_bytes_are_integer_arithmetic_and_lose_little(trained, static):
    """One layer to the last bit of its float32 scales; a trained model by perplexity, served over a cache, too."""
    loaded, report = smooth_quant(trained, calibration(), static=static)
    assert perplexity(loaded) / perplexity(trained) - 1 < 0.01
    assert all(layer.bytes_after < 0.3 * layer.bytes_before and layer.error < 0.02 for layer in report.layers)
    prompt, (logits,) = list(b"emmy wrote "), Predictor(loaded).run(np.array([list(b"emmy wrote ")]))
    assert Generator(loaded).generate(prompt, 1) == [int(logits[0, -1].argmax())]
    layer = paddle.nn.Linear(96, 40)
    x = np.random.default_rng(0).standard_normal((7, 96)).astype(np.float32)
    one = export_program(layer, [InputSpec([None, 96], "float32", "x")])
    small, _ = smooth_quant(one, [[x]], static=static)
    states = {name.rpartition(".")[2]: array for name, array in small.states.items()}
    wide = x * states["factors"]
    steps = states["step"] if static else np.abs(wide).max(1, keepdims=True) / np.float32(127.5)
    sums = np.clip(np.rint(wide / steps), -128, 127).astype(np.int64) @ states["bytes"].T.astype(np.int64)
    want = sums.astype(np.float32) * steps * states["scales"] + layer.bias.numpy()
    np.testing.assert_allclose(Predictor(small).run(x)[0], want, rtol=2e-6, atol=1e-6)


def test_sums_over_calibration_data_are_those_of_the_inputs(trained):
    """Two entries count as one longer one; the order of entries does not matter."""
    ids = windows(text(4, LENGTH * 6))
    products = list(find_weight_products(trained.program)[0].values())
    apart = observe_inputs(trained, products, [[ids[:2]], {"ids": ids[2:]}])
    together = observe_inputs(trained, products, [[ids]])
    for name, (inputs,) in together.items():
        (parts,) = apart[name]
        assert inputs.rows == parts.rows == ids.size
        np.testing.assert_allclose(parts.products, inputs.products, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(np.diag(inputs.products) <= inputs.rows * inputs.largest**2 * 1.001, True)


def test_compressed_models_generate_what_they_compute(trained):
    """Greedy tokens over the cache are those of the whole compressed program, run again and again."""
    loaded, _ = gptq(trained, calibration(), 4, 32, act_order=True)
    prompt, predictor = list(b"ada found "), Predictor(loaded)
    ids = list(prompt)
    for _ in range(12):
        (logits,) = predictor.run(np.array([ids]))
        ids.append(int(logits[0, -1].argmax()))
    assert Generator(loaded).generate(prompt, 12) == ids[len(prompt) :]


@pytest.mark.parametrize("bits", [None, 8, 4])
def test_a_sequence_has_the_same_bits_beside_others_and_in_any_pieces(trained, bits):
    """Logits of a sequence alone, of it among others, and of its prompt in pieces of any length."""
    loaded = trained if bits is None else round_to_nearest(trained, bits, 64)[0]
    others = [list(text(seed, 30)) for seed in range(5, 12)]
    prompt = list(text(4, 40))

    def logits(pieces, beside):
        generator, made, start = Generator(loaded, capacity=512), [], 0
        for piece in pieces:
            tokens = prompt[start : start + piece]
            positions, owners = list(range(start, start + piece)), [0] * piece
            for number, other in enumerate(others[:beside] if start == 0 else ()):
                tokens, positions = tokens + other, positions + list(range(len(other)))
                owners += [number + 1] * len(other)
            made.append(generator.step(tokens, positions, owners, range(piece)))
            start += piece
        return np.concatenate(made)

    alone = logits([40], 0)
    for pieces, beside in (([40], 7), ([40], 1), ([7, 33], 3), ([1] * 40, 0), ([16, 8, 16], 0)):
        assert logits(pieces, beside).tobytes() == alone.tobytes(), (pieces, beside)


def test_weights_are_laid_out_without_changing_results(trained):
    """All terms of a result side by side, bias included."""
    laid = lay_out_weights(trained)
    products, _ = find_weight_products(laid.program)
    assert products
    assert all(product.is_turned for product in products.values())
    ids = windows(text(4, LENGTH * 2))
    (got,), (want,) = Predictor(laid).run(ids), Predictor(LoadedProgram(trained.program, trained.states)).run(ids)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * np.abs(want).max())
