"""The limits of this machine: the copy bandwidth of its memory and caches and its rate of multiply-adds. The best that
was ever measured is kept in the object cache: others who used the machine meanwhile only make it look slower."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from time import perf_counter

import numpy as np

from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import FLOAT, I64, PTR, VOID, constant, vector
from argosy_cinn.runtime import default_cache, entry, load, parallel_for
from argosy_cinn.runtime.cache import cache_key
from argosy_cinn.runtime.entry import Entry
from argosy_cinn.runtime.workers import workers
from argosy_cinn.target import Target

_COPIED = 1 << 26
_CHUNKS = 64
_STEPS = 1 << 15
_SUMS = 10
_REPEATS = 5
#: Seconds that streams are repeated for: those in caches are over in microseconds.
_SECONDS = 0.3
#: Bytes of what a stream's turn of the loop takes of each operand, whole cache lines, and at least of its chunks.
_LINE, _CHUNK_BYTES = 256, 1 << 17
_CHUNK_PARAMETERS = [("ptr", "table"), ("i64", "chunk"), ("i64", "chunks")]


@dataclass(frozen=True, slots=True)
class Limits:
    """``bandwidth``: bytes a second that a copy reads and writes together. ``rate``: float32 operations a second, two
    for a multiply-add. Both on ``threads`` threads; the best of ``times`` measurements, the last one at ``measured``
    (UTC, in the manner of ISO 8601)."""

    bandwidth: float
    rate: float
    threads: int
    measured: str = ""
    times: int = 1

    def merge(self, later: Limits) -> Limits:
        """The best of these and of what a later measurement found."""
        return Limits(
            max(self.bandwidth, later.bandwidth), max(self.rate, later.rate), later.threads,
            later.measured, self.times + later.times,
        )  # fmt: skip

    def seconds(self, nbytes: int, operations: int) -> float:
        """The least time for so much traffic and work: memory and arithmetic overlap."""
        return max(nbytes / self.bandwidth, operations / self.rate)


def limits(beaten: Limits | None = None) -> Limits:
    """The limits for the present number of threads: the kept ones, or measured where none are; measured again where
    something was faster than ``beaten``, and the best kept."""
    key = cache_key("limits 2", Target.host().key, (workers().threads,))
    stored = default_cache().get(key)
    if stored is not None and beaten is None:
        return Limits(**json.loads(stored))
    found = measured_limits()
    best = found if beaten is None else beaten.merge(found)
    default_cache().put(key, json.dumps(asdict(best)).encode())
    return best


def measured_limits() -> Limits:
    """The same, measured now, whatever is kept."""
    target, threads = Target.host(), workers().threads
    module = Module(target)
    for name, build in (("copy", _copy), ("multiply", _multiply)):
        with module.function(f"{name}_chunk", _CHUNK_PARAMETERS, export=False, attributes="noinline") as b:
            build(b, target)
        with module.function(name, [("ptr", "addresses"), ("ptr", "dims")]) as b:
            parallel_for(b, f"{name}_chunk", b.arguments[0], _CHUNKS)
    library = load(module.text(), module.exports, target)
    memory = np.full(2 * _COPIED // 4, 0.5, np.float32)
    table = np.array([memory.ctypes.data, memory.ctypes.data + _COPIED])
    copied = _least_time(entry(library, "copy"), table)
    multiplied = _least_time(entry(library, "multiply"), table)
    operations = 2 * _CHUNKS * _STEPS * _SUMS * target.lanes(FLOAT)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Limits(2 * _COPIED / copied, operations / multiplied, threads, now)


def stream_seconds(read: int, written: int) -> float:
    """The least time in which ``read`` bytes are read and ``written`` bytes written again and again, in seconds,
    wherever they then lie: in a cache that holds both, else in memory.

    The best of a loop with ordinary stores and of one whose stores go past the caches, over as many operands of
    the result's size as ``read`` has room for (STREAM's copy, add and so on; McCalpin, 1995).
    """
    sources = max(1, round(read / max(written, 1)))
    result = (read + written) // (sources + 1)
    chunks = min(_CHUNKS, max(workers().threads, result // _CHUNK_BYTES))
    size = max(1, result // (_LINE * chunks)) * _LINE * chunks
    module = Module(Target.host())
    for name, past in (("stored", False), ("streamed", True)):
        with module.function(f"{name}_chunk", _CHUNK_PARAMETERS, export=False, attributes="noinline") as b:
            _stream(b, sources, size // chunks, past)
        with module.function(name, [("ptr", "addresses"), ("ptr", "dims")]) as b:
            parallel_for(b, f"{name}_chunk", b.arguments[0], chunks)
    library = load(module.text(), module.exports, Target.host())
    memory = np.full((sources + 1) * size // 4 + _LINE, 0.5, np.float32)
    first = -(-memory.ctypes.data // _LINE) * _LINE
    table = np.array([first + i * size for i in range(sources + 1)])
    return min(_least_time(entry(library, name), table, _SECONDS) for name in ("stored", "streamed"))


def _stream(b: Function, sources: int, size: int, past: bool) -> None:
    """The sum of the operands, a vector at a time; ``size`` bytes of each."""
    table, chunk = b.arguments[0], b.arguments[1]
    lanes = b.module.target.lanes(FLOAT)
    wide, step = vector(FLOAT, lanes), 4 * lanes
    *operands, result = (b.gep(b.load(PTR, b.gep(table, i, PTR)), b.mul(chunk, size), "i8") for i in range(sources + 1))
    with b.loop(0, size, _LINE) as loop:
        for place in (b.add(loop.index, offset) for offset in range(0, _LINE, step)):
            total = b.load(wide, b.gep(operands[0], place, "i8"), align=step)
            for operand in operands[1:]:
                total = b.fadd(total, b.load(wide, b.gep(operand, place, "i8"), align=step))
            b.store(total, b.gep(result, place, "i8"), align=step, nontemporal=past)


def _least_time(call: Entry, table: np.ndarray[tuple[int], np.dtype[np.int64]], seconds: float = 0.0) -> float:
    """The least time of a call, of several and of as many as ``seconds`` have room for."""
    found: list[float] = []
    begin = perf_counter()
    while len(found) < _REPEATS or perf_counter() - begin < seconds:
        started = perf_counter()
        call(table.ctypes.data, 0)
        found.append(perf_counter() - started)
    return min(found)


def _copy(b: Function, target: Target) -> None:
    table, chunk = b.arguments[0], b.arguments[1]
    size = _COPIED // _CHUNKS
    source, to = (b.gep(b.load(PTR, b.gep(table, i, PTR)), b.mul(chunk, size), "i8") for i in range(2))
    b.intrinsic("llvm.memcpy", VOID, to, source, constant(I64, size), constant("i1", 0), overloads=(PTR, PTR, I64))


def _multiply(b: Function, target: Target) -> None:
    """Independent chains of multiply-adds in registers; their sum is stored, so that they are made."""
    table, chunk = b.arguments[0], b.arguments[1]
    lanes = target.lanes(FLOAT)
    source = b.gep(b.load(PTR, b.gep(table, 0, PTR)), b.mul(chunk, lanes), FLOAT)
    x = b.load(vector(FLOAT, lanes), source, align=4)
    with b.loop(0, _STEPS, carry=[x] * _SUMS) as loop:
        loop.yield_values(*[b.fma(total, x, x) for total in loop.carry])
    result = x
    for total in loop.results:
        result = b.fadd(result, total)
    b.store(result, source, align=4)
