"""``strict``: a block in which nobody gathers a tensor without having been asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

from argosy_autoparallel.placement import Shard
from argosy_autoparallel.tensor_layout import Layout, print_layout
from argosy_phi_ops.context import context
from argosy_phi_ops.eager.dispatch import Interpreter, layer
from argosy_pir import Operation
from argosy_tensorcore.dtype import as_dtype

__all__ = ["ImplicitGatherError", "check_gather", "is_strict", "strict"]

_KEY = "argosy.strict"


class ImplicitGatherError(RuntimeError):
    """An operation needs whole what is split, and nobody has asked for that."""


@contextmanager
def strict() -> Iterator[None]:
    """Within the block an operation that would gather an operand, which is split, on each rank raises
    :class:`ImplicitGatherError` with operation, layouts, bytes and line. ``reshard`` and its kin, the layouts of states
    and sums over ranks are not meant; programs are looked at when they are partitioned, at their first call.
    """
    values = context().values
    values[_KEY] = values.get(_KEY, 0) + 1
    try:
        with layer(Interpreter()):  # applications that were partitioned before are not used
            yield
    finally:
        values[_KEY] -= 1


def is_strict() -> bool:
    """Whether this rank is in such a block."""
    return bool(context().values.get(_KEY))


def check_gather(op: Operation, source: Layout, target: Layout, shape: tuple[int, ...], dtype: str) -> None:
    """Raise :class:`ImplicitGatherError` where going from ``source`` to ``target`` gathers along a mesh dimension for
    ``op``."""
    pairs = zip(source.placements, target.placements, strict=True)
    if source.mesh == target.mesh and not any(isinstance(a, Shard) and b.is_replicated() for a, b in pairs):
        return
    nbytes = prod(shape) * as_dtype(dtype).itemsize
    line = op.location.suffix
    raise ImplicitGatherError(
        f"'{op.name}'{line} gathers {dtype}{list(shape)}, {nbytes:,} bytes, from '{print_layout(source)}' to "
        f"'{print_layout(target)}': reshard it where that is meant, or lay the operands out otherwise"
    )
