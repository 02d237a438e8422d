"""Where local programs are written: the builder of one rank, its place on the mesh and the chain of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from argosy_autoparallel.mesh import ProcessMesh
from argosy_phi_ops import prim
from argosy_phi_ops.context import building
from argosy_pir import Builder, Program, Value

__all__ = ["Emitter"]


class Emitter:
    """Writes the local program of one ``rank``. All its communication is in one chain of tokens."""

    def __init__(self, program: Program, rank: int) -> None:
        self.program = program
        self.rank = rank
        self.builder = Builder.at_end(program.block)
        self._token: Value | None = None
        self.groups: set[tuple[int, ...]] = set()

    def active(self) -> AbstractContextManager[Builder]:
        """Primitives called within the block are emitted here."""
        return building(self.builder)

    def line(self, mesh: ProcessMesh, dim: int) -> tuple[tuple[int, ...], int]:
        """The ranks along a mesh dimension through this one, and its coordinate there."""
        return line_of(mesh, dim, self.rank)

    def communicate(self, name: str, x: Value | None, **attributes: Any) -> Value | None:
        """Emit a communication primitive at the end of the chain of tokens; its tensor result, where it has one."""
        if self._token is None:
            self._token = prim.create_token()
        if "group" in attributes:
            self.groups.add(attributes["group"])
        operands = () if x is None else (x,)
        made = getattr(prim, name)(*operands, self._token, **attributes)
        if isinstance(made, tuple):
            value, self._token = made
            return value  # type: ignore[no-any-return]
        self._token = made
        return None


def line_of(mesh: ProcessMesh, dim: int, rank: int) -> tuple[tuple[int, ...], int]:
    """The ranks along mesh dimension ``dim`` through ``rank``, and the coordinate of ``rank`` among them."""
    where = mesh.coordinate(rank)
    index = tuple(slice(None) if i == dim else c for i, c in enumerate(where))
    return tuple(int(r) for r in mesh.mesh[index]), where[dim]


def static_shape(value: Value) -> tuple[int, ...]:
    """The shape of a value of static sizes. Raises ``NotImplementedError`` for others, which meshes cannot hold yet."""
    shape = tuple(n for n in value.shape if isinstance(n, int))
    if len(shape) != len(value.shape):
        raise NotImplementedError(f"partition: a tensor of symbolic sizes ({value.type}) on a mesh is not implemented")
    return shape


def block(x: Value, axis: int, start: int, length: int) -> Value:
    """``length`` indices of ``axis`` from ``start``."""
    if start == 0 and length == x.shape[axis]:
        return x
    begin = tuple(start if i == axis else 0 for i in range(len(x.shape)))
    limit = tuple(start + length if i == axis else n for i, n in enumerate(x.shape))
    return prim.slice(x, start=begin, limit=limit, stride=(1,) * len(x.shape))  # type: ignore[no-any-return]


def padded(x: Value, axis: int, low: int, high: int) -> Value:
    """Zeros put before and behind along ``axis``."""
    if not low and not high:
        return x
    ends = [tuple(n if i == axis else 0 for i in range(len(x.shape))) for n in (low, high)]
    zero = prim.constant(False if x.dtype == "bool" else 0, x.dtype)
    made: Value = prim.pad(x, zero, low=ends[0], high=ends[1], interior=(0,) * len(x.shape))
    return made


def filled(value: int, like: Value, shape: Sequence[int]) -> Value:
    """A constant tensor of the dtype of ``like``."""
    made: Value = prim.constant(bool(value) if like.dtype == "bool" else value, like.dtype, tuple(shape))
    return made
