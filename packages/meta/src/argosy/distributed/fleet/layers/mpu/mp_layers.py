"""Linear layers, embeddings and the cross entropy that Paddle splits over a group of ranks; here of one rank.

Every class raises NotImplementedError for a group of several, naming the annotations that split a whole layer.
"""

from __future__ import annotations

from typing import Any

from argosy.distributed.fleet.layers.mpu.mp_ops import check_alone
from argosy.distributed.group import Group
from argosy.nn import functional as F
from argosy.nn.initializer import Constant
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["ColumnParallelLinear", "ParallelCrossEntropy", "RowParallelLinear", "VocabParallelEmbedding"]


class _Whole(Layer):
    """A layer of which one rank has all."""

    is_mp = False
    world_size = 1
    rank = 0

    def _join(self, mp_group: Group | None) -> None:
        check_alone(type(self).__name__, mp_group)
        self.model_parallel_group = mp_group


class VocabParallelEmbedding(_Whole):
    """A table of ``num_embeddings`` rows, split by rows over ``mp_group``, which has one rank."""

    weight: Any

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        weight_attr: Any = None,
        mp_group: Group | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._join(mp_group)
        self.num_embeddings = self.origin_num_embeddings = num_embeddings
        self.vocab_start_index = 0
        self.weight = self.create_parameter([num_embeddings, embedding_dim], weight_attr)
        self.weight.is_distributed = False

    def forward(self, x: Tensor) -> Tensor:
        """Indices [...] to rows [..., embedding_dim]."""
        found: Tensor = F.embedding(x, self.weight)
        return found


class _Linear(_Whole):
    weight: Any
    bias: Any

    def _make(self, shape: list[int], weight_attr: Any, has_bias: bool | None) -> None:
        self.weight = self.create_parameter(shape, weight_attr)
        self.weight.is_distributed = False
        self.bias = None
        if has_bias:  # of zeros, as Megatron-LM begins
            self.bias = self.create_parameter(shape[1:], None, is_bias=True, default_initializer=Constant(0.0))
            self.bias.is_distributed = False

    def forward(self, x: Tensor) -> Tensor:
        """[..., in_features] to [..., out_features]."""
        result: Tensor = F.linear(x, self.weight, self.bias)
        return result


class ColumnParallelLinear(_Linear):
    """``x @ weight + bias``, split by columns over ``mp_group``, which has one rank; without a bias by default.

    ``gather_output`` and ``fuse_matmul_bias`` change no result there.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        has_bias: bool | None = None,
        gather_output: bool = True,
        fuse_matmul_bias: bool = False,
        mp_group: Group | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._join(mp_group)
        self.gather_output = gather_output
        self.output_size_per_partition = out_features
        self._make([in_features, out_features], weight_attr, has_bias)


class RowParallelLinear(_Linear):
    """``x @ weight + bias``, split by rows over ``mp_group``, which has one rank.

    ``input_is_parallel`` and ``fuse_matmul_bias`` change no result there.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        has_bias: bool = True,
        input_is_parallel: bool = False,
        fuse_matmul_bias: bool = False,
        mp_group: Group | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._join(mp_group)
        self.in_features, self.out_features = in_features, out_features
        self.input_is_parallel = input_is_parallel
        self.input_size_per_partition = in_features
        self._make([in_features, out_features], weight_attr, has_bias)


class ParallelCrossEntropy(_Whole):
    """Cross entropy of logits whose classes are split over ``mp_group``, which has one rank; not reduced."""

    def __init__(self, mp_group: Group | None = None, name: str | None = None, ignore_index: int = -100) -> None:
        super().__init__()
        self._join(mp_group)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """Logits [..., classes] and labels [...] or [..., 1] to losses [..., 1]; 0 where the label is
        ``ignore_index``."""
        labels = label.unsqueeze(-1) if label.ndim == input.ndim - 1 else label
        losses: Tensor = F.softmax_with_cross_entropy(input, labels, ignore_index=self.ignore_index)
        return losses
