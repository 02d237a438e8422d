"""What traced tensors hold, in place of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from argosy_phi_ops.capture.shape_values import infer_sizes
from argosy_phi_ops.capture.views import View
from argosy_phi_ops.errors import CaptureError
from argosy_pir.location import Location
from argosy_pir.values import Value
from argosy_tensorcore.dtype import DType, as_dtype
from argosy_tensorcore.printing import format_array
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_phi_ops.capture.tracer import Tracer

__all__ = ["SelectedPayload", "TracedPayload"]


class TracedPayload:
    """The payload of a traced tensor: ``value`` is its current SSA version in the program of ``tracer``.

    ``active`` tells that the value depends differentiably on something that wants gradients, which matters where the
    tensor itself is marked ``stop_gradient``: a barrier is put in before others use it.
    """

    __slots__ = ("__weakref__", "active", "dtype", "location", "shape", "tracer", "value", "view_of", "views")
    is_traced = True
    selected = False
    """Whether it is what a mask selects, see :class:`SelectedPayload`."""

    def __init__(self, value: Value, tracer: Tracer, location: Location | None = None, active: bool = False) -> None:
        self.value = value
        self.tracer = tracer
        self.location = location
        self.active = active
        self.view_of: View | None = None
        self.views: list[Any] = []  # weak references to the payloads that show this one's memory
        self.shape = value.shape
        self.dtype: DType = as_dtype(value.dtype)
        tracer.payloads.append(ref(self))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def device(self) -> Any:
        """The device that the value will be on, as far as is known; None for the host."""
        from argosy_phi_ops.capture.device_copies import place_of_value  # few ask

        place = place_of_value(self.tracer, self.value)
        return None if place.is_cpu_place() else place.device()

    @property
    def mesh(self) -> Any:
        """The mesh that the tensor will lie on; None for an ordinary one."""
        layout = self._layout()
        return None if layout is None else layout.mesh

    @property
    def placements(self) -> Any:
        """One for each dimension of the mesh; None for an ordinary tensor."""
        layout = self._layout()
        return None if layout is None else list(layout.placements)

    def _layout(self) -> Any:
        tracer = self.tracer
        if tracer.placing is None:
            return None
        if self.value not in tracer.placed:
            tracer.placed[self.value] = tracer.placing(self)
        return tracer.placed[self.value]

    def known_elements(self) -> Any:
        """The elements as an array of numbers and symbolic sizes, of an integer tensor that is made of sizes and
        constants; else None."""
        return None if self.tracer.finished or self.dtype.kind not in "iu" else infer_sizes(self.value)

    def concretize(self, kind: str) -> Any:
        """Called where Python needs the value (``bool()``, ``numpy()``...). Raises :class:`GraphBreak`, except for
        numbers that sizes tell."""
        known = self.known_elements()
        if known is not None and all(isinstance(n, int) for n in known.flat):
            return known.astype(self.dtype.numpy)
        where = f"; the tensor was made at {self.location}" if self.location else ""
        if self.tracer.finished:
            raise CaptureError(f"a traced tensor was used after its capture had ended{where}")
        return self.tracer.need(self, f"{kind} needs the value of a tensor while it is being captured{where}")

    def __repr__(self) -> str:
        tracer = self.tracer
        if not tracer.breaks or tracer.journals or tracer.finished:
            return f"<traced {self.value.type}>"
        return format_array(self.concretize("printing"), len("Tensor("))

    def snapshot(self) -> tuple[Any, ...]:
        """What a write in place changes."""
        return self.value, self.shape, self.dtype, self.active


class SelectedPayload(TracedPayload):
    """The payload of what ``mask`` selects of ``whole``, both traced tensors: its size is not known. Where it is needed
    the tracer settles it, see `boolean_masking`; ``settled`` is the payload that it becomes."""

    __slots__ = ("mask", "settled", "whole")
    selected = True

    def __init__(self, whole: Tensor, mask: Tensor, tracer: Tracer, location: Location | None) -> None:
        self.whole = whole
        self.mask = mask
        self.tracer = tracer
        self.location = location
        self.active = tracer._is_active(whole)
        self.view_of = None
        self.views = []
        self.dtype = whole.payload.dtype
        self.settled: Any = None
        tracer.payloads.append(ref(self))

    @property
    def ndim(self) -> int:
        """The number of axes: one for those of the mask."""
        return int(1 + self.whole.ndim - self.mask.ndim)

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """The sizes, which values tell."""
        return self._settle("the size of").shape

    @property
    def value(self) -> Any:  # type: ignore[override]
        """There is none in the program."""
        raise CaptureError(f"what a mask selects has no size in a program; it was made at {self.location}")

    def known_elements(self) -> Any:
        """Nothing is."""
        return None

    def concretize(self, kind: str) -> Any:
        """See :meth:`TracedPayload.concretize`."""
        return self._settle(f"{kind} needs the value of").to_host()

    def _settle(self, why: str) -> Any:
        if self.settled is None:
            self.tracer.settle(f"{why} what a mask selects depends on values; that was made at {self.location}")
        return self.settled
