"""From LLVM text to a library in the process: compiled, or found in the cache, and linked.

    library = load(module.text(), module.exports, module.target)
    address = library.address("run")

Symbols that a module leaves open resolve to the worker runtime (`runtime.workers`) and then to the process (libc,
libm).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argosy_cinn.runtime.cache import ObjectCache, cache_key, default_cache
from argosy_cinn.runtime.interrupts import poll_symbols
from argosy_cinn.runtime.jit import compile_object
from argosy_cinn.runtime.linking import Library, link
from argosy_cinn.runtime.workers import runtime_symbols
from argosy_cinn.target import Target


def load(
    text: str,
    exports: Sequence[str],
    target: Target | None = None,
    *,
    passes: int | None = None,
    cache: ObjectCache | None = None,
    symbols: Mapping[str, int] | None = None,
) -> Library:
    """Compile (or fetch) a module and link it.

    ``passes`` is an IR optimisation level 0-3 or None for none; ``cache`` defaults to the user's cache;
    ``symbols`` gives addresses of further external functions. Raises `CodegenError` when LLVM refuses the
    text.
    """
    target = target or Target.host()
    store = cache if cache is not None else default_cache()
    key = cache_key(text, target.key, options=("passes", passes))
    code = store.get(key)
    hit = code is not None
    if code is None:
        code = compile_object(text, target, passes)
        store.put(key, code)
    return link_program(code, exports, symbols=symbols, cache_hit=hit)


def link_program(
    code: bytes, exports: Sequence[str], *, symbols: Mapping[str, int] | None = None, cache_hit: bool = False
) -> Library:
    """`link` generated code, which may use the worker runtime."""
    return link(code, exports, symbols={**_runtime_symbols(code), **(symbols or {})}, cache_hit=cache_hit)


def _runtime_symbols(code: bytes) -> Mapping[str, int]:
    found: dict[str, int] = {}
    if any(name in code for name in (b"argosy_parallel", b"argosy_scratch", b"argosy_threads", b"__trunc")):
        found |= runtime_symbols()
    if b"argosy_poll" in code:
        found |= poll_symbols()
    return found
