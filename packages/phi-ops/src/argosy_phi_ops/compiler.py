"""What a compiler is, and how one is found.

A compiler turns a program into an executable for a device. The reference interpreter is one (always there, slow,
obviously right); native ones come through the entry-point group ``argosy.compilers``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from argosy_phi_ops.errors import CompileError

if TYPE_CHECKING:
    from argosy_hwadapt import Communicator, Device
    from argosy_pir.program import Program
    from argosy_tensorcore.storage import StridedArray

__all__ = ["Compiler", "Executable", "NativeCode", "available_compilers", "get_compiler"]

ENTRY_POINTS = "argosy.compilers"
_PREFERENCE = ("cinn", "reference")


class NativeCode(NamedTuple):
    """A program as other native code calls it: ``void run(ptr table, ptr dims)`` at ``address``, with null ``dims``.
    ``table`` holds addresses: an arena's, those of the inputs, of the results from ``output`` on, and of constants,
    which are filled in. The arena is ``arena`` bytes of memory for intermediate values, aligned to 64 bytes, where
    there are any. ``owner`` keeps it alive. Arrays are contiguous; nothing but the results is written."""

    address: int
    table: tuple[int, ...]
    output: int
    owner: object
    arena: int = 0


class Executable(Protocol):
    """A compiled program.

    Buffers are strided payloads on the device it was compiled for. Inputs may have any strides; states are updated in
    place and their storage's version bumped.
    """

    program: Program

    def run(self, inputs: Sequence[StridedArray], states: Sequence[StridedArray]) -> list[StridedArray]:
        """Execute once. Raises ``ShapeError`` naming the input whose shape or dtype does not fit the program."""
        ...

    def bind(self, states: Sequence[StridedArray]) -> Callable[[Sequence[StridedArray]], list[StridedArray]]:
        """A callable for repeated execution on the same states: the fast path."""
        ...

    def report(self) -> dict[str, Any]:
        """Figures: ``kernels``, ``host_calls`` (primitives run outside compiled code, by name), ``arena_bytes``,
        ``compile_seconds``, ``cache_hit``."""
        ...


class Compiler(Protocol):
    """Makes executables."""

    def compile(
        self,
        program: Program,
        device: Device,
        communicators: Sequence[Communicator] = (),
        options: Mapping[str, Any] | None = None,
    ) -> Executable:
        """Compile ``program`` (operators, primitives and control flow). Raises :class:`CompileError`."""
        ...


_made: dict[str, Compiler] = {}


def available_compilers() -> list[str]:
    """Names of installed compilers, preferred ones first."""
    return list(_entry_point_names(tuple(sys.path)))


@lru_cache(maxsize=1)
def _entry_point_names(path: tuple[str, ...]) -> tuple[str, ...]:
    """The names that are found along ``path``: reading what each distribution provides takes 10 ms, more than loading a
    small program that was compiled before."""
    from importlib.metadata import entry_points

    names = {point.name for point in entry_points(group=ENTRY_POINTS)} | {"reference"}
    return tuple(sorted(names, key=lambda name: (_PREFERENCE.index(name) if name in _PREFERENCE else -1, name)))


def get_compiler(name: str | None = None) -> Compiler:
    """The compiler of that name; by default the first of :func:`available_compilers`.

    Raises :class:`CompileError` when there is none of that name or it cannot be loaded.
    """
    wanted = name or available_compilers()[0]
    if wanted not in _made:
        _made[wanted] = _load(wanted)
    return _made[wanted]


def _load(name: str) -> Compiler:
    from importlib.metadata import entry_points

    if name == "reference":
        from argosy_phi_ops.reference.compiler import ReferenceCompiler

        return ReferenceCompiler()
    found = {point.value: point for point in entry_points(group=ENTRY_POINTS, name=name)}
    if len(found) != 1:
        known = ", ".join(available_compilers())
        what = "is provided twice" if found else "is not installed"
        raise CompileError(f"compiler {name!r} {what}; there are: {known}")
    made: Compiler = next(iter(found.values())).load()()
    return made
