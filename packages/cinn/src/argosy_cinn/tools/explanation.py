"""What a compiled program does, as text: kernels with their traffic, host calls, and memory with the lines that ask for
it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy_pir.core import Operation

if TYPE_CHECKING:
    from argosy_cinn.executable import Executable

_MOST_LINES = 2
_MOST_NAMES = 4
_MOST_BUFFERS = 8


def explain(executable: Any) -> str:
    """The segments of a compiled program with their kernel calls, host calls and memory; see also ``report()``.

    Raises ``TypeError`` for what this package did not compile.
    """
    describe = getattr(executable, "describe", None)
    if describe is None:
        raise TypeError(f"explain takes a program compiled by argosy_cinn, got {type(executable).__name__}")
    text: str = describe()
    return text


def describe(executable: Executable) -> str:
    """The lines of `explain` for one program of known sizes."""
    manifest = executable.manifest
    operations = list(executable.views.simplified().block)
    lines = [f"arena {size(manifest.arena_bytes)}, {manifest.kernels} kernels, {len(manifest.hosts)} host calls"]
    lines += [*recomputed_lines(executable), *avoidable_lines(executable, operations)]
    for i in range(manifest.segments):
        calls = [call for call in manifest.calls if call.segment == i]
        lines.append(f"segment {i}: {len(calls)} kernel calls")
        for call in calls:
            chunks = f" in {call.chunks} chunks" if call.chunks > 1 else ""
            moved = f"reads {size(call.read)}, writes {size(call.written)}"
            lines.append(f"  {call.kernel}{chunks}: {call.text}; {moved}; {places(call.made, operations)}")
        if i < len(manifest.hosts):
            op = operations[manifest.hosts[i]]
            lines.append(f"host: {op.name} ({', '.join(str(v.type) for v in op.operands)}) at {op.location}")
    lines += [f"copy to state {index}" for index in manifest.copies]
    lines += buffer_lines(executable, operations)
    return "\n".join(lines)


def recomputed_lines(executable: Executable) -> list[str]:
    """What a memory budget did, if it did something."""
    done = executable.manifest.recomputation
    if done is None:
        return []
    return [
        f"memory budget {size(done.budget)}: {size(executable.manifest.arena_bytes)} instead of "
        f"{size(done.peak_before)}, {done.steps} steps run again, {100 * done.work:.1f}% more work"
    ]


def avoidable_lines(executable: Executable, operations: Sequence[Operation]) -> list[str]:
    """Attention that is not fused, and weights that are read again, in a line each where there are any."""
    manifest, lines = executable.manifest, []
    if unfused := manifest.unfused_attention:
        shown = "; ".join(
            f"{places(u.made, operations)}{f' ({u.reason})' if u.reason else ''}" for u in unfused[:_MOST_NAMES]
        )
        total = size(sum(u.nbytes for u in unfused))
        lines.append(f"attention that is not fused: {len(unfused)}, {total} of scores in memory: {shown}")
    if repeated := manifest.repeated_reads:
        shown = "; ".join(
            f"{executable.weight_name(r) or 'a constant'} of {size(r.nbytes)} {r.read // r.nbytes} times "
            f"({places(r.made, operations)})"
            for r in repeated[:_MOST_NAMES]
        )
        again = size(sum(r.read - r.nbytes for r in repeated))
        lines.append(f"weights read more than once: {len(repeated)}, {again} read again: {shown}")
    return lines


def buffer_lines(executable: Executable, operations: Sequence[Operation]) -> list[str]:
    """The largest buffers of the arena, with when they live and the lines that made them."""
    shown = executable.manifest.buffers[:_MOST_BUFFERS]
    return [
        f"buffer {size(b.nbytes)}, steps {b.first} to {b.last}: {operations[b.position].name} "
        f"{operations[b.position].results[0].type} at {places([b.position], operations)}"
        for b in shown
    ]


def describe_memory(executable: Executable) -> str:
    """What a program needs beside its arguments, and the largest buffers of it."""
    operations = list(executable.views.simplified().block)
    peak = size(executable.manifest.arena_bytes)
    lines = [f"program '{executable.program.name}' needs {peak} for intermediate values, at its peak; the largest:"]
    return "\n  ".join([*lines, *buffer_lines(executable, operations)])


def places(positions: Iterable[int], operations: Sequence[Operation]) -> str:
    """The user's lines that some operations come from, those of the last ones first."""
    found: dict[str, None] = {}
    for position in sorted(positions, reverse=True):
        location = operations[position].location
        for part in getattr(location, "locations", (location,)):
            if not part.is_unknown:
                found[f"{Path(part.file).name}:{part.line}"] = None
    names = list(found)
    more = f" and {len(names) - _MOST_LINES} more lines" if len(names) > _MOST_LINES else ""
    return ", ".join(names[:_MOST_LINES]) + more if names else "no line"


def size(nbytes: float) -> str:
    """Bytes with a unit: ``1.5 MiB``."""
    for unit in ("B", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} B" if unit == "B" else f"{nbytes:.3g} {unit}"
        nbytes /= 1024
    return f"{nbytes:.3g} GiB"
