"""Linear layers, embeddings and the cross entropy split over the ranks of a group (Shoeybi et al., 2019).

Each rank makes and holds its part; the group is that of model parallelism of ``fleet.init`` unless one is given.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from argosy.distributed.fleet.base.topology import model_parallel_group
from argosy.distributed.fleet.layers.mpu.mp_ops import (
    _c_concat,
    _c_identity,
    _c_lookup_table,
    _c_softmax_with_cross_entropy,
    _c_split,
    _mp_allreduce,
)
from argosy.distributed.fleet.layers.mpu.random import MODEL_PARALLEL_RNG, get_rng_state_tracker
from argosy.distributed.group import Group
from argosy.nn import functional as F
from argosy.nn.initializer import Constant
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["ColumnParallelLinear", "ParallelCrossEntropy", "RowParallelLinear", "VocabParallelEmbedding"]


class _Part(Layer):
    """A layer of which this rank has the part number ``rank`` of ``world_size``."""

    def _join(self, mp_group: Group | None) -> None:
        self.model_parallel_group = model_parallel_group() if mp_group is None else mp_group
        group = self.model_parallel_group
        self.world_size, self.rank = (1, 0) if group is None else (group.nranks, group.rank)
        self.is_mp = self.world_size > 1

    def _share(self, size: int, what: str) -> int:
        """The size of a part. Raises ValueError where parts are not equal."""
        if size % self.world_size:
            raise ValueError(
                f"{type(self).__name__}: {what} of {size} does not divide into the parts of {self.world_size} ranks"
            )
        return size // self.world_size

    def _random_state(self) -> AbstractContextManager[None]:
        """The state from which a rank draws its part, if there is one by the name that Paddle has."""
        tracker = get_rng_state_tracker()
        apart = self.is_mp and MODEL_PARALLEL_RNG in tracker.states_
        return tracker.rng_state() if apart else nullcontext()

    def _make_parameter(self, shape: list[int], attr: Any, distributed: bool, split_axis: int = 0) -> Any:
        with self._random_state():
            parameter: Any = self.create_parameter(shape, attr)
        parameter.is_distributed = self.is_mp and distributed
        if parameter.is_distributed:
            parameter.split_axis = split_axis
        return parameter

    def _zeros(self, size: int, distributed: bool) -> Any:
        bias: Any = self.create_parameter([size], None, is_bias=True, default_initializer=Constant(0.0))
        bias.is_distributed = self.is_mp and distributed
        if bias.is_distributed:
            bias.split_axis = 0
        return bias


class VocabParallelEmbedding(_Part):
    """A table of ``num_embeddings`` rows, split by rows over ``mp_group``."""

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
        self.per_part_size = self._share(num_embeddings, "num_embeddings")
        self.vocab_start_index = self.rank * self.per_part_size
        self.weight = self._make_parameter([self.per_part_size, embedding_dim], weight_attr, distributed=True)

    def forward(self, x: Tensor) -> Tensor:
        """Indices [...] to rows [..., embedding_dim], which all ranks have."""
        if not self.is_mp:
            whole: Tensor = F.embedding(x, self.weight)
            return whole
        rows = _c_lookup_table(self.weight, x, self.vocab_start_index)
        return _mp_allreduce(rows, group=self.model_parallel_group)


class ColumnParallelLinear(_Part):
    """``x @ weight + bias``, split by columns over ``mp_group``; without a bias by default.

    ``gather_output``: every rank gets all columns, instead of its own. ``fuse_matmul_bias`` changes no result.
    """

    weight: Any
    bias: Any

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
        self.output_size_per_partition = self._share(out_features, "out_features")
        self.weight = self._make_parameter(
            [in_features, self.output_size_per_partition], weight_attr, True, split_axis=1
        )
        self.bias = self._zeros(self.output_size_per_partition, distributed=True) if has_bias else None

    def forward(self, x: Tensor) -> Tensor:
        """[..., in_features], which all ranks have, to [..., out_features], or this rank's part of them."""
        made: Tensor = F.linear(_c_identity(x, self.model_parallel_group), self.weight, self.bias)
        return _c_concat(made, self.model_parallel_group) if self.gather_output else made


class RowParallelLinear(_Part):
    """``x @ weight + bias``, split by rows over ``mp_group``; the bias, which all ranks have, is added to the sum.

    ``input_is_parallel``: ``x`` is this rank's part of the features already. ``fuse_matmul_bias`` changes no result.
    """

    weight: Any
    bias: Any

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
        self.input_size_per_partition = self._share(in_features, "in_features")
        self.weight = self._make_parameter([self.input_size_per_partition, out_features], weight_attr, distributed=True)
        self.bias = self._zeros(out_features, distributed=False) if has_bias else None

    def forward(self, x: Tensor) -> Tensor:
        """[..., in_features] to [..., out_features], which all ranks have."""
        if not self.is_mp:
            whole: Tensor = F.linear(x, self.weight, self.bias)
            return whole
        given = x if self.input_is_parallel else _c_split(x, self.model_parallel_group)
        made = _mp_allreduce(F.linear(given, self.weight), group=self.model_parallel_group)
        return made if self.bias is None else made + self.bias


class ParallelCrossEntropy(_Part):
    """Cross entropy of logits whose classes are split over ``mp_group``; not reduced."""

    def __init__(self, mp_group: Group | None = None, name: str | None = None, ignore_index: int = -100) -> None:
        super().__init__()
        self._join(mp_group)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        """This rank's logits [..., classes / ranks] and labels [...] or [..., 1] to losses [..., 1]; 0 where the label
        is ``ignore_index``."""
        if not self.is_mp:
            labels = label.unsqueeze(-1) if label.ndim == input.ndim - 1 else label
            losses: Tensor = F.softmax_with_cross_entropy(input, labels, ignore_index=self.ignore_index)
            return losses
        group = self.model_parallel_group
        return _c_softmax_with_cross_entropy(input, label, group, ignore_index=self.ignore_index)  # type: ignore[return-value]
