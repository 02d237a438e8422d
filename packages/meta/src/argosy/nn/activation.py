"""Activation layers: each holds the settings of a function of ``nn.functional``."""

from __future__ import annotations

from argosy.nn.settings import FunctionLayer
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "ELU", "GELU", "Hardswish", "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "ReLU", "ReLU6", "SiLU", "Sigmoid",
    "Silu", "Softmax", "Softplus", "Softsign", "Swish", "Tanh",
]  # fmt: skip


class _Activation(FunctionLayer):
    """An activation function with its settings; subclasses name both."""

    prefix = "_"

    def forward(self, x: Tensor) -> Tensor:
        """The activation of ``x``."""
        return self._applied(x)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The settings."""
        return ", ".join(f"{name}={value}" for name, value in self._settings.items())


class _Plain(_Activation):
    """An activation without arguments."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()


class ReLU(_Plain):
    """``max(x, 0)``."""

    function = "relu"


class ReLU6(_Plain):
    """``min(max(x, 0), 6)``."""

    function = "relu6"


class Sigmoid(_Plain):
    """``1 / (1 + exp(-x))``."""

    function = "sigmoid"


class LogSigmoid(_Plain):
    """``log(sigmoid(x))``."""

    function = "log_sigmoid"


class Tanh(_Plain):
    """The hyperbolic tangent."""

    function = "tanh"


class Swish(_Plain):
    """``x * sigmoid(x)``."""

    function = "swish"


class Mish(_Plain):
    """``x * tanh(softplus(x))`` (Misra, 2019)."""

    function = "mish"


class Softsign(_Plain):
    """``x / (1 + |x|)``."""

    function = "softsign"


class Hardswish(_Plain):
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
