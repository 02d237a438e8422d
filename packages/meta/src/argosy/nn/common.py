"""Linear, Embedding, Flatten, Identity."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import TensorLike, validate_call
from argosy.nn import functional as F
from argosy.nn.initializer import Assign
from argosy.nn.layer import Layer
from argosy.nn.lazy import on_initialization
from argosy_autograd.modes import no_grad
from argosy_tensorcore.tensor import Tensor

__all__ = ["Embedding", "Flatten", "Identity", "Linear"]


class _Size:
    """A size that a layer was made with. Libraries put a property of that name into the class, or a value into the
    layer, in its place: neither is in the way, as the layer itself holds the size under another name."""

    __slots__ = ("_name",)

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = "_" + name

    def __get__(self, layer: Any, owner: type) -> Any:
        return self if layer is None else getattr(layer, self._name)


class Linear(Layer):
    """``x @ weight + bias`` with weight [in_features, out_features] and bias [out_features].

    x: [..., in_features]; result: [..., out_features].
    """

    weight: Any
    bias: Any
    in_features, out_features = _Size(), _Size()

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._in_features, self._out_features = in_features, out_features
        self._weight_attr, self._bias_attr, self.name = weight_attr, bias_attr, name
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        """The affine map."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes and dtype."""
        return f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._dtype}"


class Embedding(Layer):
    """Rows of a table ``weight`` [num_embeddings, embedding_dim] by integer ids.

    x: [...] of integers; result: [..., embedding_dim]. The row of ``padding_idx`` starts at zero and gets no gradient.
    Gradients are dense; ``sparse`` tells ``Adam(lazy_mode=True)`` to leave rows alone that get none.
    """

    weight: Any

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        *,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype or "float32")
        self._device = device
        for argument, size in (("num_embeddings", num_embeddings), ("embedding_dim", embedding_dim)):
            if size < 1:
                raise ValueError(f"Embedding(): argument {argument!r} should be positive, got {size}")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"Embedding: padding_idx {padding_idx} is not in [-{num_embeddings}, {num_embeddings})")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self._size = [num_embeddings, embedding_dim]
        self._num_embeddings, self._embedding_dim = num_embeddings, embedding_dim
        self._max_norm, self._norm_type = max_norm, norm_type
        self._sparse, self._scale_grad_by_freq = sparse, scale_grad_by_freq
        self._padding_idx = padding_idx if padding_idx is None or padding_idx >= 0 else padding_idx + num_embeddings
        if _weight is not None and list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise ValueError(
                f"Embedding: _weight has shape {list(_weight.shape)}, not [{num_embeddings}, {embedding_dim}]"
            )
        start = None if _weight is None else Assign(_weight)
        self._weight_attr, self._name, self._is_distributed, self._remote_prefetch = weight_attr, name, False, False
        self.weight = self.create_parameter([num_embeddings, embedding_dim], start or weight_attr)
        if self._padding_idx is not None and self.weight is not None and _weight is None:
            on_initialization(self.weight, self._clear_padding)
        if _freeze and self.weight is not None:
            self.weight.stop_gradient = True
        if sparse and self.weight is not None:
            self.weight.__dict__["sparse_gradient"] = True

    def _clear_padding(self, weight: Tensor) -> None:
        with no_grad():
            weight[self._padding_idx] = 0

    @property
    def padding_idx(self) -> int | None:
        """The row without gradient, counted from the front."""
        return self._padding_idx

    def forward(self, x: Tensor) -> Tensor:
        """The rows."""
        options = (self._max_norm, self._norm_type, self._sparse, self._scale_grad_by_freq)
        return F.embedding(x, self.weight, self.padding_idx, *options)

    def extra_repr(self) -> str:
        """Sizes and padding index."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        flags = f"sparse={self._sparse}, scale_grad_by_freq={self._scale_grad_by_freq}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}, {flags}"


class Flatten(Layer):
    """Merge the axes from ``start_axis`` to ``stop_axis`` into one."""

    def __init__(self, start_axis: int = 1, stop_axis: int = -1) -> None:
        super().__init__()
        self.start_axis, self.stop_axis = start_axis, stop_axis

    @validate_call
    def forward(self, input: Tensor) -> Tensor:
        """The flattened input."""
        return input.flatten(self.start_axis, self.stop_axis)


class Identity(Layer):
    """Gives back its input; arguments of the constructor are ignored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: TensorLike) -> Any:
        """The input."""
        return input
