"""Batch normalisation layers."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import validate_call
from argosy.framework.param_attr import ParamAttr
from argosy.nn.initializer import Constant
from argosy.nn.layer import Layer
from argosy.nn.meshes import mesh_of
from argosy.nn.named_activations import activate
from argosy.nn.statistics import batch_norm
from argosy.nn.sync_batch_norm import batch_norm_over_ranks
from argosy_phi_ops.context import context
from argosy_tensorcore.tensor import Tensor

__all__ = ["BatchNorm", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D", "SyncBatchNorm"]


class _BatchNorm(Layer):
    """Ioffe and Szegedy (2015). The running mean and variance are parameters that are not trained, as in Paddle."""

    _mean: Any
    _variance: Any
    _ranks: tuple[int, ...] = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_features, self._momentum, self._epsilon = num_features, momentum, epsilon
        self._data_format, self._use_global_stats = data_format, use_global_stats
        shape, ones = [num_features], Constant(1.0)
        self._weight_attr, self._bias_attr, self._name = weight_attr, bias_attr, name
        self._in_place = self._fuse_with_relu = False
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=ones)
        self.bias = self.create_parameter(shape, bias_attr, is_bias=True)
        still = ParamAttr(trainable=False)
        self._mean = self.create_parameter(shape, still, default_initializer=Constant(0.0))
        self._variance = self.create_parameter(shape, still, default_initializer=ones)

    @validate_call
    def forward(self, input: Tensor) -> Tensor:
        """The normalised input. Raises ValueError for one of another rank than the layer's."""
        self._check_input_dim(input)
        settings = (self.training, self._momentum, self._epsilon, self._data_format, self._use_global_stats)
        return batch_norm(input, self._mean, self._variance, self.weight, self.bias, *settings)

    def _check_data_format(self, input: str) -> None:
        """Raise ValueError unless the layout is one that the layer takes: channels second or last."""
        if input[:2] != "NC" and input[-1:] != "C":
            raise ValueError(f"{type(self).__name__}: data_format is channels second or last, got {input!r:.60}")

    def _check_input_dim(self, input: Tensor) -> None:
        """Raise ValueError unless the input has as many axes as the layer takes."""
        if len(input.shape) not in self._ranks:
            ranks = " or ".join(map(str, self._ranks))
            raise ValueError(
                f"{type(self).__name__}(): argument 'input' must have {ranks} axes, got shape {list(input.shape)}"
            )

    def _synchronised_layer(self) -> _BatchNorm:
        """The layer of the same parameters that takes the statistics of all ranks."""
        return self._moved_to(SyncBatchNorm)

    def _moved_to(self, kind: type[SyncBatchNorm]) -> SyncBatchNorm:
        made = kind(self._num_features, self._momentum, self._epsilon, False, False, self._data_format)
        made._parameters.clear()  # for their order
        for name, parameter in self._parameters.items():
            setattr(made, name, parameter)
        made.training = self.training
        return made

    def extra_repr(self) -> str:
        """Channels, momentum and epsilon, and the layout where it is not NCHW."""
        layout = "" if self._data_format == "NCHW" else f", data_format={self._data_format}"
        return f"num_features={self._num_features}, momentum={self._momentum}, epsilon={self._epsilon}{layout}"


class BatchNorm1D(_BatchNorm):
    """Batch normalisation of [N, C] or [N, C, L]."""

    _ranks = (2, 3)

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)


class BatchNorm2D(_BatchNorm):
    """Batch normalisation of [N, C, H, W]."""

    _ranks = (4,)


class BatchNorm3D(_BatchNorm):
    """Batch normalisation of [N, C, D, H, W]."""

    _ranks = (5,)

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCDHW",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)


class BatchNorm(Layer):
    """Batch normalisation of [N, C, ...] with an activation ``act`` after it, in Paddle's older form.

    ``is_test`` or ``use_global_stats``: always by the running statistics. ``trainable_statistics``: by the batch's in
    evaluation, too. Names of the statistics, and ``in_place``, change nothing but names.
    """

    _stays_in_float32 = True  # in Layer.float16() and bfloat16()
    _mean: Any
    _variance: Any

    def __init__(
        self,
        num_channels: int,
        act: str | None = None,
        is_test: bool = False,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        param_attr: Any = None,
        bias_attr: Any = None,
        dtype: str = "float32",
        data_layout: str = "NCHW",
        in_place: bool = False,
        moving_mean_name: str | None = None,
        moving_variance_name: str | None = None,
        do_model_average_for_mean_and_var: bool = True,
        use_global_stats: bool = False,
        trainable_statistics: bool = False,
    ) -> None:
        super().__init__(dtype=dtype)
        self._momentum, self._epsilon, self._data_layout, self._act = momentum, epsilon, data_layout, act
        self._use_global_stats, self._trainable_statistics = use_global_stats or is_test, trainable_statistics
        shape, ones = [num_channels], Constant(1.0)
        self._param_attr, self._bias_attr = param_attr, bias_attr
        self.weight = self.create_parameter(shape, param_attr, default_initializer=ones)
        self.bias = self.create_parameter(shape, bias_attr, is_bias=True)
        mean, variance = (ParamAttr(name, trainable=False) for name in (moving_mean_name, moving_variance_name))
        self._mean = self.create_parameter(shape, mean, default_initializer=Constant(0.0))
        self._variance = self.create_parameter(shape, variance, default_initializer=ones)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised, perhaps activated input."""
        by_batch = self.training or self._trainable_statistics
        settings = (by_batch, self._momentum, self._epsilon, self._data_layout, self._use_global_stats or None)
        return activate(batch_norm(input, self._mean, self._variance, self.weight, self.bias, *settings), self._act)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation by the statistics of all ranks' batches together; of one rank, :class:`BatchNorm2D`.

    On distributed tensors the engine sums the statistics over ranks for any batch normalisation; ranks that hold
    ordinary tensors do so here, in training.
    """

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, None, name)

    def forward(self, x: Tensor) -> Tensor:
        """The normalised input."""
        if self.training and context().size > 1 and mesh_of(x) is None and not self._use_global_stats:
            self._check_input_dim(x)
            statistics = self._mean, self._variance, self.weight, self.bias
            return batch_norm_over_ranks(x, *statistics, self._momentum, self._epsilon, self._data_format)
        return super().forward(x)

    @classmethod
    def convert_sync_batchnorm(cls, layer: Layer) -> Layer:
        """``layer`` with every BatchNorm1D, 2D and 3D in it as a SyncBatchNorm of the same parameters."""
        if isinstance(layer, _BatchNorm) and not isinstance(layer, SyncBatchNorm):
            return layer._synchronised_layer()
        for name, child in list(layer.named_children()):
            layer.add_sublayer(name, cls.convert_sync_batchnorm(child))
        return layer
