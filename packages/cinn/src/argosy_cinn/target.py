"""The machine that kernels are generated for: vector width, registers, caches and special instructions."""

from __future__ import annotations

import os
import platform
import sys

from argosy_cinn.once import once
from argosy_cinn.printers.types import bytes_of
from argosy_hwadapt.cpu.tiles import request_tiles

_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Target:
    """What a kernel builder asks about a machine.

    Attributes: ``triple``, ``cpu`` and ``features`` (LLVM's names; features as ``+avx2,-avx512f``),
    ``vector_bits`` (width of the widest vector register worth using), ``registers`` (how many vector
    registers), ``l1_bytes`` (data), ``l2_bytes``, ``l3_bytes``.
    """

    __slots__ = (
        "_enabled",
        "cpu",
        "features",
        "l1_bytes",
        "l2_bytes",
        "l3_bytes",
        "registers",
        "triple",
        "vector_bits",
    )

    def __init__(
        self,
        triple: str,
        cpu: str,
        features: str,
        l1_bytes: int = 32 << 10,
        l2_bytes: int = 512 << 10,
        l3_bytes: int = 8 << 20,
    ) -> None:
        self.triple, self.cpu, self.features = triple, cpu, features
        self.l1_bytes, self.l2_bytes, self.l3_bytes = l1_bytes, l2_bytes, l3_bytes
        self._enabled = frozenset(f[1:] for f in features.split(",") if f.startswith("+"))
        self.vector_bits, self.registers = self._vector_shape()

    def _vector_shape(self) -> tuple[int, int]:
        if self.has("avx512f"):
            return 512, 32
        if self.has("avx2"):
            return 256, 16
        return 128, 16 if self.is_x86 else 32

    @property
    def is_x86(self) -> bool:
        """Whether the target is x86-64."""
        return self.triple.startswith("x86_64")

    def has(self, feature: str) -> bool:
        """Whether an LLVM feature (``"avx512f"``, ``"avx512bf16"``, ``"avx512vnni"``, ``"fma"``) is
        enabled.
        """
        return feature in self._enabled

    def lanes(self, element: str) -> int:
        """Lanes of one vector register for an element type as LLVM spells it (``"float"``: 16 with
        AVX-512).
        """
        return self.vector_bits // (8 * bytes_of(element))

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies generated machine code: part of every cache key."""
        return self.triple, self.cpu, self.features

    @staticmethod
    def host() -> Target:
        """The machine this process runs on."""
        return _host()

    @staticmethod
    def x86(cpu: str) -> Target:
        """An x86-64 level such as ``"x86-64-v3"`` (AVX2) on this machine's caches; for tests and portable
        artefacts.
        """
        levels = {"x86-64-v2": "+sse4.2", "x86-64-v3": "+avx,+avx2,+fma,+f16c,+bmi2", "x86-64": "+sse2"}
        host = _host()
        if cpu not in levels:
            raise ValueError(f"unknown x86-64 level {cpu!r}: expected one of {', '.join(levels)}")
        return Target(host.triple, cpu, levels[cpu], host.l1_bytes, host.l2_bytes, host.l3_bytes)

    def without(self, *features: str) -> Target:
        """The same machine with some of LLVM's features turned off (``"amx-tile"``, ``"amx-bf16"``)."""
        kept = [f"-{f[1:]}" if f[1:] in features else f for f in self.features.split(",")]
        return Target(self.triple, self.cpu, ",".join(kept), self.l1_bytes, self.l2_bytes, self.l3_bytes)

    def __repr__(self) -> str:
        return f"Target({self.cpu}, {self.vector_bits}-bit vectors)"


@once
def _host() -> Target:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    if not request_tiles():
        features.update((name, False) for name in features if name.startswith("amx-"))
    sizes = _cache_sizes()
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten(), *sizes)


def _cache_sizes() -> tuple[int, int, int]:
    """Bytes of the data caches of levels 1 to 3; common values where the system does not tell."""
    found = {1: 32 << 10, 2: 512 << 10, 3: 8 << 20}
    root = "/sys/devices/system/cpu/cpu0/cache"
    if sys.platform == "linux" and os.path.isdir(root):
        for entry in sorted(os.listdir(root)):
            level_size = _read_cache(os.path.join(root, entry)) if entry.startswith("index") else None
            if level_size is not None:
                found[level_size[0]] = level_size[1]
    elif platform.machine() == "arm64":
        found = {1: 64 << 10, 2: 4 << 20, 3: 8 << 20}
    return found[1], found[2], found[3]


def _read_cache(folder: str) -> tuple[int, int] | None:
    """(level, bytes) of one data or unified cache as Linux describes it."""
    texts = []
    for name in ("type", "level", "size"):
        try:
            with open(os.path.join(folder, name), encoding="ascii") as file:
                texts.append(file.read().strip())
        except OSError:
            return None
    kind, level, size = texts
    if kind == "Instruction" or int(level) > 3:
        return None
    return int(level), int(size[:-1]) * _SIZES[size[-1]] if size[-1] in _SIZES else int(size)
