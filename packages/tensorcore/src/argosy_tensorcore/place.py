"""Places: the user's names of devices (``Place(cpu)``, ``'gpu:0'``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argosy_hwadapt import Device

_RUNTIME_OF = {"gpu": "cuda"}  # what users call a device, where its runtime is called otherwise
_PLACE_OF = {runtime: place for place, runtime in _RUNTIME_OF.items()}


class Place:
    """Where a tensor's data lives: a kind of device (``"cpu"``, ``"gpu"``, ...) and its index. Immutable,
    compared by value.
    """

    __slots__ = ("index", "kind")
    kind: str
    index: int

    def __init__(self, kind: str = "cpu", index: int = 0) -> None:
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"places are immutable; cannot set {name!r}")

    @property
    def name(self) -> str:
        """The string that names it: ``'cpu'``, ``'gpu:0'``."""
        return self.kind if self.kind == "cpu" else f"{self.kind}:{self.index}"

    def __repr__(self) -> str:
        return f"Place({self.name})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and (self.kind, self.index) == (other.kind, other.index)

    def __hash__(self) -> int:
        return hash((self.kind, self.index))

    def __reduce__(self) -> tuple[object, tuple[str, int]]:
        return Place, (self.kind, self.index)

    def is_cpu_place(self) -> bool:
        """True for the host."""
        return self.kind == "cpu"

    def is_gpu_place(self) -> bool:
        """True for a GPU."""
        return self.kind == "gpu"

    def is_xpu_place(self) -> bool:
        """True for one of Kunlun's devices."""
        return self.kind == "xpu"

    def is_ipu_place(self) -> bool:
        """True for one of Graphcore's devices."""
        return self.kind == "ipu"

    def is_custom_place(self) -> bool:
        """True for a device of a kind that Paddle has no name for."""
        return self.kind not in ("cpu", "gpu", "xpu", "ipu")

    def is_cuda_pinned_place(self) -> bool:
        """False: host memory is not pinned for transfers."""
        return False

    def is_xpu_pinned_place(self) -> bool:
        """False: host memory is not pinned for transfers."""
        return False

    def get_device_id(self) -> int:
        """The index of the device among those of its kind."""
        return self.index

    def device(self) -> Device:
        """The opened device (hwadapt's). Raises DeviceNotFound when there is none."""
        from argosy_hwadapt import device

        return device(_RUNTIME_OF.get(self.kind, self.kind), self.index)


CPU = Place("cpu")


def place_of(device: Device) -> Place:
    """The place that names an opened device."""
    kind = _PLACE_OF.get(device.name, device.name)
    return CPU if kind == "cpu" else Place(kind, device.index)


def as_place(x: object) -> Place:
    """The place named by a Place, ``None`` (cpu), ``'cpu'``, ``'gpu'``, ``'gpu:1'`` or ``'opencl:h100'``, which is the
    first whose device's name has that in it. Raises ValueError, or DeviceNotFound where no name has it."""
    if isinstance(x, Place):
        return x
    if x is None:
        return CPU
    if not isinstance(x, str):
        raise TypeError(f"a place is a Place or a string such as 'cpu' or 'gpu:0', not {x!r}")
    kind, colon, index = x.lower().partition(":")
    if not kind or (colon and not index):
        raise ValueError(f"{x!r} does not name a place; expected 'cpu', 'gpu' or 'gpu:0'")
    if kind == "cpu":
        return CPU
    return Place(
        _PLACE_OF.get(kind, kind), int(index or 0) if index.isdecimal() or not colon else _index_of(kind, index)
    )


def _index_of(kind: str, name: str) -> int:
    from argosy_hwadapt.registry import index_of

    return index_of(_RUNTIME_OF.get(kind, kind), name)
