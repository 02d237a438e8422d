"""Many random numbers of one kind, of which the distribution counts."""

from __future__ import annotations

from typing import Any

COUNT = 1 << 16
SIDE = 1 << 8


def drawn(paddle: Any, target: str, *args: Any, **kwargs: Any) -> Any:
    """``target(...)``: what it draws."""
    found = paddle
    for name in target.split("."):
        found = getattr(found, name)
    made = found(*args, **kwargs)
    made = made[0] if isinstance(made, (list, tuple)) else made
    return made if not made.is_complex() else made.real() + 2.0 * made.imag()


def filled(paddle: Any, method: str, *args: Any, dtype: str = "float32", **kwargs: Any) -> Any:
    """A tensor that the method of ``Tensor`` has filled with random numbers."""
    x = paddle.zeros([COUNT], dtype)
    getattr(x, method)(*args, **kwargs)
    return x


def by_parameter(paddle: Any, target: str, *levels: float, dtype: str = "float32") -> Any:
    """What ``target`` draws for tensors of parameters, each level repeated: one after another."""
    given = [paddle.full([COUNT], level, dtype) for level in levels]
    return drawn(paddle, target, *given)


def activated(paddle: Any, target: str, level: float, shape: list[int] | None = None, **kwargs: Any) -> Any:
    """A random function of ``nn.functional`` on equal elements."""
    x = paddle.full(shape or [COUNT], level)
    return getattr(paddle.nn.functional, target)(x, **kwargs)


def competing(paddle: Any, target: str, weights: list[float], *args: Any, **kwargs: Any) -> Any:
    """Categories drawn by weights, in rows."""
    rows = paddle.to_tensor([weights] * (COUNT // 8), dtype="float32")
    return drawn(paddle, target, rows, *args, **kwargs).astype("float32")


def softened(paddle: Any, **kwargs: Any) -> Any:
    """The first class of Gumbel-softmax."""
    rows = paddle.to_tensor([[0.2, 0.5, -0.3]] * COUNT, dtype="float32")
    return paddle.nn.functional.gumbel_softmax(rows, **kwargs)[:, 0]


def sampled_classes(paddle: Any) -> Any:
    """Classes that are sampled beside those of the labels."""
    label = paddle.to_tensor([3, 5, 3], dtype="int64")
    return paddle.nn.functional.class_center_sample(label, 4 * COUNT, COUNT)[1]


def new_parameter(paddle: Any, name: str, *args: Any, shape: list[int] | None = None, **kwargs: Any) -> Any:
    """A parameter that an initialiser has filled."""
    made = getattr(paddle.nn.initializer, name)(*args, **kwargs)
    return paddle.create_parameter(shape or [SIDE, SIDE], "float32", default_initializer=made).detach()


def layer_weight(paddle: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """The weight of a new layer."""
    layer = getattr(paddle.nn, name)(*args, **kwargs)
    return dict(layer.named_parameters())["weight" if hasattr(layer, "weight") else "weight_ih"].detach()


def activated_by(paddle: Any, target: str, level: float, *args: Any) -> Any:
    """A function of the framework that draws numbers in the shape of its operand."""
    return getattr(paddle, target)(paddle.full([COUNT], level), *args)
