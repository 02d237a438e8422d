"""The device that new tensors are made on: a layer for operators that take none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from argosy_phi_ops.context import AMBIENT, RankState, context
from argosy_phi_ops.eager.dispatch import Interpreter
from argosy_phi_ops.eager.table import application_key
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_hwadapt import Device
    from argosy_phi_ops.declare.operator import Operator

__all__ = ["CreationLayer", "creation_device", "creation_scope", "set_creation_device"]


class CreationLayer(Interpreter):
    """Runs operators that are given no tensor on ``device``; passes others on, which run where their operands are."""

    stays = True

    def __init__(self, device: Device) -> None:
        self.device = device

    def process(
        self, op: Operator, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]
    ) -> Any:
        """See :class:`Interpreter`."""
        given = operands[:-1] if op.random else operands
        if op.opaque or any(type(x) is Tensor for x in given):
            return below(op, operands, attributes)
        key: tuple[Any, ...] = (*application_key(operands, attributes), self.device)
        found = op.applications.by_key.get(key)
        if found is None:
            module = import_module("argosy_phi_ops.eager.device_application")  # who sets no device does without
            found = module.DeviceApplication(op, operands, attributes, self.device)
            op.applications.keep(key, found)
        return found.run(operands, False)


_current: RankState[CreationLayer | None] = RankState("argosy.creation", lambda: None)


def creation_device() -> Device | None:
    """The device that new tensors of this rank are made on; None for the host."""
    layer = _current.value if AMBIENT.word else None
    return None if layer is None else layer.device


def set_creation_device(device: Device | None) -> None:
    """Make new tensors of this rank on ``device`` from now on; None or a host device: on the host."""
    layer = None if device is None or device.is_host else CreationLayer(device)
    before, _current.value = _current.value, layer
    if before is not None:
        context().take_everywhere(before)
        AMBIENT.word -= 1
    if layer is not None:
        context().put_everywhere(layer)
        AMBIENT.word += 1


@contextmanager
def creation_scope(device: Device | None) -> Iterator[None]:
    """A block in which new tensors of this rank are made on ``device``, as :func:`set_creation_device` says."""
    before = creation_device()
    set_creation_device(device)
    try:
        yield
    finally:
        set_creation_device(before)
