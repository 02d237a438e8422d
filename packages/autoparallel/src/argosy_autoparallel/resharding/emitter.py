"""Where local programs are written: the builder of one rank, its place on the mesh and the chain of tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Block, Builder, Operation, Program, Value
from argosy_pir.values import OpResult
from argosy_tensorcore.dtype import as_dtype

__all__ = ["CollectiveNote", "Emission", "Emitter"]


class CollectiveNote(NamedTuple):
    """An emitted all-reduce, reduce-scatter or all-gather, and what tells all ranks alike which others may be made with
    it.

    Those of one ``key`` may, which begins with the kind; the result is ``wanted`` by an operation of the global
    program (by number); the operand was there since that with the number ``ready``, or comes from the collective number
    ``after``, or (neither) is made just before. ``nbytes`` is the size of the terms of a sum or of what is gathered, if
    axes divide evenly. ``place`` counts this rank's operations that come of the global ones up to ``ready``.
    """

    op: Operation
    key: Any
    wanted: int
    ready: int | None
    after: int | None
    nbytes: float
    place: int = 0


class Emission(NamedTuple):
    """What was emitted for operations of the global program behind that with the number ``clock``: local ``ops``, the
    last of them or of those ``last`` before each, the ``token`` before and the ``notes``, from that with the number
    ``noted``; ``terms`` behind all."""

    clock: int
    last: Operation | None
    token: Value | None
    noted: int
    ops: Sequence[Operation] = ()
    ends: Sequence[Operation | None] = ()
    notes: Sequence[CollectiveNote] = ()
    terms: tuple[int | None, int | None] = None, None
    end_token: Value | None = None


class Emitter:
    """Writes the local program of one ``rank``, or a block of it. All its communication is in one chain of tokens."""

    def __init__(self, program: Program, rank: int, block: Block | None = None) -> None:
        self.block = program.block if block is None else block
        self.rank = rank
        self.builder = Builder.at_end(self.block)
        self._token: Value | None = None
        self.groups: set[tuple[int, ...]] = set()
        self.clock = -1
        """The number of the operation of the global program that is worked on; -1 before the first."""
        self._ends: list[Operation | None] = []
        """This rank's last operation before each of those."""
        self.notes: list[CollectiveNote] = []
        self.terms: tuple[int | None, int | None] = None, None
        """Where the operand of the next collective comes from: ``ready`` and ``after`` of :class:`CollectiveNote`."""
        self.needed_by: tuple[str, ...] = ()
        """The operation that communication is for where nobody asked for it, as collectives are annotated."""

    def advance(self) -> None:
        """The next operation of the global program is worked on."""
        self.clock += 1
        self._ends.append(self.block.last)

    def mark(self) -> Emission:
        """What is emitted from now on begins here."""
        return Emission(self.clock, self.block.last, self._token, len(self.notes))

    def emitted_since(self, mark: Emission) -> Emission:
        """All that was emitted since then."""
        ops, op = [], self.block.first if mark.last is None else mark.last.next
        while op is not None:
            ops.append(op)
            op = op.next
        ends, notes = self._ends[mark.clock + 1 :], self.notes[mark.noted :]
        return mark._replace(ops=ops, ends=ends, notes=notes, terms=self.terms, end_token=self._token)

    def repeat(
        self, of: Emission, values: dict[Value, Value], clocks: Mapping[int, int], renew: Callable[[Operation], None]
    ) -> None:
        """Emit copies of what was: of other ``values``, which those of the copies are added to, at other ``clocks``.
        ``renew`` changes each copy."""
        if of.token is not None and self._token is not None:
            values[of.token] = self._token
        before, noted, copies = self.block.last, len(self.notes) - of.noted, dict[Operation | None, Operation]()
        for op in of.ops:
            copies[op] = self.block.append(op.clone(values))
            renew(copies[op])
        self._ends += [copies.get(end, before) for end in of.ends]
        self.clock += len(of.ends)
        self._token = self._token if of.end_token is None else values[of.end_token]

        def shift(ready: int | None, after: int | None) -> tuple[int | None, int | None]:
            return None if ready is None else clocks[ready], None if after is None else after + noted

        for note in of.notes:
            ready, after = shift(note.ready, note.after)
            self.notes.append(note._replace(op=copies[note.op], wanted=clocks[note.wanted], ready=ready, after=after))
        self.terms = shift(*of.terms)

    def places(self) -> list[CollectiveNote]:
        """The notes with their places."""
        number = {op: at + 1 for at, op in enumerate(self.block)}
        ends = [0 if op is None else number[op] for op in self._ends]
        return [s if s.ready is None else s._replace(place=ends[s.ready + 1]) for s in self.notes]

    def emit_here(self) -> AbstractContextManager[Builder]:
        """Primitives called within the block are emitted here."""
        return emit_at(self.builder)

    def line(self, mesh: ProcessMesh, dim: int) -> tuple[tuple[int, ...], int]:
        """The ranks along a mesh dimension through this one, and its coordinate there."""
        return line_of(mesh, dim, self.rank)

    def collect(
        self, name: str, x: Value, layout: Layout, shape: tuple[int, ...], dim: int, **attributes: Any
    ) -> Value:
        """Emit the collective ``name`` of ``x`` along a mesh dimension. ``layout`` is that of the terms of a sum or of
        what is gathered, a tensor of ``shape``. It is noted, so that several may be made together, where its sizes
        are numbers.
        """
        group, _ = self.line(layout.mesh, dim)
        made = self.communicate(name, x, group=group, size=len(group), **attributes)
        assert isinstance(made, OpResult)
        if x.type.is_static:  # type: ignore[attr-defined]
            nbytes = prod(shape) * as_dtype(x.dtype).itemsize / layout.parts()
            key = name, layout.mesh, dim, attributes.get("kind"), x.dtype
            self.notes.append(CollectiveNote(made.op, key, self.clock, *self.terms, nbytes))
        return made

    def communicate(self, name: str, x: Value | None, **attributes: Any) -> Value | None:
        """Emit a communication primitive at the end of the chain of tokens; its tensor result, where it has one."""
        if self._token is None:
            self._token = prim.create_token()
        if "group" in attributes:
            self.groups.add(attributes["group"])
        operands = () if x is None else (x,)
        *values, self._token = results = _as_list(getattr(prim, name)(*operands, self._token, **attributes))
        if self.needed_by:
            results[0].op.annotate(needed_by=self.needed_by)  # type: ignore[attr-defined]
        return values[0] if values else None


def _as_list(results: Value | tuple[Value, ...]) -> list[Value]:
    return list(results) if isinstance(results, tuple) else [results]


@lru_cache(maxsize=4096)
def line_of(mesh: ProcessMesh, dim: int, rank: int) -> tuple[tuple[int, ...], int]:
    """The ranks along mesh dimension ``dim`` through ``rank``, and the coordinate of ``rank`` among them."""
    where = mesh.coordinate(rank)
    index = tuple(slice(None) if i == dim else c for i, c in enumerate(where))
    return tuple(int(r) for r in mesh.mesh[index]), where[dim]


def shape_of(value: Value) -> tuple[int, ...]:
    """The shape of a value, symbolic sizes included, with which parts are computed like with numbers."""
    return value.shape  # type: ignore[return-value]


def static_shape(value: Value) -> tuple[int, ...]:
    """The shape of a value of static sizes. Raises ``NotImplementedError`` for others."""
    shape = value.shape
    for size in shape:
        if type(size) is not int:
            raise NotImplementedError(
                f"partition: what is to be done with {value.type} on a mesh is not implemented for symbolic sizes"
            )
    return shape  # type: ignore[return-value]


def block(x: Value, axis: int, start: int, length: int) -> Value:
    """``length`` indices of ``axis`` from ``start``."""
    if start == 0 and length == x.shape[axis]:
        return x
    begin = tuple(start if i == axis else 0 for i in range(len(x.shape)))
    limit = tuple(start + length if i == axis else n for i, n in enumerate(x.shape))
    return prim.slice(x, start=begin, limit=limit, stride=(1,) * len(x.shape))  # type: ignore[no-any-return]


def neutral_term(dtype: str) -> Any:
    """What a sum does not change by, to the bit: of floating-point numbers that is -0.0, since 0.0 + -0.0 is 0.0."""
    if dtype == "bool":
        return False
    kind = as_dtype(dtype).kind
    return complex(-0.0, -0.0) if kind == "c" else -0.0 if kind == "f" else 0


def pad_terms(x: Value, axis: int, low: int, high: int) -> Value:
    """Terms of a sum that add nothing put before and behind along ``axis``."""
    if not low and not high:
        return x
    ends = [tuple(n if i == axis else 0 for i in range(len(x.shape))) for n in (low, high)]
    zero = prim.constant(neutral_term(x.dtype), x.dtype)
    made: Value = prim.pad(x, zero, low=ends[0], high=ends[1], interior=(0,) * len(x.shape))
    return made
