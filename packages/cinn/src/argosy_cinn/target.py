"""The machine that kernels are generated for: vector width, registers, caches and special instructions."""

from __future__ import annotations

import os
import platform
import sys

from argosy_cinn.call_once import call_once_in_llvm
from argosy_cinn.printers.types import bytes_of
from argosy_hwadapt.cpu.tiles import request_tiles

_AVX2 = "avx avx2 fma f16c bmi2"
_AVX512 = f"{_AVX2} avx512f avx512bw avx512cd avx512dq avx512vl"
#: Processors by LLVM's names: family, and features that kernel builders or LLVM's choices depend on.
PROCESSORS = {
    "x86-64": ("x86_64", "sse2"),
    "x86-64-v2": ("x86_64", "sse4.2"),
    "x86-64-v3": ("x86_64", _AVX2),
    "haswell": ("x86_64", _AVX2),
    "znver3": ("x86_64", _AVX2),
    "skylake-avx512": ("x86_64", _AVX512),
    "znver4": ("x86_64", f"{_AVX512} avx512bf16 avx512vbmi avx512vnni"),
    "znver5": ("x86_64", f"{_AVX512} avx512bf16 avx512vbmi avx512vnni"),
    "sapphirerapids": ("x86_64", f"{_AVX512} avx512bf16 avx512vbmi avx512vnni avx512fp16 amx-tile amx-bf16 amx-int8"),
    "neoverse-n1": ("aarch64", "neon"),
    "neoverse-v1": ("aarch64", "neon"),
    "apple-m1": ("aarch64", "neon"),
}
#: Processors with Golden Cove cores and those that follow them (measured on emeraldrapids).
_GOLDEN_COVE = frozenset({"sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d"})
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
    #: The family of schedules that kernels follow on it, see `argosy_cinn.kinds`.
    schedules = "chunks"

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
    def family(self) -> str:
        """The processor's family as LLVM spells it: ``"x86_64"``, ``"aarch64"``, ``"arm64"``."""
        return self.triple.split("-", 1)[0]

    @property
    def is_x86(self) -> bool:
        """Whether the target is x86-64."""
        return self.family == "x86_64"

    def has(self, feature: str) -> bool:
        """Whether an LLVM feature (``"avx512f"``, ``"avx512bf16"``, ``"avx512vnni"``, ``"fma"``) is
        enabled.
        """
        return feature in self._enabled

    @property
    def multiplies_pairs(self) -> bool:
        """Whether whole registers of pairs of bfloat16 are multiplied and added faster than numbers of float32 are:
        Golden Cove takes them at half the rate of those (84 and 168 Gop/s), for its way to more is AMX.
        """
        return self.vector_bits == 512 and self.has("avx512bf16") and self.cpu not in _GOLDEN_COVE

    @property
    def gains_from_prefetches(self) -> bool:
        """Whether what streams from memory comes faster where it is asked for, too: Golden Cove's own prefetchers stop
        at pages (a tenth to a fifth of the time); Zen's are the slower for such requests.
        """
        return self.cpu in _GOLDEN_COVE

    @property
    def has_fma(self) -> bool:
        """Whether one instruction multiplies and adds with one rounding."""
        return not self.is_x86 or self.has("fma") or self.has("avx512f")

    @property
    def has_float16(self) -> bool:
        """Whether instructions convert between float16 and float32."""
        return not self.is_x86 or self.has("f16c") or self.has("avx512f")

    @property
    def has_rounding(self) -> bool:
        """Whether instructions round floats to whole numbers."""
        return not self.is_x86 or bool(self._enabled & {"sse4.1", "sse4.2", "avx", "avx2", "avx512f"})

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
    def from_name(cpu: str) -> Target:
        """A machine by LLVM's name of its processor (`PROCESSORS`) on this machine's caches and system; for tests and
        portable artefacts. Raises ValueError for names that are not there.
        """
        if cpu not in PROCESSORS:
            raise ValueError(f"unknown processor {cpu!r}: expected one of {', '.join(PROCESSORS)}")
        host, (family, features) = _host(), PROCESSORS[cpu]
        caches = host.l1_bytes, host.l2_bytes, host.l3_bytes
        system = host.triple.split("-", 1)[1]
        return Target(f"{family}-{system}", cpu, ",".join(f"+{f}" for f in features.split()), *caches)

    def without_features(self, *features: str) -> Target:
        """The same machine with some of LLVM's features turned off (``"amx-tile"``, ``"amx-bf16"``)."""
        kept = [f"-{f[1:]}" if f[1:] in features else f for f in self.features.split(",")]
        return Target(self.triple, self.cpu, ",".join(kept), self.l1_bytes, self.l2_bytes, self.l3_bytes)

    def __repr__(self) -> str:
        return f"Target({self.cpu}, {self.vector_bits}-bit vectors)"


@call_once_in_llvm
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
