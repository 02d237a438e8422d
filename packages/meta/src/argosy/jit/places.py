"""Places that hold tensors of the user's: entries of dictionaries (attributes, globals) and variables of closures."""

from __future__ import annotations

from types import CellType
from typing import Any

from argosy_tensorcore.tensor import Tensor

__all__ = ["ABSENT", "Attribute", "Kind", "Place", "kind_of"]

ABSENT: Any = object()
"""Stands for what a place does not hold."""
Kind = tuple[Any, Any, bool]


class Place:
    """An entry ``name`` of a dictionary, or a closure cell, which has no name."""

    __slots__ = ("holder", "name")

    def __init__(self, holder: Any, name: Any = None) -> None:
        self.holder = holder
        self.name = name

    def get(self) -> Any:
        """What stands there, or ``ABSENT``."""
        if type(self.holder) is not CellType:
            return self.holder.get(self.name, ABSENT)
        try:
            return self.holder.cell_contents
        except ValueError:  # empty
            return ABSENT

    def put(self, value: Any) -> None:
        """Let ``value`` stand there; ``ABSENT`` empties the place."""
        if type(self.holder) is CellType:
            self.holder.cell_contents = value
        elif value is ABSENT:
            self.holder.pop(self.name, None)
        else:
            self.holder[self.name] = value

    def is_at(self, holder: Any, name: Any = None) -> bool:
        """Whether this is entry ``name`` of ``holder``."""
        return self.holder is holder and self.name == name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and other.holder is self.holder and other.name == self.name

    def __hash__(self) -> int:
        return hash((id(self.holder), self.name))

    def __str__(self) -> str:
        return "a variable of the enclosing function" if type(self.holder) is CellType else str(self.name)


class Attribute(Place):
    """A place among the attributes of a ``layer``: tensors that are put there become buffers, as by assignment."""

    __slots__ = ("layer",)

    def __init__(self, layer: Any, name: Any) -> None:
        super().__init__(vars(layer), name)
        self.layer = layer

    def put(self, value: Any) -> None:
        """See :class:`Place`."""
        if type(value) is Tensor and not value.payload.is_traced:
            setattr(self.layer, self.name, value)
        else:
            super().put(value)


def kind_of(x: Any) -> Kind | None:
    """Shape, dtype and ``stop_gradient`` of a tensor: what a program is captured for; None of anything else."""
    return (x.payload.shape, x.payload.dtype, x.stop_gradient) if type(x) is Tensor else None
