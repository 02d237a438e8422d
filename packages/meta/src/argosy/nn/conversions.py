"""What converts the tensors of a layer: ``Layer.to``, ``astype`` and their short forms."""

from __future__ import annotations

from typing import Any, Self

from argosy.nn import state
from argosy_tensorcore.dtype import as_dtype

__all__ = ["Conversions"]


class Conversions:
    """The part of ``Layer`` that changes dtype and device of its parameters and buffers, in place."""

    parameters: Any
    buffers: Any
    sublayers: Any

    def to(
        self, device: object = None, dtype: object = None, blocking: bool | None = None, non_blocking: object = None
    ) -> Self:
        """Convert floating parameters and buffers to ``dtype``. Devices other than the cpu are not implemented."""
        if device is not None and str(device) != "cpu":
            raise NotImplementedError(f"Layer.to(device={device!r}): operators run on the cpu only so far")
        return self if dtype is None else self.astype(dtype)

    def astype(self, dtype: object = None) -> Self:
        """Convert floating parameters and buffers to ``dtype``, in place of the old data."""
        wanted = as_dtype(dtype if dtype is not None else "float32")
        for layer in self.sublayers(include_self=True):
            layer.__dict__["_dtype"] = wanted.name
        for tensor in (*self.parameters(), *self.buffers()):
            state.convert(tensor, wanted)
        return self

    def float(self, excluded_layers: object = None) -> Self:
        """``astype("float32")``."""
        return self._converted("float32", excluded_layers)

    def float16(self, excluded_layers: object = None) -> Self:
        """``astype("float16")``."""
        return self._converted("float16", excluded_layers)

    def bfloat16(self, excluded_layers: object = None) -> Self:
        """``astype("bfloat16")``."""
        return self._converted("bfloat16", excluded_layers)

    def half(self) -> Self:
        """``astype("float16")``."""
        return self.astype("float16")

    def type(self, dst_type: object) -> Self:
        """``astype(dst_type)``."""
        return self.astype(dst_type)

    def cpu(self) -> Self:
        """``to("cpu")``."""
        return self.to("cpu")

    def cuda(self, device: object = None) -> Self:
        """Parameters on a GPU: raises NotImplementedError, as :meth:`to` does."""
        return self.to("gpu" if device is None else device)

    def xpu(self, device: object = None) -> Self:
        """Parameters on an XPU: raises NotImplementedError, as :meth:`to` does."""
        return self.to("xpu" if device is None else device)

    def double(self) -> Self:
        """``astype("float64")``."""
        return self.astype("float64")

    def _converted(self, dtype: str, excluded_layers: object) -> Self:
        if excluded_layers is not None:
            raise NotImplementedError(f"{dtype}(excluded_layers=...) is not implemented; convert sublayers one by one")
        return self.astype(dtype)
