"""Placements: what one dimension of a mesh does with a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum


class ReduceType(IntEnum):
    """How the parts of a partial tensor combine to its value."""

    kRedSum = 0
    kRedMax = 1
    kRedMin = 2
    kRedProd = 3
    kRedAvg = 4
    kRedAny = 5
    kRedAll = 6


class Placement:
    """Base of the three placements: there is one per dimension of the mesh. Immutable and hashable."""

    __slots__ = ()

    def is_shard(self, dim: int | None = None) -> bool:
        """Say whether the tensor is split here (along tensor dimension ``dim``, if given)."""
        return False

    def is_replicated(self) -> bool:
        """Say whether every rank along this mesh dimension holds the same values."""
        return False

    def is_replicate(self) -> bool:
        """Say the same as :meth:`is_replicated`."""
        return self.is_replicated()

    def is_partial(self) -> bool:
        """Say whether the value is a reduction, still to be made, over the ranks of this mesh dimension."""
        return False


class Replicate(Placement):
    """Every rank along this mesh dimension holds the whole tensor."""

    __slots__ = ()

    def is_replicated(self) -> bool:
        """Return True."""
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Replicate)

    def __hash__(self) -> int:
        return hash(Replicate)

    def __repr__(self) -> str:
        return "Replicate()"


class Shard(Placement):
    """Tensor dimension ``dim`` is split along this mesh dimension; a negative one counts from the end.

    With ``split_factor`` it is that many equal blocks, one behind the other, each of which is split: of the columns of
    a fused projection [query, key, value] in three blocks each rank has a part of each, of blocks that do not divide
    uneven ones. With ``sizes`` the ranks along the mesh dimension have parts of so many elements of each block, in
    order, none for some perhaps; without, those that ceiling division gives.

    >>> from argosy_autoparallel import Shard
    >>> Shard(0, sizes=[3, 5])
    Shard(dim=0, sizes=(3, 5))
    """

    __slots__ = ("_dim", "_sizes", "_split_factor")

    def __init__(self, dim: int, split_factor: int = 1, sizes: Sequence[int] | None = None) -> None:
        if not isinstance(dim, int) or isinstance(dim, bool):
            raise TypeError(f"Shard needs the number of a tensor dimension, got {dim!r}")
        if not isinstance(split_factor, int) or isinstance(split_factor, bool) or split_factor < 1:
            raise ValueError(f"Shard(split_factor) is a number of blocks, one at least, got {split_factor!r}")
        if sizes is not None and (not sizes or any(type(n) is not int or n < 0 for n in sizes)):
            raise ValueError(f"Shard(sizes) is how many elements each rank has, one number for each, got {sizes!r}")
        self._dim = dim
        self._split_factor = split_factor
        self._sizes = None if sizes is None else tuple(sizes)

    @property
    def dim(self) -> int:
        """The tensor dimension as given."""
        return self._dim

    @property
    def split_factor(self) -> int:
        """The number of blocks."""
        return self._split_factor

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """How many elements of each block the ranks have, where that was given."""
        return self._sizes

    @property
    def is_plain(self) -> bool:
        """Whether the axis is one block, cut by ceiling division."""
        return self._split_factor == 1 and self._sizes is None

    def with_dim(self, dim: int) -> Shard:
        """The same of another tensor dimension."""
        return Shard(dim, self._split_factor, self._sizes)

    def get_dim(self) -> int:
        """Return the tensor dimension as given."""
        return self._dim

    def get_split_factor(self) -> int:
        """Return the number of blocks."""
        return self._split_factor

    def is_shard(self, dim: int | None = None) -> bool:
        """Say whether this splits tensor dimension ``dim`` (any, when None)."""
        return dim is None or dim == self._dim

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Shard):
            return False
        return (other._dim, other._split_factor, other._sizes) == (self._dim, self._split_factor, self._sizes)

    def __hash__(self) -> int:
        return hash((Shard, self._dim, self._split_factor, self._sizes))

    def __repr__(self) -> str:
        blocks = f", split_factor={self._split_factor}" if self._split_factor > 1 else ""
        sizes = "" if self._sizes is None else f", sizes={self._sizes}"
        return f"Shard(dim={self._dim}{blocks}{sizes})"


class Partial(Placement):
    """Each rank along this mesh dimension holds a term; the tensor is their reduction."""

    __slots__ = ("_reduce_type",)

    def __init__(self, reduce_type: ReduceType = ReduceType.kRedSum) -> None:
        self._reduce_type = ReduceType(reduce_type)

    def reduce_type(self) -> ReduceType:
        """Return how the terms combine."""
        return self._reduce_type

    def is_partial(self) -> bool:
        """Return True."""
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partial) and other._reduce_type == self._reduce_type

    def __hash__(self) -> int:
        return hash((Partial, self._reduce_type))

    def __repr__(self) -> str:
        return f"Partial(reduce_type={self._reduce_type.name.removeprefix('kRed').upper()})"
