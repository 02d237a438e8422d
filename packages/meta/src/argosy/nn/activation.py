"""Activation layers: each holds the settings of a function of ``nn.functional``."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import validate_call
from argosy.framework.aliases import parameter_aliases
from argosy.nn import functional as F
from argosy.nn.initializer import Constant
from argosy.nn.layer import Layer
from argosy.nn.settings import FunctionLayer
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Maxout",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Silu",
    "Softmax",
    "Softmax2D",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Swish",
    "Tanh",
    "Tanhshrink",
    "ThresholdedReLU",
]  # fmt: skip


class _Activation(FunctionLayer):
    """An activation function with its settings; subclasses name both."""

    prefix = "_"

    def forward(self, x: Tensor) -> Tensor:
        """The activation of ``x``."""
        return self._apply_function(x)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The settings."""
        return ", ".join(f"{name}={value}" for name, value in self._settings.items())


class _PlainActivation(_Activation):
    """An activation without arguments."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()


class ReLU(_PlainActivation):
    """``max(x, 0)``."""

    function = "relu"


class ReLU6(_PlainActivation):
    """``min(max(x, 0), 6)``."""

    function = "relu6"


class Sigmoid(_PlainActivation):
    """``1 / (1 + exp(-x))``."""

    function = "sigmoid"


class LogSigmoid(_PlainActivation):
    """``log(sigmoid(x))``."""

    function = "log_sigmoid"


class Tanh(_PlainActivation):
    """The hyperbolic tangent."""

    function = "tanh"


class Swish(_PlainActivation):
    """``x * sigmoid(x)``."""

    function = "swish"


class Mish(_PlainActivation):
    """``x * tanh(softplus(x))`` (Misra, 2019)."""

    function = "mish"


class Softsign(_PlainActivation):
    """``x / (1 + |x|)``."""

    function = "softsign"


class Hardswish(_PlainActivation):
    """``x * min(max(x + 3, 0), 6) / 6`` (Howard et al., 2019)."""

    function = "hardswish"


class Silu(_Activation):
    """``x * sigmoid(x)`` (Elfwing et al., 2018)."""

    function = "silu"

    def __init__(self, inplace: bool = False, name: str | None = None) -> None:
        super().__init__(inplace=inplace)


SiLU = Silu


class GELU(_Activation):
    """``x * Phi(x)``, or its tanh approximation (Hendrycks and Gimpel, 2016)."""

    function = "gelu"

    def __init__(self, approximate: bool | str = False, name: str | None = None) -> None:
        super().__init__(approximate=approximate)


class LeakyReLU(_Activation):
    """``x`` where positive, else ``negative_slope * x``."""

    function = "leaky_relu"

    def __init__(self, negative_slope: float = 0.01, name: str | None = None) -> None:
        super().__init__(negative_slope=negative_slope)


class ELU(_Activation):
    """``x`` where positive, else ``alpha * (exp(x) - 1)`` (Clevert et al., 2015)."""

    function = "elu"

    def __init__(self, alpha: float = 1.0, name: str | None = None) -> None:
        super().__init__(alpha=alpha)


class Softplus(_Activation):
    """``log(1 + exp(beta * x)) / beta``, linear above ``threshold``."""

    function = "softplus"

    def __init__(self, beta: float = 1, threshold: float = 20, name: str | None = None) -> None:
        super().__init__(beta=beta, threshold=threshold)


class Softmax(_Activation):
    """``exp(x) / sum(exp(x))`` along ``axis``."""

    function = "softmax"

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__(axis=axis)


class LogSoftmax(_Activation):
    """``x - log(sum(exp(x)))`` along ``axis``."""

    function = "log_softmax"

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__(axis=axis)


class Hardsigmoid(_PlainActivation):
    """``min(max(x / 6 + 1/2, 0), 1)``."""

    function = "hardsigmoid"


class Tanhshrink(_PlainActivation):
    """``x - tanh(x)``."""

    function = "tanhshrink"


class CELU(_Activation):
    """``max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)`` (Barron, 2017)."""

    function = "celu"

    def __init__(self, alpha: float = 1.0, name: str | None = None) -> None:
        super().__init__(alpha=alpha)


class SELU(_Activation):
    """``scale * x`` where positive, else ``scale * alpha * (exp(x) - 1)`` (Klambauer et al., 2017)."""

    function = "selu"

    def __init__(
        self,
        scale: float = 1.0507009873554804934193349852946,
        alpha: float = 1.6732632423543772848170429916717,
        name: str | None = None,
    ) -> None:
        super().__init__(scale=scale, alpha=alpha)


class Hardshrink(_Activation):
    """``x`` outside of [-threshold, threshold], else 0."""

    function = "hardshrink"

    @parameter_aliases(lambd="threshold")
    def __init__(self, threshold: float = 0.5, name: str | None = None) -> None:
        super().__init__(threshold=threshold)

    @property
    def lambd(self) -> float:
        """The threshold."""
        return self._threshold  # type: ignore[no-any-return]


class Softshrink(_Activation):
    """``x`` moved towards 0 by ``threshold``, and 0 where that would change its sign."""

    function = "softshrink"

    @parameter_aliases(lambd="threshold")
    def __init__(self, threshold: float = 0.5, name: str | None = None) -> None:
        super().__init__(threshold=threshold)

    @property
    def lambd(self) -> float:
        """The threshold."""
        return self._threshold  # type: ignore[no-any-return]


class Hardtanh(_Activation):
    """``x`` clipped to [min, max]."""

    function = "hardtanh"

    def __init__(self, min: float = -1.0, max: float = 1.0, name: str | None = None) -> None:
        super().__init__(min=min, max=max)


class ThresholdedReLU(_Activation):
    """``x`` above ``threshold``, else ``value``."""

    function = "thresholded_relu"

    def __init__(self, threshold: float = 1.0, value: float = 0.0, name: str | None = None) -> None:
        super().__init__(threshold=threshold, value=value)


class GLU(_Activation):
    """The first half along ``axis`` times the sigmoid of the second (Dauphin et al., 2017)."""

    function = "glu"

    @parameter_aliases(dim="axis")
    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__(axis=axis)

    @property
    def dim(self) -> int:
        """The axis."""
        return self._axis  # type: ignore[no-any-return]


class Maxout(_Activation):
    """The maximum of ``groups`` neighbouring channels along ``axis`` (Goodfellow et al., 2013)."""

    function = "maxout"

    def __init__(self, groups: int, axis: int = 1, name: str | None = None) -> None:
        super().__init__(groups=groups, axis=axis)


class Softmax2D(Layer):
    """Softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    @validate_call
    def forward(self, x: Tensor) -> Tensor:
        """Distributions over the channels. Raises ValueError for another rank."""
        if x.ndim not in (3, 4):
            raise ValueError(f"Softmax2D takes [N, C, H, W] or [C, H, W], got shape {list(x.shape)}")
        return F.softmax(x, axis=-3)


class PReLU(Layer):
    """``x`` where positive, else a trained slope times ``x`` (He et al., 2015).

    num_parameters: 1, or one slope for each channel; they start at ``init``.
    """

    _weight: Any

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        weight_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_parameters, self._data_format, self._init = num_parameters, data_format, init
        self._weight_attr = weight_attr
        self._weight = self.create_parameter([num_parameters], weight_attr, default_initializer=Constant(float(init)))

    def forward(self, x: Tensor) -> Tensor:
        """The activation of ``x``."""
        return F.prelu(x, self._weight, data_format=self._data_format)

    def extra_repr(self) -> str:
        """Number of slopes, layout, start and dtype."""
        start = f"init={self._init}, dtype={self._dtype}"
        return f"num_parameters={self._num_parameters}, data_format={self._data_format}, {start}"


class RReLU(Layer):
    """``x`` where positive, else ``x`` times a slope: random in [lower, upper] while training, their mean otherwise
    (Xu et al., 2015).
    """

    def __init__(self, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, name: str | None = None) -> None:
        super().__init__()
        self._lower, self._upper = lower, upper

    def forward(self, x: Tensor) -> Tensor:
        """The activation of ``x``."""
        return F.rrelu(x, self._lower, self._upper, training=self.training)

    def extra_repr(self) -> str:
        """The bounds of the slope."""
        return f"lower={self._lower}, upper={self._upper}, training={self.training}, dtype={self._dtype}"
