"""jit.save and jit.load."""

import copy

import numpy as np
import pytest

import argosy as paddle
from argosy_infer.errors import ProgramFileError

nn = paddle.nn


def _model():
    return nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.GELU(), nn.Linear(4, 2))


def _x(n):
    return paddle.to_tensor(np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32))


def test_an_export_computes_what_the_model_does_in_evaluation(tmp_path):
    """The program serves any batch size, without dropout, under the state dict's names; the model keeps its mode."""
    model = _model()
    paddle.jit.save(model, tmp_path / "m", input_spec=[paddle.static.InputSpec([None, 3], "float32", "x")])
    assert model.training
    assert all(layer.training for layer in model.sublayers())
    loaded = paddle.jit.load(tmp_path / "m")
    assert list(loaded.state_dict()) == list(model.state_dict())
    assert not loaded.training
    model.eval()
    for n in (1, 5):
        np.testing.assert_allclose(loaded(_x(n)).numpy(), model(_x(n)).numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="x"):
        loaded(paddle.to_tensor(np.zeros((2, 4), np.float32)))


def test_an_export_can_be_trained(tmp_path):
    """In training mode gradients are the model's, parameters are those that were trained, and evaluation follows."""
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1D(4), nn.Tanh(), nn.Linear(4, 2))
    paddle.jit.save(model, tmp_path / "m", input_spec=[paddle.static.InputSpec([None, 3])])
    loaded = paddle.jit.load(tmp_path / "m")
    model.eval()
    assert [p.name for p in loaded.parameters()] == [n for n, p in model.named_parameters() if not p.stop_gradient]
    optimizer = paddle.optimizer.SGD(0.1, parameters=loaded.parameters())
    loaded.train()
    for n in (2, 4):
        (loaded(_x(n)) ** 2).mean().backward()
    for n in (2, 4):
        (model(_x(n)) ** 2).mean().backward()
    wanted = {name: p for name, p in model.named_parameters() if not p.stop_gradient}
    for name, p in loaded.named_parameters():
        np.testing.assert_allclose(p.grad.numpy(), wanted[name].grad.numpy(), rtol=1e-4, atol=1e-6)
    optimizer.step()
    trained = loaded(_x(3)).numpy()
    loaded.eval()
    np.testing.assert_allclose(loaded(_x(3)).numpy(), trained, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="float32 \\[2, 5\\], expected"):
        loaded.train()(paddle.ones([2, 5]))


def test_an_export_with_a_loop_is_not_trained(tmp_path):
    """What is no operator is named."""

    def double(x):
        while x.sum() < 10:
            x = x * 2
        return x

    paddle.jit.save(double, tmp_path / "f", input_spec=[paddle.ones([2])])
    with pytest.raises(NotImplementedError, match=r"control\.while .* cannot be trained"):
        paddle.jit.load(tmp_path / "f").train()


def test_damaged_and_mixed_exports_are_named(tmp_path):
    """A missing, cut or foreign file is an error that names it."""
    spec = [paddle.static.InputSpec([None, 3])]
    paddle.jit.save(_model(), tmp_path / "a", input_spec=spec)
    paddle.jit.save(nn.Linear(3, 2), tmp_path / "b", input_spec=spec)
    with pytest.raises(ValueError, match="none"):
        paddle.jit.load(tmp_path / "none")
    program = tmp_path / "a.pir"
    program.write_bytes(program.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"a\.pir"):
        paddle.jit.load(tmp_path / "a")
    (tmp_path / "b.safetensors").write_bytes((tmp_path / "a.safetensors").read_bytes())
    with pytest.raises(ValueError, match="different exports"):
        paddle.jit.load(tmp_path / "b")


def test_an_export_needs_a_spec_and_can_do_without_layers(tmp_path):
    """Without input_spec there is an error that says so; plain functions export, too."""
    with pytest.raises(ValueError, match="needs input_spec"):
        paddle.jit.save(_model(), tmp_path / "m")
    paddle.jit.save(lambda x: (x + 1, x * 2), tmp_path / "f", input_spec=[paddle.to_tensor([1.0, 2.0])])
    y, z = paddle.jit.load(tmp_path / "f")(paddle.to_tensor([3.0, 4.0]))
    assert (y.tolist(), z.tolist()) == ([4.0, 5.0], [6.0, 8.0])


def test_copies_of_captured_layers_are_their_own():
    """deepcopy of a layer that was made static captures the copy's parameters."""
    model = paddle.jit.to_static(nn.Linear(3, 2), full_graph=True, backend="reference")
    with paddle.no_grad():
        model(_x(2))
        other = copy.deepcopy(model)
        other.weight.set_value(np.zeros((3, 2), np.float32))
        np.testing.assert_array_equal(other(_x(2)).numpy(), np.zeros((2, 2)) + other.bias.numpy())
        assert model(_x(2)).numpy().any()


def test_inputs_with_open_batches_share_them_where_the_function_needs_it(tmp_path):
    """A loss of two inputs [None, ...] exports for any batch that both have, and refuses two batches."""
    model = _model()
    model.eval()

    def loss(x, label):
        return nn.functional.cross_entropy(model(x), label, reduction="none")

    specs = [paddle.static.InputSpec([None, 3], "float32", "x"), paddle.static.InputSpec([None], "int64", "label")]
    paddle.jit.save(loss, tmp_path / "m", input_spec=specs)
    loaded = paddle.jit.load(tmp_path / "m")
    for n in (1, 4):
        label = paddle.arange(n) % 2
        np.testing.assert_allclose(loaded(_x(n), label).numpy(), loss(_x(n), label).numpy(), rtol=1e-5)
    with pytest.raises(ValueError, match=r"input 1 has shape \[2\]: axis 0 .* is 3 here"):
        loaded(_x(3), paddle.arange(2))


def test_the_newest_call_says_what_is_exported(tmp_path):
    """A captured layer that was called needs no input_spec; its batch stays open, and folders are made."""
    layer = paddle.jit.to_static(paddle.nn.Linear(3, 2))
    x = paddle.ones([4, 3])
    expected = layer(x).numpy()
    paddle.jit.save(layer, str(tmp_path / "new" / "linear"))
    loaded = paddle.jit.load(str(tmp_path / "new" / "linear"))
    np.testing.assert_allclose(loaded(x[:1]).numpy(), expected[:1], rtol=1e-6)


class Autoencoder(paddle.nn.Layer):
    """Three captured methods that share weights, and one that is not captured."""

    def __init__(self):
        super().__init__()
        self.down, self.up, self.score = paddle.nn.Linear(4, 3), paddle.nn.Linear(3, 4), paddle.nn.Linear(3, 2)
        self.dropout = paddle.nn.Dropout(0.5)

    @paddle.jit.to_static(input_spec=[paddle.static.InputSpec([None, 4], "float32")])
    def forward(self, x):
        return self.up(self.encode(x))

    @paddle.jit.to_static
    def encode(self, x):
        return self.dropout(self.down(x))

    @paddle.jit.to_static(input_spec=[paddle.static.InputSpec([None, 3], "float32"), paddle.static.InputSpec([1])])
    def judge(self, code, factor):
        return self.score(code) * factor, code

    def plain(self, x):
        return x


def test_captured_methods_are_exported_beside_forward(tmp_path):
    """They come back under their names, in evaluation, share weights with forward, and can be trained."""
    model, path = Autoencoder(), tmp_path / "model"
    x, factor = paddle.rand([5, 4]), paddle.to_tensor([2.0])
    with paddle.no_grad():
        model.encode(x)  # says what it takes
    paddle.jit.save(model, path)
    assert model.training
    model.eval()
    loaded = paddle.jit.load(path)
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".pir") == [
        "model.encode.pir", "model.judge.pir", "model.pir",
    ]  # fmt: skip
    assert sorted(loaded.state_dict()) == sorted(model.state_dict())
    code = model.encode(x)
    for found, wanted in ((loaded(x), model(x)), (loaded.encode(x), code), *zip(
        loaded.judge(code, factor), model.judge(code, factor), strict=True
    )):  # fmt: skip
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)
    assert loaded.program("judge") is not loaded.program()
    assert not hasattr(loaded, "plain")
    weights = loaded.state_dict()
    weights["down.weight"].set_value(paddle.zeros([4, 3]))
    weights["down.bias"].set_value(paddle.zeros([3]))
    assert not loaded.encode(x).numpy().any()
    np.testing.assert_allclose(loaded(x).numpy(), np.tile(model.up.bias.numpy(), (5, 1)))
    loaded.train()
    (loaded.encode(x).sum() + loaded.judge(code, factor)[0].sum()).backward()
    trained = {p.name for p in loaded.parameters() if p.grad is not None}
    assert trained == {"down.weight", "down.bias", "score.weight", "score.bias"}
    with pytest.raises(ValueError, match=r"no method 'plain' was exported; there are \['encode', 'forward', 'judge'\]"):
        loaded.program("plain")


def test_exported_methods_need_specs_of_their_own(tmp_path):
    """One list of specifications is not that of all methods; one method without any is named."""
    with pytest.raises(ValueError, match=r"'input_spec' should be None .* methods \['encode', 'judge'\]"):
        paddle.jit.save(Autoencoder(), tmp_path / "model", [paddle.rand([5, 4])])
    with pytest.raises(ValueError, match=r"for each input of encode\(\), or a call before it"):
        paddle.jit.save(Autoencoder(), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_method_is_exported_as_a_function(tmp_path):
    """Its states have the names of its layer, which is in evaluation meanwhile."""
    model, x = Autoencoder(), paddle.rand([2, 4])
    paddle.jit.save(model.encode, tmp_path / "encoder", [paddle.static.InputSpec([None, 4])])
    loaded = paddle.jit.load(tmp_path / "encoder")
    assert sorted(loaded.state_dict()) == ["down.bias", "down.weight"]
    np.testing.assert_allclose(loaded(x).numpy(), model.down(x).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("names", [("state_dict",), ("../other",), (1,), "encode"])
def test_files_name_no_methods_that_layers_have(tmp_path, names):
    """What a file says cannot replace a layer's own methods, nor be read from elsewhere."""
    from argosy_infer.export import load_program, save_program

    path = tmp_path / "f"
    paddle.jit.save(paddle.nn.Linear(2, 2), path, [paddle.static.InputSpec([None, 2])])
    found = load_program(path)
    found.program.attributes["argosy.methods"] = names
    save_program(found.program, found.states, path)
    with pytest.raises(ProgramFileError, match=r"names methods .*, which are none of a layer"):
        paddle.jit.load(path)


def test_a_loaded_layer_is_saved_again_and_captured_within_others(tmp_path):
    """What was trained further after loading is exported like any layer, sizes left open included."""
    spec = [paddle.static.InputSpec([None, 4], "float32")]
    layer = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 2))
    paddle.jit.save(layer, str(tmp_path / "first"), input_spec=spec)
    loaded = paddle.jit.load(str(tmp_path / "first"))
    with paddle.no_grad():
        loaded.parameters()[0].set_value(loaded.parameters()[0] * 2)
    paddle.jit.save(loaded, str(tmp_path / "second"), input_spec=spec)
    again = paddle.jit.load(str(tmp_path / "second"))
    within = paddle.jit.to_static(lambda x: loaded(x) * 2, full_graph=True)
    for rows in (1, 3):
        x = paddle.ones([rows, 4])
        np.testing.assert_allclose(again(x).numpy(), loaded(x).numpy(), rtol=1e-6)
        np.testing.assert_allclose(within(x).numpy(), loaded(x).numpy() * 2, rtol=1e-6)


def test_a_copy_of_a_loaded_layer_has_weights_of_its_own(tmp_path):
    class Both(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.linear = paddle.nn.Linear(4, 3)

        @paddle.jit.to_static(input_spec=[paddle.static.InputSpec([None, 4])])
        def forward(self, x):
            return self.linear(x)

        @paddle.jit.to_static(input_spec=[paddle.static.InputSpec([None, 4])])
        def twice(self, x):
            return self.linear(x) * 2

    path = str(tmp_path / "both")
    paddle.jit.save(Both(), path)
    loaded = paddle.jit.load(path)
    loaded.note = ["kept"]
    loaded.parameters()[0].stop_gradient = True
    twin = copy.deepcopy(loaded)
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((2, 4)).astype("float32"))
    before = loaded(x).numpy()
    np.testing.assert_array_equal(twin(x), before)
    assert twin.note == ["kept"]
    assert twin.note is not loaded.note
    assert [p.stop_gradient for p in twin.parameters()] == [p.stop_gradient for p in loaded.parameters()]
    with paddle.no_grad():
        for parameter in twin.parameters():
            parameter.set_value(parameter + 1.0)
    np.testing.assert_array_equal(loaded(x), before)
    assert not np.allclose(twin(x), before)
    np.testing.assert_allclose(twin.twice(x), 2 * twin(x).numpy(), rtol=1e-6)
    twin.train()
    np.testing.assert_allclose(twin(x), twin.eval()(x), rtol=1e-5)


RESOLVED = {
    "reshape": (lambda x: x.reshape([x.shape[0], 3, 3]), (4, 9), (4, 8)),
    "view": (lambda x: x.view([x.shape[0], 3, 3]), (4, 9), (4, 8)),
    "unflatten": (lambda x: paddle.unflatten(x, 1, [3, 3]), (4, 9), (4, 8)),
    "matmul": (lambda x: x @ paddle.ones([5, 3]), (2, 5), (2, 6)),
}


@pytest.mark.parametrize("name", RESOLVED)
def test_open_sizes_that_an_operator_fixes_are_checked_at_the_call(name, tmp_path):
    """Another size is refused with the operator, its line and the sizes; the other open size stays open."""
    f, good, bad = RESOLVED[name]
    layer = paddle.nn.Layer()
    layer.forward = f
    paddle.jit.save(layer, str(tmp_path / "m"), [paddle.static.InputSpec([None, None])])
    loaded = paddle.jit.load(str(tmp_path / "m"))
    for rows in (good[0], 1, 7):
        x = paddle.randn([rows, good[1]])
        np.testing.assert_allclose(loaded(x).numpy(), f(x).numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=rf"shape \[{bad[0]}, {bad[1]}\](.|\n)*s1 is {good[1]}: {name}(.|\n)*\.py:\d+"):
        loaded(paddle.randn(list(bad)))
