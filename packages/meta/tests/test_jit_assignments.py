"""Captured layers whose forward assigns tensors: gradients, values and attributes are those of eager execution."""

import numpy as np
import pytest

import argosy as paddle
from argosy import nn
from argosy.nn import functional as F

WAYS = [True, False]


class Kept(nn.Layer):
    """A linear layer that keeps something of its forward pass as an attribute, which was ``first`` before."""

    def __init__(self, keep, first=None):
        super().__init__()
        self.linear, self.keep, self.kept = nn.Linear(3, 3), keep, first

    def forward(self, x):
        y = self.linear(x)
        before = self.kept
        self.kept = self.keep(self, y, before)
        return y if before is None else y + before.sum()


class Fresh(nn.Layer):
    """One whose attribute is there after the first call only."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        self.kept = (self.linear.weight**2).sum()
        return self.linear(x)


class Shared(nn.Layer):
    """Two layers with one weight, and the weight of a third computed of it."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight
        del self.c.weight
        self.c.weight = self.a.weight * 2.0

    def forward(self, x):
        self.c.weight = self.a.weight * self.b.weight
        return self.c(self.b(F.tanh(self.a(x))))


class Clipped(nn.Layer):
    """One that writes its parameter before it reads it."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        with paddle.no_grad():
            self.linear.weight.set_value(self.linear.weight.clip(-0.2, 0.2))
        return self.linear(x)


def _hooked():
    layer = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    layer[0].register_forward_pre_hook(lambda sub, inputs: setattr(layer[1], "bias_of_hook", inputs[0].mean()))
    layer[1].register_forward_post_hook(lambda sub, inputs, output: output * sub.bias_of_hook)
    return layer


LAYERS = {
    "weight_norm": lambda: nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 3)), nn.Linear(3, 1)),
    "weight_norm_of_convolutions": lambda: nn.Sequential(
        nn.Unflatten(1, [1, 3]), nn.utils.weight_norm(nn.Conv1D(1, 2, 2), dim=None), nn.Flatten(), nn.Linear(4, 2)
    ),
    "spectral_norm": lambda: nn.Sequential(nn.utils.spectral_norm(nn.Linear(3, 3)), nn.Linear(3, 1)),
    "both_twice": lambda: nn.Sequential(
        nn.utils.weight_norm(nn.Linear(3, 3)),
        nn.utils.spectral_norm(nn.Linear(3, 3)),
        nn.utils.weight_norm(nn.Linear(3, 2)),
    ),
    "hooks": _hooked,
    "shared": Shared,
    "fresh": Fresh,
    "penalty": lambda: Kept(lambda self, y, _: (self.linear.weight**2).sum()),
    "penalty_of_zeros": lambda: Kept(lambda self, y, _: (self.linear.weight**2).sum(), paddle.zeros([])),
    "hidden": lambda: Kept(lambda self, y, before: F.tanh(y).mean() * 0.1, paddle.zeros([])),
    "running_mean": lambda: Kept(lambda self, y, mean: 0.9 * mean + 0.1 * y.detach().mean(0), paddle.zeros([3])),
    "growing": lambda: Kept(lambda self, y, before: y[: min(len(before) + 1, 4)].detach(), paddle.zeros([1, 3])),
}  # fmt: skip


def _run(layer, f, calls):
    """Losses, gradients and the attribute of some calls; what was kept is part of the loss."""
    made = []
    for i in range(calls):
        x = paddle.to_tensor(np.linspace(-1, 1 + i, 12, dtype=np.float32).reshape(4, 3))
        loss = f(x).square().mean()
        kept = getattr(layer, "kept", None)
        if kept is not None:
            loss = loss + kept.sum()
            layer.kept = kept.detach()  # as one does between windows of a sequence
        loss.backward()
        made.append(loss.numpy())
        made += [np.zeros(0) if p.grad is None else p.grad.numpy() for p in layer.parameters()]
        made += [b.numpy() for _, b in layer.named_buffers()]
        with paddle.no_grad():
            for p in layer.parameters():
                if p.grad is not None:
                    p.set_value(p - 0.1 * p.grad)
        layer.clear_gradients(False)
    return made


@pytest.mark.parametrize("full_graph", WAYS)
@pytest.mark.parametrize("name", LAYERS)
def test_a_captured_layer_has_every_gradient_that_the_eager_one_has(name, full_graph):
    """Four steps of training give the losses, gradients (None included), weights and buffers of eager execution."""
    made = []
    for capture in (False, True):
        paddle.seed(3)
        layer = LAYERS[name]()
        f = layer
        if capture:
            f = paddle.jit.to_static(layer, backend=None, full_graph=full_graph)
        made.append(_run(layer, f, 4))
    assert [x.shape for x in made[1]] == [x.shape for x in made[0]]
    for found, expected in zip(*reversed(made), strict=True):
        scale = np.abs(expected).max(initial=1e-3)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize("full_graph", WAYS)
@pytest.mark.parametrize("wrap", [nn.utils.weight_norm, nn.utils.spectral_norm])
def test_a_normalised_sublayer_trains_with_few_programs(wrap, full_graph):
    """A weight that a hook computes anew costs no capture for each call, trained outside or in one whole step."""
    model = nn.Sequential(wrap(nn.Linear(4, 3)), nn.Linear(3, 1))
    optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
    f = paddle.jit.to_static(lambda x: model(x).square().mean(), full_graph=full_graph)

    def step(x):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    whole = paddle.jit.to_static(step, full_graph=full_graph)
    with paddle.jit.count_compiles() as compiles:
        for _ in range(6):
            loss = f(paddle.ones([2, 4]))
            assert not loss.stop_gradient
            loss.backward()
            assert all(p.grad is not None for p in model.parameters())
            optimizer.step()
            optimizer.clear_grad()
        losses = [float(whole(paddle.ones([2, 4]))) for _ in range(6)]
    assert compiles.value <= 4
    assert len(set(losses)) == 6
    assert model[0].weight.shape == [4, 3]


@pytest.mark.parametrize("full_graph", WAYS)
def test_calls_before_one_backward_are_differentiated_through_what_they_hand_on(full_graph):
    """A hidden state that calls read and replace carries gradients from call to call; so does a closure's variable."""
    made = []
    for capture in (False, True):
        paddle.seed(5)
        layer = Kept(lambda self, y, before: F.tanh(y + before), paddle.zeros([2, 3]))
        total = paddle.zeros([])

        def f(x, layer=layer):
            nonlocal total
            y = layer(x)
            total = total + y.square().mean()
            return y

        run = paddle.jit.to_static(f, full_graph=full_graph) if capture else f
        gradients = []
        for _ in range(3):
            for i in range(3):
                run(paddle.full([2, 3], 0.1 * i))
            total.backward()
            gradients += [p.grad.numpy() for p in layer.parameters()]
            layer.clear_gradients(False)
            layer.kept, total = layer.kept.detach(), paddle.zeros([])
        made.append(gradients)
    for found, expected in zip(*reversed(made), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("full_graph", WAYS)
def test_a_layer_that_writes_its_weights_trains(full_graph):
    """A forward function that writes a parameter before it reads it runs operator by operator, and says so."""
    made = []
    for capture in (False, True):
        paddle.seed(3)
        layer = Clipped()
        if not capture:
            made.append(_run(layer, layer, 3))
            continue
        with pytest.warns(UserWarning, match="writes to its arguments or parameters"):
            made.append(_run(layer, paddle.jit.to_static(layer, full_graph=full_graph), 3))
    for found, expected in zip(*reversed(made), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_results_that_read_different_things_keep_their_histories_apart():
    """Going back from one result frees nothing of another's history and gives gradients to what it reads alone."""
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    f = paddle.jit.to_static(lambda x: (a(x).sum(), b(x).sum()), full_graph=True)
    first, _ = f(paddle.ones([1, 2]))
    first.backward()
    assert a.weight.grad is not None
    assert b.weight.grad is None


def test_an_exported_layer_keeps_its_computed_weight(tmp_path):
    """jit.save leaves no traced tensor behind where a hook computes a weight."""
    layer = nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 3)))
    paddle.jit.save(layer, str(tmp_path / "m"), [paddle.static.InputSpec([None, 3])])
    assert np.isfinite(layer[0].weight.numpy()).all()
    x = paddle.ones([2, 3])
    np.testing.assert_allclose(paddle.jit.load(str(tmp_path / "m"))(x).numpy(), layer(x).numpy(), rtol=1e-5)
