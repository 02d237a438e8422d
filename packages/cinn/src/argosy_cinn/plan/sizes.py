"""What of an executable depends on sizes: of programs whose sizes are known, and of code for all sizes at some.

A new combination of sizes costs the evaluation of formulas that were compiled once, and the placing of intermediate
values by an arrangement that is made for each order of magnitude of the sizes.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any, NamedTuple

from argosy_cinn.plan.formulas import Formulas
from argosy_cinn.plan.memory import Arrangement, Lifetime, on_own_pages
from argosy_cinn.shapes import LARGE, Size, size_of_formula
from argosy_cinn.store.program_cache import Manifest
from argosy_phi_ops.errors import DTypeError, ShapeError
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.dims import is_static
from argosy_pir.program import Program
from argosy_tensorcore.storage import StridedArray

Shape = tuple[int, ...]

#: Elements of a tensor that code for all sizes counts in 32 bits, with room for sums of two positions.
_MOST_ELEMENTS = 1 << 29


@dataclass(frozen=True, slots=True)
class Sizes:
    """``signature``: shape and dtype of inputs and states; ``outputs``: shape, dtype, and whether the memory comes from
    the device, whose pages are huge and reused; ``dims``: the table of sizes that code for all sizes is called with;
    ``work``: bytes and operations of a run, about; ``symbols``: the sizes by name, where the program has such;
    ``guarded``: bytes of the values of the arena, where they are guarded."""

    signature: list[tuple[Shape, str]]
    outputs: list[tuple[Shape, Any, bool]]
    arena_bytes: int
    work: int
    symbols: Mapping[str, int] | None = None
    dims: array[int] | None = None
    guarded: Sequence[int] | None = None


def check_argument(expected: tuple[Shape, str], payload: StridedArray, label: str) -> None:
    """Raise ``ShapeError`` or ``DTypeError`` where an argument has another shape or dtype than a signature says."""
    shape, dtype = expected
    if tuple(payload.shape) != shape:
        raise ShapeError(f"{label} has shape {list(payload.shape)}, the program expects {list(shape)}")
    if payload.dtype.name != dtype:
        raise DTypeError(f"{label} has dtype {payload.dtype.name}, the program expects {dtype}")


def make_sizes(program: Program, manifest: Manifest) -> Sizes:
    """The sizes of a program that has no symbols."""
    arguments, results = program.block.arguments, program.outputs
    signature: list[tuple[Shape, str]] = [(v.shape, v.dtype) for v in arguments]  # type: ignore[misc]  # no symbols
    work = sum(c.read + c.written + c.operations for c in manifest.calls)
    outputs = [_output(v.shape, numpy_dtype(v.dtype)) for v in results]
    guarded = [int(nbytes) for nbytes, _, _ in manifest.lifetimes] if manifest.guard else None
    return Sizes(signature, outputs, manifest.arena_bytes, work, guarded=guarded)


def _output(shape: Any, dtype: Any) -> tuple[Shape, Any, bool]:
    return shape, dtype, prod(shape) * dtype.itemsize >= LARGE


class SizeFacts(NamedTuple):
    """What of a manifest the sizes of a program with symbols follow from."""

    symbols: Sequence[str]
    lifetimes: Sequence[tuple[Any, int, int]]
    calls: Sequence[Any] = ()
    guard: str = ""


class SizeFormulas:
    """The sizes of a program with symbols. ``shapes``: those of all its values."""

    def __init__(self, program: Program, manifest: Manifest | SizeFacts, shapes: Sequence[Sequence[Size]]) -> None:
        self._symbols, self._guard = manifest.symbols, manifest.guard
        self._signature: list[Any] = [(v.shape, v.dtype) for v in program.block.arguments]
        self._open = [
            (i, v.dtype, len(v.shape)) for i, v in enumerate(program.block.arguments) if not is_static(v.shape)
        ]
        self._results = [(len(v.shape), numpy_dtype(v.dtype)) for v in program.outputs]
        self._lives = [(first, last) for _, first, last in manifest.lifetimes]
        dims = [n for i, _, _ in self._open for n in self._signature[i][0]] + [
            n for v in program.outputs for n in v.shape
        ]
        nbytes = [size_of_formula(nbytes) for nbytes, _, _ in manifest.lifetimes]
        work = [size_of_formula(x) for c in manifest.calls for x in (c.read, c.written, c.operations)]
        open_shapes = [
            shape for shape in shapes if not is_static(shape) and 0 not in shape
        ]  # others: known to be empty
        self._counts = Formulas([prod(shape) for shape in open_shapes], self._symbols)
        known = [prod(shape) for shape in shapes if is_static(shape)]
        self._may_serve = all(isinstance(n, int) and n < _MOST_ELEMENTS for n in known)
        self._formulas = Formulas([*dims, *nbytes, sum(work)], self._symbols)
        self._arrangements: dict[tuple[int, ...], Arrangement] = {}

    def sizes_at(self, symbols: Mapping[str, int]) -> Sizes | None:
        """The sizes for these symbols; None where code for all sizes does not serve them: a tensor has no elements, or
        too many."""
        numbers = [symbols[name] for name in self._symbols]
        if (
            not self._may_serve
            or 0 in numbers
            or not all(0 < n < _MOST_ELEMENTS for n in self._counts.evaluate(numbers))
        ):
            return None
        found = iter(self._formulas.evaluate(numbers))
        signature = self._signature.copy()
        for i, dtype, rank in self._open:
            signature[i] = tuple(islice(found, rank)), dtype
        results = [_output(tuple(islice(found, rank)), dtype) for rank, dtype in self._results]
        *nbytes, work = found
        guard, guarded = self._guard, nbytes if self._guard else None
        placed = on_own_pages(nbytes, guard) if guard else self._arrangement(numbers, nbytes).place(nbytes)
        dims = array("q", [*numbers, *placed[0]])
        return Sizes(signature, results, placed[1], work, dict(symbols), dims, guarded)

    def _arrangement(self, numbers: Sequence[int], nbytes: Sequence[int]) -> Arrangement:
        magnitude = tuple([n.bit_length() for n in numbers])
        found = self._arrangements.get(magnitude)
        if found is None:
            lives = zip(nbytes, self._lives, strict=True)
            made = Arrangement([Lifetime(i, n, first, last) for i, (n, (first, last)) in enumerate(lives)])
            found = self._arrangements.setdefault(magnitude, made)
        return found


__all__ = ["SizeFacts", "SizeFormulas", "Sizes", "check_argument", "make_sizes"]
