"""What converts the tensors of a layer: ``Layer.to``, ``astype`` and their short forms."""

from __future__ import annotations

from typing import Any, Self

from argosy.nn import state
from argosy_autograd.modes import no_grad
from argosy_tensorcore.dtype import DType, as_dtype
from argosy_tensorcore.place import Place, as_place

__all__ = ["Conversions"]


class Conversions:
    """The part of ``Layer`` that changes dtype and device of its parameters and buffers, in place."""

    parameters: Any
    buffers: Any
    sublayers: Any
    _apply: Any
    _transform: Any

    def to(
        self, device: object = None, dtype: object = None, blocking: bool | None = None, non_blocking: object = None
    ) -> Self:
        """Convert parameters and buffers to ``dtype``, integers and booleans, too, as Paddle does, and bring them to
        ``device``. Raises DeviceNotFound for a device that is not there."""
        if device is not None:
            self._bring_to(as_place(device))
        if dtype is None:
            return self
        self._apply(self._transform, device, dtype, True)
        return self

    def _bring_to(self, place: Place) -> None:
        with no_grad():
            for tensor in (*self.parameters(), *self.buffers()):
                tensor.payload = tensor.to(place).payload

    def astype(self, dtype: object = None) -> Self:
        """Convert parameters and buffers to ``dtype``, integers and booleans, too, in place of the old data."""
        return self._convert(as_dtype(dtype if dtype is not None else "float32"), ())

    def float(self, excluded_layers: object = None) -> Self:
        """Convert what is floating to float32, but for layers whose class is ``excluded_layers``, or among these."""
        return self._convert(as_dtype("float32"), _classes(() if excluded_layers is None else excluded_layers), "f")

    def float16(self, excluded_layers: object = None) -> Self:
        """Convert what is floating to float16, but for layers whose class is among ``excluded_layers`` (None:
        ``BatchNorm``)."""
        return self._convert(as_dtype("float16"), _classes(excluded_layers), "f")

    def bfloat16(self, excluded_layers: object = None) -> Self:
        """Convert what is floating to bfloat16, but for layers whose class is among ``excluded_layers`` (None:
        ``BatchNorm``)."""
        return self._convert(as_dtype("bfloat16"), _classes(excluded_layers), "f")

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
        """Parameters on a GPU: raises what :meth:`to` does."""
        return self.to("gpu" if device is None else device)

    def xpu(self, device: object = None) -> Self:
        """Parameters on an XPU: raises what :meth:`to` does."""
        return self.to("xpu" if device is None else device)

    def double(self) -> Self:
        """``astype("float64")``."""
        return self.astype("float64")

    def _convert(self, wanted: DType, excluded: tuple[Any, ...] | None, kinds: str = "biufc") -> Self:
        """Convert tensors of these kinds, but for those of layers that are ``excluded`` (None: those whose class stays
        in float32)."""
        for layer in self.sublayers(include_self=True):
            kind = type(layer)
            stays = vars(kind).get("_stays_in_float32", False) if excluded is None else kind in excluded
            if not stays:
                layer.__dict__["_dtype"] = wanted
                for tensor in (*layer.parameters(include_sublayers=False), *layer.buffers(include_sublayers=False)):
                    if tensor.dtype.kind in kinds:
                        state.convert(tensor, wanted)
        return self


def _classes(excluded: object) -> tuple[Any, ...] | None:
    if excluded is None:
        return None
    if not isinstance(excluded, (type, list, tuple)):
        raise TypeError(f"excluded_layers should be a Layer class or a list of them, got {excluded!r:.80}")
    return (excluded,) if isinstance(excluded, type) else tuple(excluded)
