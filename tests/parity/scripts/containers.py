"""Layers' members: how they hold, name and change their parts."""

from __future__ import annotations

from typing import Any

import numpy as np


def dictionary(paddle: Any) -> Any:
    """A dictionary of layers, changed."""
    nn = paddle.nn
    layers = nn.LayerDict({"a": nn.Linear(2, 3), "b": nn.ReLU()})
    layers.update([("c", nn.Tanh())])
    popped = layers.pop("b")
    names = [*layers.keys(), *(type(v).__name__ for v in layers.values()), *(k for k, _ in layers.items())]
    layers.clear()
    return [*names, type(popped).__name__, len(layers)]


def parameter_containers(paddle: Any) -> Any:
    """A list and a dictionary of parameters name them by place and by key."""
    nn = paddle.nn
    made = [paddle.create_parameter([n, 2], "float32") for n in (1, 2, 3)]
    listed = nn.ParameterList(made[:2])
    listed.append(made[2])
    named = nn.ParameterDict({"x": made[0]})
    named.update({"y": made[1]})
    shapes = [f"{n}{list(p.shape)}" for layer in (listed, named) for n, p in layer.named_parameters()]
    return [*shapes, len(listed), len(named), list(listed[1].shape), list(named["y"].shape)]


def members_of_layer(paddle: Any) -> Any:
    """Parts found, counted and renamed by the methods in torch's manner, too."""
    model = paddle.nn.Sequential(paddle.nn.Linear(2, 3), paddle.nn.ReLU())
    model[1].register_buffer("mean", paddle.zeros([3]))
    names = [name for name, _ in model.named_modules()]
    kinds = [type(layer).__name__ for layer in model.modules()]
    weight, mean = model.get_parameter("0.weight"), model.get_buffer("1.mean")
    model.requires_grad_(False)
    frozen = [p.stop_gradient for p in model.parameters()]
    model.requires_grad_()
    model[0].register_parameter("extra", paddle.create_parameter([4], "float32"))
    static = sorted(model.to_static_state_dict())
    return [*names, *kinds, weight.shape, mean.shape, *frozen, *static, list(model[0].extra.shape)]


def gradients_cleared(paddle: Any, x: Any) -> Any:
    """Gradients of a layer set to zero, and taken away."""
    layer = paddle.nn.Linear(3, 2)
    layer(x.detach()).sum().backward()
    layer.clear_gradients()
    zeros = layer.bias.grad.numpy().copy()
    layer.zero_grad()
    return [zeros, layer.bias.grad is None]


def converted(paddle: Any, how: str) -> Any:
    """Floating parameters in another dtype."""
    layer = getattr(paddle.nn.Linear(2, 3), how)()
    return [str(p.dtype) for p in layer.parameters()]


def assigned_tensor(paddle: Any) -> Any:
    """A tensor set as an attribute is a buffer that is not saved."""
    layer = paddle.nn.Linear(2, 3)
    layer.scale = paddle.ones([3])
    layer.register_buffer("kept", paddle.zeros([2]))
    return [*(n for n, _ in layer.named_buffers()), *layer.state_dict(), layer.scale]


def states_of_cells(paddle: Any) -> Any:
    """Shapes and dtypes of the states that a cell asks for."""
    nn = paddle.nn

    class Cell(nn.RNNCellBase):  # type: ignore[misc, name-defined]
        @property
        def state_shape(self) -> Any:
            return (4,)

        @property
        def state_dtype(self) -> Any:
            return "float64"

    made = Cell().get_initial_states(paddle.zeros([2, 3]), (4,))
    own = Cell().get_initial_states(paddle.zeros([2, 3]), (4,), "float64")
    return [made.shape, str(made.dtype), str(own.dtype), list(nn.GRUCell(3, 5).state_shape)]


def recurrent_list(paddle: Any) -> Any:
    """A recurrent network holds the layers of its levels as a list does."""
    network = paddle.nn.SimpleRNN(3, 4, 2)
    network.flatten_parameters()
    kind = type(network[0]).__name__
    network.insert(0, network[1])
    popped = network.pop(0)
    return [kind, type(popped).__name__, len(network)]


def initialised_later(paddle: Any) -> Any:
    """A parameter made under the guard is filled when asked to."""
    with paddle.LazyGuard():
        layer = paddle.nn.Linear(2, 3, weight_attr=paddle.nn.initializer.Constant(0.25))
    for parameter in layer.parameters():
        parameter.initialize()
    layer.weight.trainable = False
    return [layer.weight, layer.bias, layer.weight.stop_gradient, layer.weight.trainable]


def caches(paddle: Any, x: Any) -> Any:
    """An encoder with a cache, one token at a time."""
    layer = paddle.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    encoder = paddle.nn.TransformerEncoder(layer, 2)
    for i, parameter in enumerate(encoder.parameters()):
        values = np.sin(np.arange(int(np.prod(parameter.shape))) * 0.7 + i) * 0.3
        parameter.set_value(paddle.to_tensor(values.reshape(list(parameter.shape)).astype("float32")))
    encoder.eval()
    cache = encoder.gen_cache(x.detach())
    outputs = []
    for step in range(x.shape[1]):
        y, cache = encoder(x.detach()[:, step : step + 1], None, cache)
        outputs.append(y.detach())
    single, first = layer(x.detach()[:, :1], None, layer.gen_cache(x.detach()))
    return [*outputs, single.shape, first.k.shape, len(cache)]


def shown(paddle: Any, target: str, *args: Any, **kwargs: Any) -> Any:
    """What a layer says about its settings."""
    return getattr(paddle.nn, target)(*args, **kwargs).extra_repr()
