"""Compiled programs on disk: the second compilation of an equal program skips simplification, fusion and code
generation.

An entry of the `ObjectCache` holds a `Manifest` as JSON and the object file. Its key is a hash of the program's
structure (names and source lines aside), the machine, the options, and the source of this package and the primitives.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from argosy_cinn.call_once import call_once
from argosy_cinn.plan.memory import Recomputation
from argosy_cinn.runtime.cache import ObjectCache, code_generator_version
from argosy_cinn.shapes import evaluate_size
from argosy_cinn.target import Target
from argosy_hwadapt.cpu.features import physical_cores
from argosy_phi_ops.settings import code_key
from argosy_pir.attributes import Dense
from argosy_pir.core import Block
from argosy_pir.program import Program
from argosy_pir.values import Value

_LARGEST_CONSTANTS = 1 << 22


class CallFacts(NamedTuple):
    """One kernel call: its ``segment``, the kernel, chunks (0: decided at run time), a line about it, its cost
    (`argosy_phi_ops.primitives.cost.Cost`), and the positions in the simplified program of what it makes."""

    segment: int
    kernel: str
    chunks: int
    text: str
    read: int
    written: int
    operations: int
    made: list[int]


class BufferFacts(NamedTuple):
    """One buffer in the arena: the position of the operation whose result it holds, bytes, and its first and last
    step."""

    position: int
    nbytes: int
    first: int
    last: int


class UnfusedAttentionFacts(NamedTuple):
    """Attention whose scores lie in memory: their bytes, why fusion refused them (empty: unknown), and the positions of
    the products that make and contract them."""

    nbytes: int
    reason: str
    made: list[int]


class RepeatedReadFacts(NamedTuple):
    """A weight that kernels read more than once in a run: its number among the states (-1: a constant), its bytes,
    those that are read in all, and the positions of what the kernels make."""

    state: int
    nbytes: int
    read: int
    made: list[int]


@dataclass(slots=True)
class Manifest:
    """What an executable needs beside machine code.

    ``hosts``: positions in the simplified program's block of the operations between segments. ``places``: for every
    value in memory (operation position or -1 for arguments, result index, table entry, byte offset), where there are
    host calls. ``constants``: (dtype, shape, base64 data) in table order. ``written``: positions of changed states.
    ``calls``, ``buffers`` (the largest first) and ``copies`` (states that are copied at the end) are what
    `argosy_cinn.explain` tells. Of programs with symbolic sizes, ``symbols`` are their names, ``lifetimes`` (formula of
    bytes, first, last step) the values that are placed in the arena when sizes are known, and figures are formulas.
    ``recomputation`` is what a memory budget did; ``guard`` how ``lifetimes`` are guarded, if they are; ``checks``
    tells whether the program may refuse an index. ``unfused_attention`` and ``repeated_reads`` are what could be saved.
    """

    segments: int
    hosts: list[int]
    places: list[tuple[int, int, int, int]]
    arena_bytes: int
    constants: list[tuple[str, list[int], str]]
    written: list[int]
    kernels: int
    kernel_calls: int
    host_calls: dict[str, int]
    calls: list[CallFacts]
    buffers: list[BufferFacts]
    copies: list[int]
    symbols: list[str]
    lifetimes: list[tuple[str, int, int]]
    recomputation: Recomputation | None = None
    guard: str = ""
    checks: bool = False
    unfused_attention: list[UnfusedAttentionFacts] = field(default_factory=list)
    repeated_reads: list[RepeatedReadFacts] = field(default_factory=list)

    @property
    def entries(self) -> list[str]:
        """Names of the native functions, one for each segment."""
        return [f"segment{i}" for i in range(self.segments)]


def in_numbers(manifest: Manifest, symbols: Mapping[str, int], arena_bytes: int) -> Manifest:
    """The manifest of code for all sizes in the numbers of given ones, to be looked at."""
    calls = [
        CallFacts(c.segment, c.kernel, evaluate_size(c.chunks, symbols), c.text, evaluate_size(c.read, symbols),
                  evaluate_size(c.written, symbols), evaluate_size(c.operations, symbols), c.made)
        for c in manifest.calls
    ]  # fmt: skip
    buffers = [BufferFacts(b.position, evaluate_size(b.nbytes, symbols), b.first, b.last) for b in manifest.buffers]
    unfused = [each._replace(nbytes=evaluate_size(each.nbytes, symbols)) for each in manifest.unfused_attention]
    repeated = [each._replace(read=evaluate_size(each.read, symbols)) for each in manifest.repeated_reads]
    return replace(
        manifest, arena_bytes=arena_bytes, calls=calls, buffers=buffers, unfused_attention=unfused,
        repeated_reads=[each for each in repeated if each.read >= 2 * each.nbytes],
    )  # fmt: skip


def find(store: ObjectCache, key: str) -> tuple[Manifest, bytes] | None:
    """The manifest and object file of an earlier compilation."""
    data = store.get(key)
    if data is None:
        return None
    try:
        return _decode(data)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):  # whole, but not what is written here
        store.discard(key)
        return None


def _decode(data: bytes) -> tuple[Manifest, bytes]:
    size = int.from_bytes(data[:8], "little")
    manifest = manifest_of(json.loads(data[8 : 8 + size]))
    _check(manifest)
    return manifest, data[8 + size :]


def _check(manifest: Manifest) -> None:
    """Raises ValueError or TypeError for fields of other types than are written: those of a program without symbols are
    numbers, of others formulas as well."""
    numbers = (int, str) if manifest.symbols else int
    for value in (manifest.arena_bytes, manifest.kernels, manifest.kernel_calls):
        if not isinstance(value, numbers) or (isinstance(value, int) and value < 0):
            raise ValueError(f"{value!r} is no size or count")
    if type(manifest.segments) is not int or not 1 <= manifest.segments <= 1 + len(manifest.hosts):
        raise ValueError(f"{manifest.segments!r} segments around {len(manifest.hosts)} host calls")
    for positions in (manifest.hosts, manifest.written, manifest.copies, *manifest.places):
        if not all(type(n) is int for n in positions):
            raise ValueError(f"{positions!r} are no positions")
    if not all(isinstance(name, str) for name in manifest.symbols):
        raise ValueError(f"{manifest.symbols!r} are no names")
    for _, shape, data in manifest.constants:
        if not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"{shape!r} is no shape")
        base64.b64decode(data, validate=True)


def manifest_of(fields: dict[str, Any]) -> Manifest:
    """A manifest from what JSON kept of it. Raises TypeError or KeyError where fields are missing."""
    fields["calls"] = [CallFacts(*c) for c in fields["calls"]]
    if fields.get("recomputation") is not None:
        fields["recomputation"] = Recomputation(**fields["recomputation"])
    fields["buffers"] = [BufferFacts(*b) for b in fields["buffers"]]
    fields["unfused_attention"] = [UnfusedAttentionFacts(*u) for u in fields["unfused_attention"]]
    fields["repeated_reads"] = [RepeatedReadFacts(*r) for r in fields["repeated_reads"]]
    return Manifest(**fields)


def keep(store: ObjectCache, key: str, manifest: Manifest, code: bytes) -> None:
    """Store a compilation, unless its constants are large."""
    if sum(len(data) for _, _, data in manifest.constants) > _LARGEST_CONSTANTS:
        return
    text = json.dumps(asdict(manifest)).encode()
    store.put(key, len(text).to_bytes(8, "little") + text + code)


def encode_constant(dtype: str, shape: tuple[int, ...], data: bytes) -> tuple[str, list[int], str]:
    """A constant as JSON holds it."""
    return dtype, list(shape), base64.b64encode(data).decode()


def program_key(program: Program, target: Target, options: Mapping[str, Any]) -> str:
    """The name of a program's entry."""
    digest = hashlib.sha256()
    numbers: dict[Value, int] = {}
    _hash_block(digest, program.block, numbers)
    for name, function in sorted(program.functions.items()):
        digest.update(name.encode())
        _hash_block(digest, function.block, numbers)
    machine = target.key, physical_cores()  # among which kernels divide their work
    digest.update(f"{len(program.states)}|{machine}|{code_generator_version()}|{_sources()}".encode())
    digest.update(repr([(k, options.get(k)) for k in ("passes", "without")]).encode())
    digest.update(code_key(options).encode())
    return digest.hexdigest()


def _hash_block(digest: Any, block: Block, numbers: dict[Value, int]) -> None:
    parts: list[str] = []
    for argument in block.arguments:
        numbers[argument] = len(numbers)
        parts.append(str(argument.type))
    for op in block:
        operands = [numbers[v] for v in op._operands]
        attributes = ",".join([f"{k}={_attribute(v)}" for k, v in op.attributes.items()])
        for result in op.results:
            numbers[result] = len(numbers)
            parts.append(str(result.type))
        parts.append(f"{op.name}{operands}{attributes}")
        for region in op.regions:
            for inner in region.blocks:
                digest.update("\n".join(parts).encode())
                parts.clear()
                _hash_block(digest, inner, numbers)
    digest.update("\n".join(parts).encode())
    digest.update(b"end")


def _attribute(value: Any) -> str:
    if isinstance(value, Dense):
        data = value.data if len(value.data) <= 64 else hashlib.sha256(value.data).digest()
        return f"{value.type}{data!r}"
    return repr(value)


@call_once
def _sources() -> str:
    """A digest of the code that decides what is generated."""
    import argosy_cinn
    import argosy_phi_ops.primitives as primitives

    digest = hashlib.sha256()
    for package in (argosy_cinn, primitives):
        for path in sorted(Path(package.__path__[0]).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
