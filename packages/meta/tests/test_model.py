"""Model: the loops, what callbacks see, what is printed, and files."""

import numpy as np
import pytest

import argosy as paddle
from argosy import nn
from argosy.hapi.progress import _number, _remaining_text


def _data(n=10):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 4)).astype("float32")
    y = (x[:, :1] > 0).astype("int64")
    return paddle.io.TensorDataset([paddle.to_tensor(x), paddle.to_tensor(y)])


def _model(rate=0.05):
    paddle.seed(0)
    net = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 2))
    model = paddle.Model(net)
    optimizer = paddle.optimizer.Adam(rate, parameters=model.parameters())
    model.prepare(optimizer, paddle.nn.CrossEntropyLoss(), paddle.metric.Accuracy())
    return model


def test_fit_learns_and_evaluate_and_predict_agree():
    """A separable problem is learned; predictions give the accuracy that evaluate reports."""
    model, data = _model(), _data(40)
    model.fit(data, batch_size=8, epochs=20, verbose=0)
    result = model.evaluate(data, batch_size=8, verbose=0)
    assert sorted(result) == ["acc", "loss"]
    assert result["acc"] > 0.9
    (scores,) = model.predict(data, batch_size=7, stack_outputs=True, verbose=0)
    assert scores.shape == (40, 2)
    labels = np.concatenate([np.asarray(data[i][1]).reshape(-1) for i in range(40)])
    assert (scores.argmax(1) == labels).mean() == pytest.approx(result["acc"])
    parts = model.predict(data, batch_size=7, verbose=0)
    assert [part.shape for part in parts[0]] == [(7, 4 - 2)] * 5 + [(5, 2)]


class _Watch(paddle.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.events = []

    def __getattribute__(self, name):
        if name.startswith("on_"):
            return lambda *args: self.events.append(name[3:])
        return object.__getattribute__(self, name)


def test_callbacks_see_every_event_in_order():
    """Events come in Paddle's order: the evaluation of an epoch follows its end."""
    watch = _Watch()
    _model().fit(_data(), _data(), batch_size=5, epochs=1, verbose=0, callbacks=watch)
    batches = ["train_batch_begin", "train_batch_end"] * 2
    evaluation = ["eval_begin", *["eval_batch_begin", "eval_batch_end"] * 2, "eval_end"]
    assert watch.events == ["train_begin", "epoch_begin", *batches, "epoch_end", *evaluation, "train_end"]


def test_lines_are_in_paddles_format(capsys):
    """verbose=2 prints a line every log_freq steps and at the end; verbose=1 draws a bar."""
    model = _model()
    model.fit(_data(), _data(), batch_size=2, epochs=1, verbose=2, log_freq=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("The loss value printed in the log is the current step")
    assert lines[1] == "Epoch 1/1"
    assert [line.split(" - ")[0] for line in lines[2:5]] == ["step 2/5", "step 4/5", "step 5/5"]
    assert [part.split(":")[0] for part in lines[2].split(" - ")[1:3]] == ["loss", "acc"]
    assert lines[2].endswith("/step")
    assert lines[5] == "Eval begin..."
    assert lines[-1] == "Eval samples: 10"
    model.evaluate(_data(), batch_size=2, verbose=1, log_freq=2)
    shown = capsys.readouterr().out
    assert "step 2/5 [===========>..................] - loss: " in shown
    assert f"step 5/5 [{'=' * 30}] - loss: " in shown


def test_checkpoints_are_written_and_read(tmp_path, capsys):
    """fit saves .pdparams and .pdopt for each epoch and at the end, from which another model goes on."""
    model = _model()
    model.fit(_data(), batch_size=5, epochs=2, verbose=0, save_dir=str(tmp_path))
    told = [f"save checkpoint at {tmp_path / name}" for name in ("0", "1", "final")]
    assert capsys.readouterr().out.splitlines() == told
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        f"{name}.{kind}" for name in ("0", "1", "final") for kind in ("pdopt", "pdparams")
    ]
    other = paddle.Model(paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 2)))
    other.load(str(tmp_path / "final"))
    np.testing.assert_array_equal(other.network[0].weight.numpy(), model.network[0].weight.numpy())
    with pytest.raises(ValueError, match="weight is not found"):
        paddle.Model(paddle.nn.Linear(4, 8)).load(str(tmp_path / "final"))


def test_early_stopping_history_and_schedules(tmp_path, capsys):
    """Training stops at the second evaluation without gain, as the wheel's does, and tells where the best model is;
    the history has an entry for each epoch; schedules step."""
    net = paddle.nn.Linear(4, 2)
    schedule = paddle.optimizer.lr.StepDecay(0.0, 1)
    model = paddle.Model(net)
    model.prepare(paddle.optimizer.SGD(schedule, parameters=net.parameters()), paddle.nn.CrossEntropyLoss())
    history, stop = paddle.callbacks.History(), paddle.callbacks.EarlyStopping(patience=2)
    model.fit(_data(), _data(), 5, 10, verbose=0, save_dir=str(tmp_path), callbacks=[history, stop])
    assert len(history.history["loss"]) == len(history.history["eval_loss"]) == 3
    assert schedule.last_epoch == 6
    assert (stop.stopped_epoch, stop.wait_epoch) == (3, 2)
    assert (tmp_path / "best_model.pdparams").exists()
    best = tmp_path / "best_model"
    assert f"Epoch 3: Early stopping.\nBest checkpoint has been saved at {best}\n" in capsys.readouterr().out
    model.fit(_data(), batch_size=1, epochs=5, num_iters=3, verbose=0)
    assert schedule.last_epoch == 9


def test_gradients_add_up_over_batches():
    """accumulate_grad_batches=2 over halves of a batch updates with the sum of both gradients."""
    weights = []
    for size, every in ((5, 2), (10, 1)):
        net = paddle.nn.Linear(4, 2)
        net.weight.set_value(np.ones((4, 2), "float32"))
        model = paddle.Model(net)
        loss = paddle.nn.CrossEntropyLoss(reduction="sum")
        model.prepare(paddle.optimizer.SGD(0.1, parameters=net.parameters()), loss)
        model.fit(_data(), batch_size=size, shuffle=False, verbose=0, accumulate_grad_batches=every)
        weights.append(net.weight.numpy())
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-5)


def test_summary_and_flops(capsys):
    """The table names each leaf with its shapes and parameters; multiply-adds count once; modes and hooks stay."""
    with paddle.utils.unique_name.guard():
        net = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 3))
    net[0].bias.stop_gradient = True
    assert paddle.summary(net, (1, 4)) == {"total_params": 67, "trainable_params": 59}
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines()[3:6]] == ["Linear-1", "ReLU-1", "Linear-2"]
    assert "[[1, 4]]" in shown
    assert "Non-trainable params: 8" in shown
    assert paddle.flops(net, [1, 4]) == 56
    assert paddle.flops(paddle.nn.Conv2D(3, 5, 3), (2, 3, 8, 8)) == 2 * 5 * 36 * (27 + 1)
    assert paddle.flops(net, [1, 4], {paddle.nn.ReLU: lambda layer, given, result: 8}, print_detail=True) == 64
    assert net.training
    assert not net[0]._forward_post_hooks


def test_summary_has_paddles_lines(capsys):
    """Layers in the order in which they finish, numbered as they were made; an LSTM in one line; a layer called twice
    in one, an encoder layer behind its parts (the wheel's table for this network)."""

    class Network(nn.Layer):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(8, 8)
            self.recurrent = nn.LSTM(8, 4, 2, direction="bidirect")
            self.encoder = nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16))

        def forward(self, x):
            return self.last(self.last(self.encoder(self.recurrent(x)[0])))

    with paddle.utils.unique_name.guard():
        network = Network()
    paddle.summary(network, (2, 5, 8))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = [(line[0], line[-1]) for line in lines if line and line[0].rpartition("-")[2].isdigit()]
    expected = (
        "LSTM-1 896 Linear-2 72 Linear-3 72 Linear-4 72 Linear-5 72 MultiHeadAttention-1 0 Dropout-2 0 LayerNorm-1 16 "
        "Linear-6 144 Dropout-1 0 Linear-7 136 Dropout-3 0 LayerNorm-2 16 TransformerEncoderLayer-1 0 Linear-1 72"
    ).split()
    assert rows == list(zip(expected[::2], expected[1::2], strict=True))
    assert next(line for line in lines if line[:1] == ["MultiHeadAttention-1"])[-5] == "None]"


def test_summary_takes_specs(capsys):
    """Their open sizes are 1, their dtype is that of the input; masks given by name are no input of a layer's line."""
    table = nn.Sequential(nn.Embedding(10, 8), nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 1))
    spec = paddle.static.InputSpec([None, 6], "int64", "ids")
    for size in (spec, [spec]):
        paddle.summary(table, size)
    paddle.Model(table, [spec]).summary()
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "Embedding-" in line]
    assert [line[1:-1] for line in lines] == [["[[1,", "6]]", "[1,", "6,", "8]"]] * 3


def test_flops_counts_and_shows_what_paddle_does(capsys):
    """The table and the total are the wheel's for the same network, with a rule in Paddle's own form."""
    net = nn.Sequential(
        nn.Conv2D(1, 6, 3, padding=1), nn.MaxPool2D(2, 2), nn.Conv2D(6, 16, 5, groups=2), nn.BatchNorm2D(16),
        nn.LeakyReLU(), nn.AvgPool2D(2, 2), nn.Conv2DTranspose(16, 8, 3), nn.AdaptiveAvgPool2D(3), nn.Flatten(),
        nn.Linear(72, 10), nn.Sigmoid(),
    )  # fmt: skip

    def count_sigmoid(layer, given, result):
        layer.total_ops += 4 * int(result.numel())

    before = set(net.state_dict())
    assert paddle.flops(net, [1, 1, 28, 28], {nn.Sigmoid: count_sigmoid}, print_detail=True) == 231800
    out = capsys.readouterr().out
    assert f"{nn.Conv2D}'s flops has been counted" in out
    assert out.count(f"Cannot find suitable count function for {nn.MaxPool2D}. Treat it as zero FLOPs.") == 1
    assert f"Customize Function has been applied to {nn.Sigmoid}" in out
    table = [line.split("|")[2:-1] for line in out.splitlines() if line.startswith("|")]
    shown = {tuple(cell.strip() for cell in row) for row in table}
    assert ("[1, 6, 14, 14]", "[1, 16, 10, 10]", "1216", "121600") in shown
    assert ("[1, 16, 5, 5]", "[1, 8, 7, 7]", "1160", "56840") in shown
    assert ("[1, 10]", "[1, 10]", "0", "40") in shown
    assert set(net.state_dict()) == before
    with pytest.raises(TypeError, match="net should be a Layer"):
        paddle.flops(3, [1])


def test_wrong_arguments_are_named():
    """What is no layer, loss, metric or data set, and training that was not prepared, are refused by name."""
    model = paddle.Model(paddle.nn.Linear(4, 2))
    with pytest.raises(RuntimeError, match="prepare"):
        model.train_batch(np.ones((1, 4), "float32"))
    with pytest.raises(TypeError, match="Layer"):
        paddle.Model(3)
    with pytest.raises(TypeError, match="Metric"):
        model.prepare(metrics=3)
    with pytest.raises(TypeError, match="Dataset"):
        model.fit(12)
    with pytest.raises(ValueError, match="input_size"):
        paddle.summary(model.network)


class _Figures:
    """An evaluation's figures handed to a callback, with an optimizer whose rate it may change."""

    def __init__(self, callback, rate=1.0):
        self._optimizer = paddle.optimizer.SGD(rate, parameters=paddle.nn.Linear(2, 2).parameters())
        self.callback = callback
        callback.set_model(self)
        callback.set_params({"metrics": ["loss", "acc"]})

    def rates(self, key, values):
        found = []
        for value in values:
            self.callback.on_eval_end({key: value})
            found.append(self._optimizer.get_lr())
        return found


def test_the_rate_falls_when_a_figure_stops_improving(capsys):
    """After `patience` evaluations without improvement, then not during the cooldown, never below min_lr."""
    callback = paddle.callbacks.ReduceLROnPlateau(factor=0.5, patience=2, cooldown=1, min_lr=0.2)
    rates = _Figures(callback).rates("loss", [1.0, 0.5, [0.5], 0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6])
    assert rates == [1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.2, 0.2, 0.2]
    assert "reducing learning rate to 0.5" in capsys.readouterr().out
    rising = paddle.callbacks.ReduceLROnPlateau("acc", 0.5, 1, verbose=0)
    assert _Figures(rising).rates("acc", [0.1, 0.2, 0.1]) == [1.0, 1.0, 0.5]
    with pytest.warns(UserWarning, match="no 'acc'"):
        rising.on_eval_end({"loss": 1.0})
    with pytest.raises(ValueError, match="factor"):
        paddle.callbacks.ReduceLROnPlateau(factor=1.0)


def test_figures_reach_the_libraries_that_show_them(monkeypatch):
    """VisualDL and Wandb get every figure by name and step; a missing library is named."""
    import sys
    from types import SimpleNamespace

    written = []
    writer = SimpleNamespace(add_scalar=lambda **one: written.append(one), close=lambda: written.append("closed"))
    monkeypatch.setitem(sys.modules, "visualdl", SimpleNamespace(LogWriter=lambda path: writer))
    callback = paddle.callbacks.VisualDL("somewhere")
    _Figures(callback)
    callback.on_train_begin()
    callback.on_epoch_begin(3)
    callback.on_train_batch_end(0, {"loss": [0.5], "acc": 0.25, "step": 7})
    callback.on_eval_begin()
    callback.on_eval_end({"loss": 0.75})
    callback.on_train_end()
    assert written == [
        {"tag": "train/loss", "step": 1, "value": 0.5},
        {"tag": "train/acc", "step": 1, "value": 0.25},
        {"tag": "eval/loss", "step": 3, "value": 0.75},
        "closed",
    ]
    sent = []
    run = SimpleNamespace(log=sent.append, finish=lambda: sent.append("finished"))
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=None, init=lambda **given: sent.append(given) or run))
    logger = paddle.callbacks.WandbCallback(project="p", tags=["t"])
    _Figures(logger)
    logger.on_train_batch_end(0, {"loss": 5.0})
    logger.on_train_begin()
    logger.on_epoch_begin(4)
    logger.on_train_batch_end(0, {"loss": 2.0})
    logger.on_eval_begin()
    logger.on_eval_end({"loss": 3.0})
    logger.on_train_end()
    assert sent[:2] == [{"project": "p", "tags": ["t"]}, {"train/loss": 5.0, "step": 1}]
    assert sent[2:] == [{"train/loss": 2.0, "step": 1}, {"eval/loss": 3.0, "epoch": 4}, "finished"]
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match="pip install wandb"):
        paddle.callbacks.WandbCallback()


@pytest.mark.parametrize("configs", ["O1", {"level": "O2", "dtype": "bfloat16", "init_loss_scaling": 128.0}])
def test_training_in_mixed_precision_learns(configs):
    paddle.seed(3)
    network = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    model = paddle.Model(network)
    model.prepare(paddle.optimizer.Adam(1e-2, parameters=network.parameters()), nn.MSELoss(), amp_configs=configs)
    x = np.random.default_rng(0).standard_normal((32, 4)).astype("float32")
    y = x.sum(1, keepdims=True)
    losses = [float(model.train_batch([x], [y])[0]) for _ in range(60)]
    assert losses[-1] < 0.3 * losses[0]
    assert network[0].weight.dtype == (paddle.float32 if configs == "O1" else paddle.bfloat16)
    np.testing.assert_allclose(model.eval_batch([x], [y])[0], losses[-1], rtol=0.2, atol=1e-2)
    assert model.predict_batch([x])[0].shape == (32, 1)


def test_a_step_whose_scaled_gradients_overflow_is_skipped():
    network = nn.Linear(2, 1)
    model = paddle.Model(network)
    rule = paddle.optimizer.SGD(0.1, parameters=network.parameters())
    model.prepare(rule, nn.MSELoss(), amp_configs={"level": "O1", "init_loss_scaling": 3e38})
    before = network.weight.numpy().copy()
    model.train_batch([np.ones((1, 2), "float32")], [np.full((1, 1), 100.0, "float32")])
    np.testing.assert_array_equal(network.weight.numpy(), before)


@pytest.mark.parametrize(
    ("configs", "error", "says"),
    [
        ("O3", ValueError, "level should be one of"),
        ({"levle": "O1"}, ValueError, "levle"),
        (3, TypeError, "a level"),
    ],
)
def test_amp_configs_that_are_not_known_are_refused(configs, error, says):
    model = paddle.Model(nn.Linear(1, 1))
    with pytest.raises(error, match=says):
        model.prepare(amp_configs=configs)


def test_level_o2_refuses_to_clip_by_value():
    network = nn.Linear(1, 1)
    rule = paddle.optimizer.SGD(0.1, parameters=network.parameters(), grad_clip=nn.ClipGradByValue(1.0))
    with pytest.raises(ValueError, match="ClipGradByValue"):
        paddle.Model(network).prepare(rule, nn.MSELoss(), amp_configs="O2")


class _Told(paddle.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.told, self.steps = [], 0

    def set_params(self, params):
        super().set_params(params)
        self.told.append({key: params[key] for key in ("batch_size", "epochs", "steps", "metrics")})

    def on_train_batch_end(self, step, logs=None):
        self.steps += 1


def test_num_iters_says_how_long_whatever_the_epochs(capsys):
    """As in Paddle, where epochs are made of it."""
    watch = _Told()
    _model().fit(_data(), batch_size=4, num_iters=7, verbose=2, callbacks=watch)
    assert watch.steps == 7
    assert "Epoch 3/3" in capsys.readouterr().out


def test_callbacks_are_told_the_same_names_by_every_loop():
    watch, model = _Told(), _model()
    model.fit(_data(), batch_size=4, epochs=2, verbose=0, callbacks=watch)
    model.evaluate(_data(), batch_size=4, verbose=0, callbacks=watch)
    model.predict(_data(), batch_size=4, verbose=0, callbacks=watch)
    assert watch.told == [
        {"batch_size": 4, "epochs": 2, "steps": 3, "metrics": ["loss", "acc"]},
        {"batch_size": 4, "epochs": None, "steps": 3, "metrics": ["loss", "acc"]},
        {"batch_size": 4, "epochs": None, "steps": 3, "metrics": []},
    ]


def test_anything_that_gives_batches_is_data():
    """A list, a stream; what is none of it is refused."""
    model, data = _model(), _data()
    batch = [paddle.stack([data[i][part] for i in range(4)]) for part in (0, 1)]
    model.fit([batch] * 3, [batch], verbose=0)
    assert model.evaluate([batch], verbose=0)["acc"] <= 1.0

    class Stream(paddle.io.IterableDataset):
        def __iter__(self):
            return (data[i] for i in range(7))

    watch = _Told()
    model.fit(Stream(), batch_size=3, verbose=0, callbacks=watch)
    assert watch.steps == 3
    with pytest.raises(TypeError, match="takes a Dataset or an iterable of batches, not int"):
        model.fit(3)


def test_metrics_are_updated_with_arrays(capsys):
    """So that users' metrics may compute with numpy, as in Paddle; what is no float is printed as it is."""

    class Largest(paddle.metric.Metric):
        def reset(self):
            self.seen = 0

        def name(self):
            return "largest"

        def compute(self, scores, labels):
            return scores.max(), labels

        def update(self, largest, labels):
            assert isinstance(largest, np.ndarray)
            self.seen += int(np.add.reduce(labels >= 0).sum())
            return self.seen

        def accumulate(self):
            return self.seen

    model = _model()
    model.prepare(None, None, Largest())
    assert model.evaluate(_data(), batch_size=10, verbose=2) == {"largest": 10}
    assert "step 1/1 - largest: 10 - " in capsys.readouterr().out


def test_a_file_with_more_fits_and_one_with_less_is_named(tmp_path):
    """The head of a larger network is left out; names that are wanted and not there are an error or a warning."""
    path = str(tmp_path / "model")
    _model().save(path)
    small = paddle.Model(nn.Sequential(nn.Linear(4, 8)))
    small.load(path)
    large = paddle.Model(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))
    says = r"2.weight receives a shape \[8, 2\], but the expected shape is \[8, 3\]"
    with pytest.raises(ValueError, match=says):
        large.load(path)
    with pytest.warns(UserWarning, match="Skip loading") as told:
        large.load(path, skip_mismatch=True)
    assert [str(each.message)[:26] for each in told] == ["Skip loading for 2.weight.", "Skip loading for 2.bias. 2"]
    np.testing.assert_array_equal(large.network[0].weight.numpy(), small.network[0].weight.numpy())


def test_an_optimizer_without_a_state_leaves_no_file(tmp_path):
    model = _model()
    model.prepare(paddle.optimizer.SGD(0.1, parameters=model.parameters()), nn.CrossEntropyLoss())
    model.save(str(tmp_path / "model"))
    assert [path.name for path in tmp_path.iterdir()] == ["model.pdparams"]
    with pytest.raises(ValueError, match="'input_size' is needed"):
        model.summary()


def test_small_figures_long_waits_and_wide_counts_are_written_as_paddles():
    assert [_number(x) for x in (0.25, 5e-4, np.float32(0), 7, np.int64(3))] == [
        "0.2500", "5.0000e-04", "0.0000e+00", "7", "3",
    ]  # fmt: skip
    assert [_remaining_text(x) for x in (60, 61, 3600, 3725)] == ["60s", "1:01", "60:00", "1:02:05"]
