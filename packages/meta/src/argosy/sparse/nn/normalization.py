"""Batch normalisation of the stored values of sparse tensors [N, *spatial, C] whose channels are dense."""

from __future__ import annotations

from typing import Any

from argosy.nn.batch_norm import BatchNorm1D
from argosy.nn.batch_norm import SyncBatchNorm as DenseSyncBatchNorm
from argosy.sparse.tensors import SparseCooTensor

__all__ = ["BatchNorm", "SyncBatchNorm"]


def _values(owner: str, x: Any) -> Any:
    if not isinstance(x, SparseCooTensor) or x.dense_dim() != 1:
        kind = f"{type(x).__name__} {list(getattr(x, 'shape', []))}"
        raise TypeError(f"{owner}: the input must be a SparseCooTensor with dense channels, got {kind}")
    return x.values()


class BatchNorm(BatchNorm1D):
    """The stored values standardised for each channel, by the statistics of the stored values alone."""

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NDHWC",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        if data_format not in ("NDHWC", "NHWC"):
            raise ValueError(f"BatchNorm: data_format should be 'NDHWC' or 'NHWC', got {data_format!r}")
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)

    def forward(self, input: Any) -> Any:
        """A sparse tensor of the same positions."""
        return input._with_values(super().forward(_values("BatchNorm", input)))

    def _synchronised_layer(self) -> SyncBatchNorm:
        return self._moved_to(SyncBatchNorm)  # type: ignore[return-value]


class SyncBatchNorm(DenseSyncBatchNorm):
    """:class:`BatchNorm` by the statistics of all ranks; of one rank the same. See :class:`argosy.nn.SyncBatchNorm`."""

    def forward(self, x: Any) -> Any:
        """A sparse tensor of the same positions."""
        return x._with_values(super().forward(_values("SyncBatchNorm", x)))
