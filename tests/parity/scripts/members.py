"""Members of tensors that only make sense beside other lines."""

from __future__ import annotations

from typing import Any

import numpy as np


def hooked(paddle: Any, x: Any) -> Any:
    """A hook changes the gradient that goes on; a removed one does not."""
    y = x * 2.0
    handle = y.register_hook(lambda gradient: gradient * 3.0)
    y.sum().backward()
    first = x.gradient()
    handle.remove()
    x.clear_grad()
    (x * 2.0).sum().backward()
    return [first, x.gradient()]


def retained(paddle: Any, x: Any) -> Any:
    """Gradients of intermediate tensors are kept where asked for; a tensor without one keeps none."""
    y, z = x * 2.0, x.detach()
    y.retain_grads()
    z.retain_grads()
    (y * y).sum().backward()
    found = [y.grad.detach(), x.grad.detach(), y.grad_.detach(), z.grad]
    x.clear_gradient()
    zeros = x.grad.detach()
    x.clear_grad()
    return [*found, zeros, x.grad]


def node_of(paddle: Any, x: Any) -> Any:
    """Whether a computed tensor knows what made it, and one cut off in place does not want gradients."""
    y = x * 1.0
    known = y.grad_fn is not None
    y.detach_()
    return [known, y.stop_gradient, y.is_leaf, y.requires_grad]


def wanted(paddle: Any, x: Any) -> Any:
    """``requires_grad`` is the opposite of ``stop_gradient``, and can be written."""
    y = x.detach()
    states = [y.requires_grad]
    y.requires_grad_()
    states += [y.requires_grad, y.stop_gradient]
    y.requires_grad = False
    states += [y.stop_gradient, y.requires_grad_(True).stop_gradient, y.requires_grad_(False).stop_gradient]
    return states


def applied(paddle: Any, x: Any) -> Any:
    """A function of all elements, apart and in place."""
    y = x.detach()
    z = y.apply(lambda v: v * 2.0 + 1.0)
    y.apply_(lambda v: v - 1.0)
    return [z, y]


def addresses(paddle: Any, x: Any) -> Any:
    """Views start where their first element lies."""
    base = x.detach()
    part = base[1:]
    return [part.data_ptr() - base.data_ptr(), part.offset, base[1, 1].offset, base.offset]


def reset(paddle: Any, x: Any, shape: list[int] | None = None, stride: list[int] | None = None, offset: int = 0) -> Any:
    """A tensor that shows another's memory."""
    y = paddle.zeros([2])
    y.set_(x.detach(), shape, stride, offset)
    return [y, y.get_strides(), paddle.zeros([2]).set_()]


def resized(paddle: Any, x: Any, shape: list[int], fill: bool) -> Any:
    """A tensor cut or continued in place."""
    y = x.detach().clone()
    y.resize_(shape, fill_zero=fill)
    return y


def replaced(paddle: Any, x: Any, other: Any) -> Any:
    """Elements taken over by five ways of writing, and what the tensor is afterwards."""
    a, b, c, d = (paddle.assign(x.detach()) for _ in range(4))
    a.copy_(other.detach(), True)
    b.set_value(other.detach())
    c.data = other.detach()
    d.reconstruct_from_(other.detach())
    e = x.detach() * 1.0
    e.value().set_value(other.detach())
    return [a, b, c, d, e, d.stop_gradient, np.asarray(a.get_tensor())]


def versions(paddle: Any, x: Any) -> Any:
    """In-place writes are counted, also through views."""
    y = x.detach().clone()
    counts = [y.inplace_version]
    y.add_(paddle.ones([1]))
    counts.append(y.inplace_version)
    y[0].zero_()
    return [*counts, y.inplace_version, y]


def kinds(paddle: Any, x: Any) -> Any:
    """What a dense tensor says that it is."""
    asked = ("is_dense", "is_dist", "is_selected_rows", "is_sparse", "is_sparse_coo", "is_sparse_csr")
    answers = [getattr(x, name)() for name in asked]
    return [*answers, x.is_same_shape(x.T), x.is_same_shape(x + 1.0), x.get_device(), x.dense_dim(), x.sparse_dim()]


def number_formats(paddle: Any, x: Any) -> Any:
    """A tensor without axes is formatted as its number."""
    whole = paddle.to_tensor(3)
    return [f"{x.sum().detach():.3f}", f"{whole}", f"{whole:04d}", f"{paddle.to_tensor(2.5)}", f"{x.detach()[0, :1]}"]


def created(paddle: Any, dtype: str) -> Any:
    """A tensor to be filled later."""
    made = paddle.Tensor.create_tensor(dtype)
    return [str(made.dtype), str(paddle.tensor.create_tensor(dtype).dtype)]


def vector_element(paddle: Any, x: Any) -> Any:
    """One element of a vector is a view: what is written to it, the vector shows."""
    vector = x.detach().flatten()
    vector[1].add_(paddle.to_tensor(10.0))
    vector[-1].zero_()
    return vector


def overwritten(paddle: Any, x: Any, function: str, **kwargs: Any) -> Any:
    """Functions of ``nn.functional`` that write their result over the input where asked to."""
    y = x.detach() * 1.0
    z = getattr(paddle.nn.functional, function)(y, inplace=True, **kwargs)
    return [z is y, y]


def minimised(paddle: Any, x: Any) -> Any:
    """``minimize`` takes the gradients that are there; ``backward`` of an optimizer only shows them."""
    layer = paddle.nn.Linear(3, 2, weight_attr=paddle.nn.initializer.Constant(0.5))
    optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
    loss = layer(x.detach()).square().mean()
    before = len(optimizer.backward(loss))
    loss.backward()
    operators, pairs = optimizer.minimize(loss)
    return [before, len(pairs), operators, *(p.detach() for p in layer.parameters())]
