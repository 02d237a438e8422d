"""Networks, parameters, schedules and optimizers in a few lines each."""

from __future__ import annotations

from typing import Any

import numpy as np


def _fill(paddle: Any, layer: Any) -> None:
    """Give every parameter of ``layer`` numbers that depend on its place alone."""
    for i, parameter in enumerate(layer.parameters()):
        count = int(np.prod(parameter.shape))
        values = np.sin(np.arange(count) * 0.7 + i).reshape(list(parameter.shape)).astype("float32")
        parameter.set_value(paddle.to_tensor(values))


# Recurrent networks


def own_cell(paddle: Any, x: Any, lengths: list[int] | None = None) -> Any:
    """A cell of the user's with a nest of states, along time."""

    class Cell(paddle.nn.RNNCellBase):  # type: ignore[misc, name-defined]
        def forward(self, inputs: Any, states: Any) -> Any:
            total = states["total"] + inputs
            return paddle.tanh(total), {"total": total, "last": [inputs]}

    states = {"total": paddle.zeros([2, 3]), "last": [paddle.zeros([2, 3])]}
    length = None if lengths is None else paddle.to_tensor(lengths)
    outputs, last = paddle.nn.RNN(Cell())(x, states, length)
    return [outputs, last["total"], last["last"]]


def beam_search(
    paddle: Any, h: Any, embedding: Any, projection: Any, steps: int, end: int = 1, time_major: bool = False
) -> Any:
    """Beam search over a GRU cell."""
    cell = paddle.nn.GRUCell(4, 4)
    _fill(paddle, cell)
    decoder = paddle.nn.BeamSearchDecoder(
        cell,
        0,
        end,
        3,
        lambda ids: paddle.nn.functional.embedding(ids, embedding),
        lambda y: paddle.matmul(y, projection),
    )
    ids, states, lengths = paddle.nn.dynamic_decode(
        decoder, h.detach(), steps, output_time_major=time_major, return_length=True
    )
    return [ids, states.log_probs.detach(), states.finished, lengths]


def greedy(paddle: Any, h: Any, embedding: Any, projection: Any, impute: bool) -> Any:
    """A decoder of the user's that takes the best token."""
    cell = paddle.nn.GRUCell(4, 4)
    _fill(paddle, cell)

    class Greedy(paddle.nn.decode.Decoder):  # type: ignore[misc, name-defined]
        def initialize(self, inits: Any) -> Any:
            tokens = paddle.zeros([3], "int64")
            return paddle.nn.functional.embedding(tokens, embedding), inits, tokens > 0

        def step(self, time: Any, inputs: Any, states: Any, **kwargs: Any) -> Any:
            outputs, states = cell(inputs, states)
            tokens = paddle.argmax(paddle.matmul(outputs, projection), -1)
            return tokens, states, paddle.nn.functional.embedding(tokens, embedding), tokens == 1

    tokens, states, lengths = paddle.nn.dynamic_decode(
        Greedy(), h.detach(), 4, impute_finished=impute, return_length=True
    )
    return [tokens, states.detach(), lengths]


# Parameters and layers


def _layer(paddle: Any, target: str, *args: Any, **kwargs: Any) -> Any:
    made = paddle
    for name in target.split("."):
        made = getattr(made, name)
    made = made(*args, **kwargs)
    _fill(paddle, made)
    return made


def normalised_weight(paddle: Any, x: Any, target: str, args: tuple[Any, ...], dim: Any) -> Any:
    """A layer with weight normalisation: output, parts' names, and the weight put back."""
    layer = _layer(paddle, target, *args)
    paddle.nn.utils.weight_norm(layer, dim=dim)
    y = layer(x)
    names = [f"{name}{list(p.shape)}" for name, p in layer.named_parameters()]
    g = layer.weight_g * 1.0
    paddle.nn.utils.remove_weight_norm(layer)
    return [y, g, *names, layer.weight, *[name for name, _ in layer.named_parameters()]]


def spectral(paddle: Any, x: Any, target: str, args: tuple[Any, ...], training: bool) -> Any:
    """A layer with spectral normalisation, from fixed vectors."""
    layer = _layer(paddle, target, *args)
    paddle.nn.utils.spectral_norm(layer, n_power_iterations=3)
    for name in ("weight_u", "weight_v"):
        buffer = getattr(layer, name)
        values = np.cos(np.arange(buffer.shape[0]) + len(name)).astype("float32")
        buffer.set_value(paddle.to_tensor(values / np.linalg.norm(values)))
    (layer.train if training else layer.eval)()
    y = layer(x)
    names = [f"{name}{list(p.shape)}" for name, p in layer.named_parameters()]
    return [y, layer.weight_u, layer.weight_v, *names, *layer.state_dict()]


def initialised(paddle: Any, target: str, shape: list[int], **kwargs: Any) -> Any:
    """A parameter filled by an initializer without randomness."""
    made = getattr(paddle.nn.initializer, target)(**kwargs)
    return paddle.create_parameter(shape, "float32", default_initializer=made).detach()


def orthogonal(paddle: Any, shape: list[int], gain: float) -> Any:
    """What an orthogonal matrix times its transpose is."""
    made = paddle.create_parameter(shape, "float32", default_initializer=paddle.nn.initializer.Orthogonal(gain))
    matrix = made.detach().reshape([shape[0], -1])
    product = matrix @ matrix.t() if matrix.shape[0] <= matrix.shape[1] else matrix.t() @ matrix
    return paddle.round(product * 1000.0)


def vectors(paddle: Any, x: Any) -> Any:
    """Parameters as a vector, and changed through it."""
    layer = _layer(paddle, "nn.Linear", 3, 2)
    vector = paddle.nn.utils.parameters_to_vector(layer.parameters())
    paddle.nn.utils.vector_to_parameters(vector * 2.0, layer.parameters())
    return [vector, layer(x)]


def clipped(paddle: Any, x: Any, how: str, *args: Any) -> Any:
    """Gradients clipped in place."""
    layer = _layer(paddle, "nn.Linear", 3, 2)
    layer(x.detach()).sum().backward()
    total = getattr(paddle.nn.utils, how)(layer.parameters(), *args)
    return [total, *(p.grad for p in layer.parameters())]


def regularised(paddle: Any, x: Any, name: str) -> Any:
    """Steps with a penalty for the optimizer and another for one parameter."""
    kind = getattr(paddle.regularizer, name)
    layer = paddle.nn.Linear(3, 2, bias_attr=paddle.ParamAttr(regularizer=paddle.regularizer.L2Decay(0.3)))
    _fill(paddle, layer)
    optimizer = paddle.optimizer.Momentum(0.1, parameters=layer.parameters(), weight_decay=kind(0.2))
    for _ in range(3):
        layer(x.detach()).square().mean().backward()
        optimizer.step()
        optimizer.clear_grad()
    return [p.detach() for p in layer.parameters()]


def old_batch_norm(paddle: Any, x: Any, training: bool, **kwargs: Any) -> Any:
    """BatchNorm in its older form, called twice."""
    layer = _layer(paddle, "nn.BatchNorm", 3, **kwargs)
    layer._variance.set_value(paddle.to_tensor(np.array([0.5, 1.0, 2.0], "float32")))
    (layer.train if training else layer.eval)()
    layer(x)
    return [layer(x), layer._mean.detach(), layer._variance.detach(), *layer.state_dict()]


def sequential(paddle: Any, x: Any) -> Any:
    """Containers changed in place."""
    layer = paddle.nn.Sequential(paddle.nn.ReLU())
    layer.append(paddle.nn.Tanh()).extend([paddle.nn.Sigmoid()])
    layer.insert(1, paddle.nn.Softplus())
    held = paddle.nn.LayerList([paddle.nn.ReLU(), paddle.nn.Tanh(), paddle.nn.Sigmoid()])
    taken = held.pop(1)
    return [layer(x), taken(x), held[1](x), *[name for name, _ in layer.named_children()], str(len(held))]


def sublayers(paddle: Any, x: Any) -> Any:
    """A layer put in the place of another, by its dotted name."""
    layer = paddle.nn.Sequential(paddle.nn.Sequential(paddle.nn.ReLU()), paddle.nn.Tanh())
    layer.set_sublayer("0.0", paddle.nn.Sigmoid())
    layer.add_module("last", paddle.nn.Softplus())
    return layer(x)


def synchronised(paddle: Any) -> Any:
    """Batch normalisations converted to the synchronised kind on one rank."""
    layer = paddle.nn.Sequential(paddle.nn.Conv2D(3, 3, 1), paddle.nn.BatchNorm2D(3))
    _fill(paddle, layer[0])
    made = paddle.nn.SyncBatchNorm.convert_sync_batchnorm(layer)
    return [type(made[1]).__name__, *made.state_dict(), str(made[1].weight is layer[1].weight)]


def adaptive_softmax(paddle: Any, x: Any, label: Any) -> Any:
    """The layer of adaptive softmax: log-probabilities of labels, of all classes, and predictions."""
    layer = paddle.nn.AdaptiveLogSoftmaxWithLoss(6, 8, [3, 5], div_value=2.0, head_bias=True)
    weights = [layer.head_weight, layer.head_bias, *(w for pair in layer.tail_weights for w in pair)]
    for i, parameter in enumerate(weights):
        count = int(np.prod(parameter.shape))
        values = np.sin(np.arange(count) * 0.7 + i).reshape(list(parameter.shape)).astype("float32")
        parameter.set_value(paddle.to_tensor(values))
    output, loss = layer(x, label)
    return [output, loss, layer.log_prob(x).detach(), layer.predict(x).astype("int64")]


def rosenbrock(paddle: Any, start: list[float], steps: int, **settings: Any) -> Any:
    """LBFGS in the banana valley: losses at the start of each step, and where it ends."""
    w = paddle.create_parameter([2], "float64")
    w.set_value(paddle.to_tensor(np.array(start)))
    optimizer = paddle.optimizer.LBFGS(parameters=[w], **settings)

    def closure() -> Any:
        optimizer.clear_grad()
        loss = (1.0 - w[0]) ** 2 + 10.0 * (w[1] - w[0] ** 2) ** 2
        loss.backward()
        return loss

    losses = [float(optimizer.step(closure)) for _ in range(steps)]
    return [paddle.to_tensor(np.round(np.array(losses), 6)), w.detach()]


def moving_valley(paddle: Any, steps: int, **settings: Any) -> Any:
    """LBFGS on least squares whose data change from step to step: losses at the start of each, and where it ends."""
    w = paddle.create_parameter([3], "float64")
    w.set_value(paddle.to_tensor(np.zeros(3)))
    optimizer = paddle.optimizer.LBFGS(parameters=[w], **settings)
    losses = []
    for step in range(steps):
        x = paddle.to_tensor(np.sin(np.arange(12.0).reshape(4, 3) * (1.3 + step)))
        y = paddle.to_tensor(np.cos(np.arange(4.0) + step))

        def closure(x: Any = x, y: Any = y) -> Any:
            optimizer.clear_grad()
            loss = ((paddle.matmul(x, w) - y) ** 2).mean()
            loss.backward()
            return loss

        losses.append(float(optimizer.step(closure)))
    return [paddle.to_tensor(np.round(np.array(losses), 6)), w.detach()]
