"""One way to run a primitive along one mesh dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from argosy_autoparallel.placement import Placement
from argosy_pir import Operation, TensorType

__all__ = ["Strategy", "StrategyQuery"]


class Strategy(NamedTuple):
    """Placements of operands and results along one mesh dimension; ``factor`` is the index that is split, if any.

    An entry is None for an operand or result that is no tensor.
    """

    operands: tuple[Placement, ...]
    results: tuple[Placement, ...]
    factor: str = ""


class StrategyQuery(NamedTuple):
    """What a rule is asked about: the operation with its global types, along a mesh dimension of ``size`` ranks.

    ``taken`` tells into how many parts other mesh dimensions split a factor already; ``given`` are the operands'
    present placements along this mesh dimension, ``wanted`` those that results are asked for in, where they are; unless
    ``plain`` the program has tensors that are split in blocks, or in parts of given sizes.
    """

    op: Operation
    operands: Sequence[TensorType]
    results: Sequence[TensorType]
    attributes: Mapping[str, Any]
    size: int
    taken: Mapping[str, int]
    given: Sequence[Placement]
    plain: bool = True
    wanted: Sequence[Placement | None] = ()

    @property
    def name(self) -> str:
        """The primitive's name, without its dialect."""
        return self.op.kind
