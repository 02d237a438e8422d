"""From a captured program to an executable: gradients expanded, operators decomposed, then the compiler.

``ARGOSY_DUMP`` names a folder that receives the program before and after each pass; ``ARGOSY_VERIFY=1`` checks
it there. A program whose code is in the compiler's cache needs no passes: it was checked when that code was made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import argosy_phi_ops.passes.decompose  # noqa: F401  (registers its pass)
from argosy.device.places import expected_place
from argosy_hwadapt import Device
from argosy_phi_ops.compiler import Executable, available_compilers, get_compiler
from argosy_phi_ops.context import own_context
from argosy_phi_ops.errors import CompileError
from argosy_phi_ops.process_fuel import process_fuel, settle
from argosy_phi_ops.settings import DUMP, VERIFY
from argosy_phi_ops.user_line import warn_user
from argosy_pir.passes import PassManager
from argosy_pir.program import Program
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.wait_notice import announce_wait

__all__ = [
    "PIPELINE", "Backend", "ConfiguredBackend", "build", "choose_compiler", "device_of", "lower", "passes",
    "record_stages", "simplify",
]  # fmt: skip


class ConfiguredBackend(NamedTuple):
    """A backend with options of its compiler: the bytes that intermediate values may need, and whether to measure how
    products are cut best (None: as the environment says)."""

    backend: str | None
    memory_budget: int | None = None
    tune: bool | None = None


Backend: TypeAlias = str | ConfiguredBackend | None
PIPELINE = "decompose,taylor-mode,expand-gradients,cse,dce"
RECOMPUTATION = "recompute-regions,dce"
_warned: set[str] = set()
_dumps = 0
_stages: list[tuple[str, str]] | None = None  # see `record_stages`


class _Passes:
    """The pipeline as a preparation: a compiler that knows its outcome puts it off until somebody asks."""

    def __init__(self) -> None:
        self.recipe = PIPELINE + (" verified" if _verifies() else "")

    def run(self, program: Program) -> None:
        """Run the passes in place."""
        simplify(program)


def device_of(tensors: Sequence[Any]) -> Device:
    """The device of a program that reads ``tensors``: the one that holds any of them where the host cannot see it, else
    that of new tensors here."""
    types = [x.payload.array_type for x in tensors if type(x.payload) is StridedArray]
    apart = next((t.device for t in types if t.device is not None), None)
    return apart or expected_place().device()


def lower(program: Program, backend: Backend, device: Device, at_once: bool = False) -> Executable:
    """Run the passes on ``program`` in place and compile it for ``device``.

    The passes run when somebody asks for the executable's program, where the compiler knows their outcome from
    earlier; ``at_once``: always now.
    """
    name, options = _compiler_for(backend)
    compile_prepared = getattr(get_compiler(name), "compile_prepared", None)
    with announce_wait(f"compiling {program.name!r}, {len(program.block)} operations"):
        repeats = any("recompute" in op.annotations for op in program.block)
        if at_once or repeats or compile_prepared is None or _stages is not None or DUMP.is_set:
            simplify(program)
            if repeats:
                simplify(program, RECOMPUTATION)
            return build(program, backend, device)
        executable: Executable = compile_prepared(program, _Passes(), device, (), options)
        return executable


def _verifies() -> bool:
    return VERIFY.read()


def simplify(program: Program, pipeline: str = PIPELINE) -> None:
    """Run the passes on ``program`` in place."""
    if _stages is not None:
        _stages.append((f"captured program '{program.name}'", str(program)))
    fuel = process_fuel()
    manager = PassManager(pipeline, verify=_verifies(), dump=_dump_folder(program.name), fuel=fuel)
    with own_context():
        manager.run(program)
    if fuel is not None:
        settle(manager.session.spent, manager.session.last)
    if _stages is not None:
        if manager.session.notes:
            _stages.append((f"choices for '{program.name}'", "\n".join(manager.session.notes)))
        _stages.append((f"decomposed program '{program.name}'", str(program)))


@contextmanager
def record_stages() -> Iterator[list[tuple[str, str]]]:
    """Collect the titles and texts of programs before and after the passes within the block."""
    global _stages
    previous, _stages = _stages, []
    try:
        yield _stages
    finally:
        _stages = previous


def passes(backend: Backend) -> str:
    """All passes that a captured program goes through, the compiler's included, as the text of a pipeline."""
    compiler: Any = get_compiler(_compiler_for(backend)[0])
    return ",".join([PIPELINE, *([compiler.passes()] if hasattr(compiler, "passes") else [])])


def build(program: Program, backend: Backend, device: Device, communicators: Any = ()) -> Executable:
    """Compile a program that is simplified already, for ``device``; ``communicators`` serve its communication
    primitives."""
    name, options = _compiler_for(backend)
    return get_compiler(name).compile(program, device, communicators, options)


def _compiler_for(backend: Backend) -> tuple[str, dict[str, Any]]:
    """The name of the compiler, and its options."""
    options: dict[str, Any] = {}
    if isinstance(backend, ConfiguredBackend):
        options = {name: x for name, x in backend._asdict().items() if name != "backend" and x is not None}
        backend = backend.backend
    name = choose_compiler(backend)
    if name == "reference":
        options.clear()  # it keeps nothing longer than it is needed
    return name, options


def choose_compiler(backend: str | None) -> str:
    """The name of the compiler for ``backend``: ``"CINN"``, the name of another one, or None for the reference.

    Where cinn is not installed the reference interpreter stands in, with one warning.
    """
    if backend is None:
        return "reference"
    name = backend.lower()
    if name == "cinn" and not _loads("cinn"):
        if "cinn" not in _warned:
            _warned.add("cinn")
            warn_user(
                "argosy-cinn is not installed: programs run on the slow reference interpreter; "
                "python -m pip install argosy-cinn"
            )
        return "reference"
    if name not in ("cinn", "reference") and name not in available_compilers():
        raise CompileError(f"there is no backend {backend!r}; there are {available_compilers()}")
    return name


def _loads(name: str) -> bool:
    if name not in available_compilers():
        return False
    try:
        get_compiler(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("argosy_cinn", "llvmlite"):
            raise
        return False
    return True


def _dump_folder(name: str) -> Any:
    global _dumps
    root = DUMP.read()
    if not root:
        return None
    _dumps += 1
    folder = os.path.join(root, f"{_dumps:03d}-{name}")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise CompileError(f"ARGOSY_DUMP: {folder} cannot be made ({error.strerror or error})") from error
    return folder
