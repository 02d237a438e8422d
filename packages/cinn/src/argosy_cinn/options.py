"""Options of the compiler, and the cache that they choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy_cinn.fuel import Budget
from argosy_cinn.runtime import ObjectCache, default_cache, set_threads
from argosy_cinn.tools.dump import is_dumping
from argosy_phi_ops.settings import code_key

OPTIONS = frozenset({
    "threads", "cache", "passes", "fuel", "without", "memory_budget", "tune", "guard", "winograd", "check_index",
    "batch_invariant", "codegen_level", "kernel_form",
})  # fmt: skip


def chosen_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options. Raises ValueError for unknown ones."""
    chosen = dict(options or {})
    if not chosen.keys() <= OPTIONS:
        unknown = sorted(chosen.keys() - OPTIONS)
        raise ValueError(f"unknown options {unknown}; there are: {', '.join(sorted(OPTIONS))}")
    if "threads" in chosen:
        set_threads(chosen["threads"])
    Budget.from_options(chosen)  # refuses what it does not know
    code_key(chosen)  # so does this
    return chosen


def object_cache(options: Mapping[str, Any]) -> ObjectCache:
    """Where compiled programs are kept. What is found there was made under other limits, and leaves no trace."""
    fresh = Budget.from_options(options).process or is_dumping()
    return options.get("cache") or (ObjectCache(None) if fresh else default_cache())


__all__ = ["OPTIONS", "chosen_options", "object_cache"]
