"""The runtime of compiled programs, in the order a program passes through: compile, cache and link (`jit`,
`cache`, `linking`, `loading`), run on worker threads (`workers`), be called from Python (`entry`)."""

from argosy_cinn.runtime.cache import ObjectCache, default_cache
from argosy_cinn.runtime.entry import entry
from argosy_cinn.runtime.jit import CodegenError, compile_assembly, compile_object
from argosy_cinn.runtime.linking import Library
from argosy_cinn.runtime.loading import load
from argosy_cinn.runtime.workers import parallel_for, scratch, set_threads, thread_count

__all__ = [
    "CodegenError",
    "Library",
    "ObjectCache",
    "compile_assembly",
    "compile_object",
    "default_cache",
    "entry",
    "load",
    "parallel_for",
    "scratch",
    "set_threads",
    "thread_count",
]
