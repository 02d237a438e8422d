"""Dropout layers: of elements, of channels, and for self-normalising networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from argosy.nn import functional as F
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["AlphaDropout", "Dropout", "Dropout2D", "Dropout3D", "FeatureAlphaDropout"]


class Dropout(Layer):
    """Zero each element with probability ``p`` while training, and scale the rest by 1 / (1 - p)."""

    def __init__(
        self,
        p: float = 0.5,
        inplace: bool = False,
        axis: int | Sequence[int] | None = None,
        mode: str = "upscale_in_train",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.p, self.axis, self.mode, self.inplace = p, axis, mode, inplace

    def forward(self, input: Tensor) -> Tensor:
        """The input with elements dropped, in evaluation the input itself."""
        return F.dropout(input, self.p, self.axis, self.training, self.inplace, self.mode)

    def extra_repr(self) -> str:
        """Probability, axis and mode."""
        return f"p={self.p}, axis={self.axis}, mode={self.mode}, inplace={self.inplace}"


class Dropout2D(Layer):
    """Drop whole channels of [N, C, H, W] with probability ``p`` while training."""

    def __init__(self, p: float = 0.5, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__()
        self.p, self.data_format = p, data_format

    def forward(self, input: Tensor) -> Tensor:
        """The input with channels dropped."""
        return F.dropout2d(input, self.p, self.training, self.data_format)

    def extra_repr(self) -> str:
        """Probability and layout."""
        return f"p={self.p}, data_format={self.data_format}"


class Dropout3D(Layer):
    """Drop whole channels of [N, C, D, H, W] with probability ``p`` while training."""

    def __init__(self, p: float = 0.5, data_format: str = "NCDHW", name: str | None = None) -> None:
        super().__init__()
        self.p, self.data_format = p, data_format

    def forward(self, input: Tensor) -> Tensor:
        """The input with channels dropped."""
        return F.dropout3d(input, self.p, self.training, self.data_format)

    def extra_repr(self) -> str:
        """Probability and layout."""
        return f"p={self.p}, data_format={self.data_format}"


class _AlphaDropout(Layer):
    function: ClassVar[str]

    def __init__(self, p: float = 0.5, name: str | None = None) -> None:
        super().__init__()
        self.p = p

    def forward(self, input: Tensor) -> Tensor:
        """The input with elements saturated, and mean and variance kept."""
        return getattr(F, self.function)(input, self.p, self.training)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"


class AlphaDropout(_AlphaDropout):
    """Dropout that keeps mean and variance of SELU's output (Klambauer et al., 2017)."""

    function = "alpha_dropout"


class FeatureAlphaDropout(_AlphaDropout):
    """Alpha dropout of whole channels."""

    function = "feature_alpha_dropout"
