"""Settings of the compiler: an option of one compilation gives them, or else the environment."""

from __future__ import annotations

from argosy_phi_ops.settings import MEMORY, SWITCH, TEXT, Kind, Setting, one_of

__all__ = [
    "APP_DATA",
    "BATCH_INVARIANT",
    "CACHE_DIR",
    "CODEGEN_LEVEL",
    "GUARD",
    "KERNEL_FORM",
    "MEMORY_BUDGET",
    "TUNE",
    "WINOGRAD",
]

APP_DATA = Setting("LOCALAPPDATA", TEXT, "", "the user's folder of caches on Windows")
BATCH_INVARIANT = Setting(
    "ARGOSY_BATCH_INVARIANT",
    SWITCH,
    False,
    "1 gives a row of a product the same bits whatever rows are beside it",
    changes_code=True,
)
CACHE_DIR: Setting[str | None] = Setting(
    "ARGOSY_CACHE_DIR", TEXT, None, "the folder of compiled code, instead of the user's; empty: none", blank=True
)
_LEVELS = {str(level): level for level in range(4)}
CODEGEN_LEVEL = Setting(
    "ARGOSY_CODEGEN_LEVEL",
    Kind("0, 1, 2 or 3", _LEVELS.get, "0, 1, 2 or 3", lambda value: type(value) is int and value in range(4)),
    2,
    "how much LLVM's code generator optimises; 0 takes a third of its time for much slower code",
    changes_code=True,
)
GUARD = Setting(
    "ARGOSY_GUARD",
    one_of("before", "behind"),
    "",
    "the side on which memory of intermediate values and results ends at pages that nobody may touch",
    changes_code=True,
)
MEMORY_BUDGET: Setting[int | None] = Setting(
    "ARGOSY_MEMORY_BUDGET",
    MEMORY,
    None,
    "the bytes that intermediate values may need; steps run again where they need more",
    changes_code=True,
)
TUNE = Setting("ARGOSY_TUNE", SWITCH, False, "1 measures how large matrix products are cut best", changes_code=True)
KERNEL_FORM = Setting(
    "ARGOSY_KERNEL_FORM",
    one_of("spirv", "opencl-c", "nest"),
    "",
    "the form of kernels for a device that takes several, instead of the one that it prefers",
    changes_code=True,
)
WINOGRAD = Setting(
    "ARGOSY_WINOGRAD",
    SWITCH,
    True,
    "0 gives convolutions plain sums instead of minimal filtering, which rounds differently",
    changes_code=True,
)
