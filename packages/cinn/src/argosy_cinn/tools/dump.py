"""Compilations as folders: with ``ARGOSY_DUMP=folder`` every program leaves each of its stages there.

A folder ``<number>-<name>.cinn`` holds ``program.pir`` (primitives, as given), ``passes/`` (after each pass of
the compiler, headed by the command that runs it), ``simplified.pir`` (after all), ``kernels.txt``
(what is fused, with memory and lines), ``code.ll`` (LLVM), ``code.s`` (assembly), ``code.o`` and ``manifest.json``
(what `argosy_cinn.tools.replay` runs), and, once it has run, ``inputs.npz``: the arguments of its first call, as bytes,
and the sizes that were not known before. Programs with such sizes leave ``kernels.txt`` then, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_cinn.runtime import compile_assembly
from argosy_cinn.target import Target
from argosy_phi_ops.errors import CompileError
from argosy_phi_ops.settings import DUMP
from argosy_pir.program import Program
from argosy_tensorcore.storage import StridedArray

if TYPE_CHECKING:
    from argosy_cinn.executable import Executable
    from argosy_cinn.specialise import SpecialisingExecutable
    from argosy_cinn.store.program_cache import Manifest

#: Arguments larger than this together are not recorded.
_MOST_INPUTS = 1 << 28
#: What the names of recorded sizes begin with.
SIZE = "size "
_numbers = count(1)


def is_dumping() -> bool:
    """Whether compilations are to be dumped."""
    return DUMP.is_set


def dump(name: str, program: Program, simplified: Program, manifest: Manifest, code: bytes, text: str) -> Path:
    """Write all stages of a compilation; returns the folder. Raises `CompileError` where none can be made."""
    folder = _next_folder(name)
    (folder / "program.pir").write_text(str(program))
    (folder / "simplified.pir").write_text(str(simplified))
    (folder / "code.ll").write_text(text)
    (folder / "code.s").write_text(compile_assembly(text, Target.host()))
    (folder / "code.o").write_bytes(code)
    (folder / "manifest.json").write_text(json.dumps(asdict(manifest)))
    return folder


def record(executable: Executable, folder: Path) -> None:
    """Write what an executable does, and, when it is called, with what."""
    (folder / "kernels.txt").write_text(executable.describe() + "\n")
    executable.bind = _record_first_call(executable.bind, folder / "inputs.npz")  # type: ignore[method-assign, assignment]


def record_sizes(executable: SpecialisingExecutable, folder: Path) -> None:
    """Write, when it is called first, what a program with symbolic sizes does, and with what."""
    plain = executable.bind

    def bind(states: Sequence[StridedArray]) -> Call:
        call = plain(states)

        def first_call(inputs: Sequence[StridedArray]) -> list[StridedArray]:
            if not (folder / "inputs.npz").exists():
                sizes = executable.sizes_of(inputs, states)
                _save(folder / "inputs.npz", inputs, states, sizes)
            results = call(inputs)
            if not (folder / "kernels.txt").exists():
                (folder / "kernels.txt").write_text(executable.describe() + "\n")
            return results

        return first_call

    executable.bind = bind  # type: ignore[method-assign]


def _next_folder(name: str) -> Path:
    label = re.sub(r"[^\w.-]", "_", name) or "program"
    folder = Path(DUMP.read()) / f"{next(_numbers):03d}-{label}.cinn"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CompileError(f"ARGOSY_DUMP: {folder} cannot be made ({error.strerror or error})") from error
    return folder


Call = Callable[[Sequence[StridedArray]], list[StridedArray]]
Bind = Callable[[Sequence[StridedArray]], Call]


def _record_first_call(bind: Bind, path: Path) -> Bind:
    """``bind`` whose callables record the arguments of the first call of all."""

    def bind_recorded(states: Sequence[StridedArray]) -> Call:
        call = bind(states)

        def first_call(inputs: Sequence[StridedArray]) -> list[StridedArray]:
            if not path.exists():
                _save(path, inputs, states, {})
            return call(inputs)

        return first_call

    return bind_recorded


def _save(path: Path, inputs: Sequence[StridedArray], states: Sequence[StridedArray], sizes: Mapping[str, int]) -> None:
    arrays: dict[str, Any] = {f"input{i}": p.array() for i, p in enumerate(inputs)}
    arrays |= {f"state{i}": p.array() for i, p in enumerate(states)}
    if sum(a.nbytes for a in arrays.values()) <= _MOST_INPUTS:
        # bytes: numpy's files know no bfloat16
        data: dict[str, Any] = {name: np.frombuffer(a.tobytes(), np.uint8) for name, a in arrays.items()}
        data.update((SIZE + name, np.array(n)) for name, n in sizes.items())
        np.savez(path, **data)
