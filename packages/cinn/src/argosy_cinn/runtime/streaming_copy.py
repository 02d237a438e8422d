"""Native code of copies whose stores stream past the caches, which ranks that share memory ask for
(`argosy_hwadapt.cpu.streaming`)."""

from __future__ import annotations

from argosy_cinn.runtime.linking import Library, link
from argosy_cinn.runtime.trampolines import cached_object
from argosy_cinn.target import Target
from argosy_hwadapt.cpu.c_bindings import function

__all__ = ["make_streaming_copy"]

_NAME = "streaming_copy"


class _StreamingCopy:
    """The linked function, called without the interpreter's lock."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._code = function(library.address(_NAME), "void(*)(uintptr_t, uintptr_t, size_t)")

    def __call__(self, target: int, source: int, nbytes: int) -> None:
        self._code(target, source, nbytes)


def make_streaming_copy() -> _StreamingCopy | None:
    """A :data:`argosy_hwadapt.cpu.streaming.StreamingCopy` for this machine."""
    return _StreamingCopy(link(cached_object(_TEXT), (_NAME,))) if Target.host().is_x86 else None


# Whole lines of the target are stored at once; what is before and behind them goes the usual way.
_TEXT = r"""
declare void @llvm.x86.sse.sfence()
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @streaming_copy(ptr %target, ptr %source, i64 %nbytes) nounwind {
entry:
  %address = ptrtoint ptr %target to i64
  %negative = sub i64 0, %address
  %gap = and i64 %negative, 63
  %is.short = icmp ult i64 %nbytes, %gap
  %first = select i1 %is.short, i64 %nbytes, i64 %gap
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %first, i1 false)
  %left = sub i64 %nbytes, %first
  %whole = and i64 %left, -64
  %last = add i64 %first, %whole
  br label %look
look:
  %i = phi i64 [%first, %entry], [%next, %line]
  %more = icmp ult i64 %i, %last
  br i1 %more, label %line, label %rest
line:
  %from = getelementptr i8, ptr %source, i64 %i
  %to = getelementptr i8, ptr %target, i64 %i
  %x = load <64 x i8>, ptr %from, align 1
  store <64 x i8> %x, ptr %to, align 64, !nontemporal !0
  %next = add i64 %i, 64
  br label %look
rest:
  %from.rest = getelementptr i8, ptr %source, i64 %last
  %to.rest = getelementptr i8, ptr %target, i64 %last
  %behind = sub i64 %nbytes, %last
  call void @llvm.memcpy.p0.p0.i64(ptr %to.rest, ptr %from.rest, i64 %behind, i1 false)
  call void @llvm.x86.sse.sfence()
  ret void
}
!0 = !{i32 1}
"""
