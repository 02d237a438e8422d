"""Running dumped programs again: ``python -m argosy_cinn replay FOLDER [--against FOLDER]``.

The program of a dump is compiled by the present generator and compared with the reference interpreter and with the code
that was dumped (or that of another folder: what another commit made of the same program), on recorded inputs where
there are some, else on random ones. All are timed, and functions whose LLVM text is no longer what it was are named: a
change that should change no code proves itself so.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from argosy_cinn.assembly.building import generated_code
from argosy_cinn.compiler import CinnCompiler, region_compiler
from argosy_cinn.executables import load_compiled
from argosy_cinn.runtime import ObjectCache
from argosy_cinn.shapes import TYPICAL
from argosy_cinn.store.program_cache import manifest_of
from argosy_cinn.tools.dump import SIZE
from argosy_cinn.tools.explanation import size
from argosy_cinn.tools.measure import time
from argosy_cinn.tools.report import Table
from argosy_hwadapt import device
from argosy_phi_ops.reference.interpreter import interpret
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_phi_ops.reference.symbols import evaluate_shape
from argosy_pir.program import Program
from argosy_tensorcore.storage import StridedArray

Array = np.ndarray[Any, Any]
Executable = Any


def main(arguments: Sequence[str]) -> int:
    """The command line; returns 1 where the present code is further from the reference than rounding explains."""
    parser = argparse.ArgumentParser(prog="python -m argosy_cinn replay", description="Run a dumped program again.")
    parser.add_argument("folder", type=Path, help="a folder that ARGOSY_DUMP made")
    parser.add_argument("--against", type=Path, help="a dump of the same program by another commit")
    parser.add_argument("--size", action="append", default=[], metavar="NAME=N",
                        help="a size that was not known at compile time (default: as recorded, else 128)")  # fmt: skip
    parser.add_argument("--repeat", type=int, default=20, help="timed runs of each (default 20)")
    given = parser.parse_args(arguments)
    for folder in filter(None, (given.folder, given.against)):
        if not all((folder / name).is_file() for name in ("program.pir", "simplified.pir")):
            parser.error(f"{folder} is no dump of a compiled program: expected a folder <number>-<name>.cinn, as "
                         "ARGOSY_DUMP=folder leaves them in that folder")  # fmt: skip
    try:
        table, good = replay(given.folder, given.against or given.folder, given.repeat, dict(map(_size, given.size)))
    except ValueError as error:  # sizes that it does not have, a dump of another version
        parser.error(str(error))
    sys.stdout.write("\n".join([*table.text(), "", code_line(given.folder, given.against or given.folder), ""]))
    return 0 if good else 1


def _size(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not name or not number.isdecimal():
        raise SystemExit(f"--size {text}: expected a name and a number, as in --size n=512")
    return name, int(number)


def replay(
    folder: Path, against: Path, repeats: int = 20, sizes: Mapping[str, int] | None = None
) -> tuple[Table, bool]:
    """A table of errors and times, and whether the present code agrees with the reference. ``sizes``: those of a
    program whose sizes are known at run time; where they are not the recorded ones, arguments are random."""
    program = Program.parse((folder / "program.pir").read_text(), str(folder))
    symbols = sizes_of(program, folder, sizes or {})
    inputs, states = arguments_of(program, folder, symbols)
    outputs, updates = interpret(program, inputs, [s.copy() for s in states])
    wanted = [*outputs, *updates]
    now = CinnCompiler().compile(program, device("cpu"), options={"cache": ObjectCache(None)})
    rows: list[Sequence[str]] = []
    good = True
    for label, executable in (("present", now), (f"dumped in {against.name}", load_dump(against, symbols))):
        difference = _difference(_results(executable, inputs, states), wanted)
        good &= label != "present" or difference <= _tolerance(wanted)
        facts = executable.report()
        seconds = _least_time(executable, inputs, states, repeats)
        memory = size(facts["arena_bytes"])
        rows.append([label, f"{difference:.2g}", time(seconds), str(facts["kernel_calls"]), memory])
    return Table(["code", "largest error", "time", "kernel calls", "arena"], rows), good


def code_line(folder: Path, against: Path) -> str:
    """Whether the present generator makes the LLVM text that is in ``against`` of the program in ``folder``; where it
    does not, which functions differ."""
    program = Program.parse((folder / "program.pir").read_text(), str(folder))
    now, then = functions(generated_code(program)), functions((against / "code.ll").read_text())
    names = [name for name in {**then, **now} if now.get(name) != then.get(name)]
    if not names:
        return f"LLVM text: as in {against.name}"
    told = [name + ("" if name in now and name in then else " (gone)" if name in then else " (new)") for name in names]
    return f"LLVM text: {len(names)} of {len({**then, **now})} functions differ: {', '.join(told)}"


_DEFINITION = re.compile(r'^define [^@]*@"?([^"(]+).*?^}', re.MULTILINE | re.DOTALL)


def functions(text: str) -> dict[str, str]:
    """The definitions of an LLVM module by their names."""
    return {found[1]: found[0] for found in _DEFINITION.finditer(text)}


def sizes_of(program: Program, folder: Path, given: Mapping[str, int]) -> dict[str, int]:
    """The number of each symbol of a program: given, recorded, or a typical one. Raises ValueError for what is no
    symbol of it."""
    if not given.keys() <= set(program.symbols()):
        unknown = sorted(given.keys() - set(program.symbols()))
        raise ValueError(f"the program of {folder} has no sizes {unknown}; it has {list(program.symbols())}")
    recorded: dict[str, int] = {}
    if (folder / "inputs.npz").exists():
        with np.load(folder / "inputs.npz") as found:
            recorded = {name.removeprefix(SIZE): int(found[name]) for name in found.files if name.startswith(SIZE)}
    return {name: given.get(name, recorded.get(name, TYPICAL)) for name in program.symbols()}


def load_dump(folder: Path, symbols: Mapping[str, int] | None = None) -> Executable:
    """The executable of a dump's own machine code. Raises ValueError where it is for another program version."""
    program = Program.parse((folder / "simplified.pir").read_text(), str(folder))
    try:
        manifest = manifest_of(json.loads((folder / "manifest.json").read_text()))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{folder} was dumped by a version whose manifest has other fields: {error}") from error
    code, host = (folder / "code.o").read_bytes(), device("cpu")
    return load_compiled(program, manifest, code, host, region_compiler(host, {}, {}), symbols)


def arguments_of(
    program: Program, folder: Path, symbols: Mapping[str, int] | None = None
) -> tuple[list[Array], list[Array]]:
    """Recorded inputs and states of a dump, or random ones where there are none, or ``symbols`` are others."""
    known = dict(symbols or {})
    recorded = folder / "inputs.npz"
    inputs, states = program.inputs, [s.argument for s in program.states]
    if recorded.exists() and sizes_of(program, folder, {}) == known:
        with np.load(recorded) as found:
            return tuple(  # type: ignore[return-value]
                [
                    found[f"{name}{i}"].view(numpy_dtype(v.dtype)).reshape(evaluate_shape(v.shape, known))
                    for i, v in enumerate(values)
                ]
                for name, values in (("input", inputs), ("state", states))
            )
    rng = np.random.default_rng(0)
    return [_random(rng, v, known) for v in inputs], [_random(rng, v, known) for v in states]


def _random(rng: np.random.Generator, value: Any, symbols: dict[str, int]) -> Array:
    dtype, shape = numpy_dtype(value.dtype), evaluate_shape(value.shape, symbols)
    if dtype.kind in "iub":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _results(executable: Executable, inputs: Sequence[Array], states: Sequence[Array]) -> list[Array]:
    held = [StridedArray.from_array(s.copy()) for s in states]
    outputs = executable.run([StridedArray.from_array(a) for a in inputs], held)
    return [p.array() for p in (*outputs, *held)]


def _difference(got: Sequence[Array], wanted: Sequence[Array]) -> float:
    """The largest error relative to the largest magnitude of each result; infinite where only one is a number."""
    worst = 0.0
    for g, w in zip(got, wanted, strict=True):
        if w.size == 0:
            continue
        wide = np.complex128 if w.dtype.kind == "c" else np.float64
        a, b = g.astype(wide), w.astype(wide)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        with np.errstate(invalid="ignore"):
            error = np.where(same, 0, np.abs(a - b))
        finite = np.abs(b[np.isfinite(b)])
        error = np.where(np.isnan(error), np.inf, error)
        worst = max(worst, float(error.max() / max(finite.max(initial=0.0), 1e-30)))
    return worst


def _tolerance(wanted: Sequence[Array]) -> float:
    """Sums in another order differ: a thousand rounding steps of the coarsest dtype."""
    steps = [_unit_roundoff(w.dtype) for w in wanted]
    return 1000 * max(steps, default=0.0)


def _unit_roundoff(dtype: np.dtype[Any]) -> float:
    if dtype.kind in "iub":
        return 0.0
    return {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(dtype.name, 2.0**-24 if dtype.itemsize <= 4 else 2.0**-53)


def _least_time(executable: Executable, inputs: Sequence[Array], states: Sequence[Array], repeats: int) -> float:
    bound: Callable[..., Any] = executable.bind([StridedArray.from_array(s.copy()) for s in states])
    payloads = [StridedArray.from_array(a) for a in inputs]
    found = []
    for _ in range(repeats):
        started = perf_counter()
        bound(payloads)
        found.append(perf_counter() - started)
    return min(found)
