"""The native side of parallel regions: the workers' loop, the region, and scratch memory, as LLVM text.

The text is fixed but for four places that differ by machine and system: pausing in a spin loop, waiting for
and waking sleepers (a futex on Linux), and asking for huge pages.
"""

from __future__ import annotations

import platform
import sys

from argosy_cinn.target import Target

CONTEXT_BYTES = 576


def runtime_text(target: Target) -> str:
    """The module of the worker runtime for the machine this process runs on."""
    pause = "call void @llvm.x86.sse2.pause()" if target.is_x86 else "call void @llvm.aarch64.hint(i32 1)"
    declare = "declare void @llvm.x86.sse2.pause()" if target.is_x86 else "declare void @llvm.aarch64.hint(i32)"
    futex = {"x86_64": 202, "aarch64": 98}.get(platform.machine()) if sys.platform == "linux" else None
    if futex is not None:
        tail = "ptr null, ptr null, i64 0)"
        call = f"%r = call i64 (i64, ...) @syscall(i64 {futex}, ptr %epoch.p, i64"
        wait, wake = f"{call} 128, i64 %last64, {tail}", f"{call} 129, i64 2147483647, {tail}"
    else:  # no futex: sleeping workers look again every 100 microseconds
        wait, wake = "%r = call i32 @usleep(i32 100)", "%r = add i64 0, 0"
    advise = "%adv = call i32 @madvise(ptr %new, i64 %size, i32 14)" if sys.platform == "linux" else ""
    text = _RUNTIME
    for name, code in (("PAUSE", pause), ("WAIT", wait), ("WAKE", wake), ("ADVISE", advise)):
        text = text.replace(f"${name}", code)
    return declare + text


# The context, each group on a cache line of its own:
#   0 claim word i64: epoch << 40 | chunks << 20 | next      64 epoch i32 (the futex word)   128 kernel ptr,
#   136 argument ptr
# 192 chunks done i32   256 sleepers i32   320 stop i32   384 spin i64, 392 threads i64   448 busy i32   512
# thread key i32
_RUNTIME = r"""
@context = external global [576 x i8]
declare i64 @syscall(i64, ...)
declare i32 @usleep(i32)
declare i32 @sched_yield()
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare i32 @madvise(ptr, i64, i32)
declare void @free(ptr)
declare void @abort()

define internal void @drain() nounwind {
entry:
  %done.p = getelementptr i8, ptr @context, i64 192
  %kernel.p = getelementptr i8, ptr @context, i64 128
  %argument.p = getelementptr i8, ptr @context, i64 136
  br label %look
look:
  %word = load atomic i64, ptr @context acquire, align 8
  %next = and i64 %word, 1048575
  %shifted = lshr i64 %word, 20
  %chunks = and i64 %shifted, 1048575
  %some = icmp ult i64 %next, %chunks
  br i1 %some, label %claim, label %out
claim:
  %taken = add i64 %word, 1
  %swap = cmpxchg ptr @context, i64 %word, i64 %taken acq_rel monotonic
  %won = extractvalue {i64, i1} %swap, 1
  br i1 %won, label %run, label %look
run:
  ; read after the claim: the region cannot end before this chunk does
  %kernel = load ptr, ptr %kernel.p
  %argument = load ptr, ptr %argument.p
  call void %kernel(ptr %argument, i64 %next, i64 %chunks)
  %d = atomicrmw add ptr %done.p, i32 1 release
  br label %look
out:
  ret void
}

define void @argosy_worker(ptr %unused) nounwind {
entry:
  %epoch.p = getelementptr i8, ptr @context, i64 64
  %sleepers.p = getelementptr i8, ptr @context, i64 256
  %stop.p = getelementptr i8, ptr @context, i64 320
  %spin.p = getelementptr i8, ptr @context, i64 384
  br label %idle
idle:
  %last = phi i32 [0, %entry], [%seen, %work]
  %last64 = zext i32 %last to i64
  %limit = load i64, ptr %spin.p
  br label %spin
spin:
  %k = phi i64 [0, %idle], [%k1, %pause], [0, %sleep]
  %epoch = load atomic i32, ptr %epoch.p acquire, align 4
  %changed = icmp ne i32 %epoch, %last
  br i1 %changed, label %woken, label %pause
pause:
  $PAUSE
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %limit
  br i1 %more, label %spin, label %sleep
sleep:
  %s0 = atomicrmw add ptr %sleepers.p, i32 1 seq_cst
  $WAIT
  %s1 = atomicrmw sub ptr %sleepers.p, i32 1 seq_cst
  br label %spin
woken:
  %seen = load atomic i32, ptr %epoch.p seq_cst, align 4
  %stop = load atomic i32, ptr %stop.p monotonic, align 4
  %go = icmp eq i32 %stop, 0
  br i1 %go, label %work, label %out
work:
  call void @drain()
  br label %idle
out:
  ret void
}

define void @argosy_wake() nounwind {
  %epoch.p = getelementptr i8, ptr @context, i64 64
  %e = atomicrmw add ptr %epoch.p, i32 1 seq_cst
  $WAKE
  ret void
}

define void @argosy_hold() nounwind {
entry:
  %busy.p = getelementptr i8, ptr @context, i64 448
  br label %try
try:
  %was = atomicrmw xchg ptr %busy.p, i32 1 acquire
  %held = icmp eq i32 %was, 0
  br i1 %held, label %out, label %yield
yield:
  %y = call i32 @sched_yield()
  br label %try
out:
  ret void
}

define void @argosy_parallel(ptr %kernel, ptr %argument, i64 %chunks) nounwind {
entry:
  %epoch.p = getelementptr i8, ptr @context, i64 64
  %kernel.p = getelementptr i8, ptr @context, i64 128
  %argument.p = getelementptr i8, ptr @context, i64 136
  %done.p = getelementptr i8, ptr @context, i64 192
  %sleepers.p = getelementptr i8, ptr @context, i64 256
  %threads.p = getelementptr i8, ptr @context, i64 392
  %busy.p = getelementptr i8, ptr @context, i64 448
  %threads = load i64, ptr %threads.p
  %several = icmp sgt i64 %threads, 1
  %two = icmp sgt i64 %chunks, 1
  %fits = icmp slt i64 %chunks, 1048576
  %worth0 = and i1 %several, %two
  %worth = and i1 %worth0, %fits
  br i1 %worth, label %ask, label %serial
ask:
  %was = atomicrmw xchg ptr %busy.p, i32 1 acquire
  %free = icmp eq i32 %was, 0
  br i1 %free, label %open, label %serial
serial:
  %none = icmp sle i64 %chunks, 0
  br i1 %none, label %out, label %each
each:
  %i = phi i64 [0, %serial], [%i1, %each]
  call void %kernel(ptr %argument, i64 %i, i64 %chunks)
  %i1 = add i64 %i, 1
  %again = icmp slt i64 %i1, %chunks
  br i1 %again, label %each, label %out
open:
  store ptr %kernel, ptr %kernel.p
  store ptr %argument, ptr %argument.p
  store atomic i32 0, ptr %done.p monotonic, align 4
  %e0 = load i32, ptr %epoch.p
  %e1 = add i32 %e0, 1
  %e64 = zext i32 %e1 to i64
  %high = shl i64 %e64, 40
  %mid = shl i64 %chunks, 20
  %word = or i64 %high, %mid
  store atomic i64 %word, ptr @context release, align 8
  %x = atomicrmw xchg ptr %epoch.p, i32 %e1 seq_cst
  %asleep = load atomic i32, ptr %sleepers.p seq_cst, align 4
  %any = icmp ne i32 %asleep, 0
  br i1 %any, label %wake, label %help
wake:
  $WAKE
  br label %help
help:
  call void @drain()
  %all = trunc i64 %chunks to i32
  br label %wait
wait:
  %k = phi i32 [0, %help], [%k1, %pause], [%k1, %yield]
  %done = load atomic i32, ptr %done.p acquire, align 4
  %complete = icmp eq i32 %done, %all
  br i1 %complete, label %close, label %pause
pause:
  $PAUSE
  %k1 = add i32 %k, 1
  %low = and i32 %k1, 1023
  %long = icmp eq i32 %low, 0
  br i1 %long, label %yield, label %wait
yield:
  ; the thread we wait for may need this core
  %y = call i32 @sched_yield()
  br label %wait
close:
  store atomic i32 0, ptr %busy.p release, align 4
  br label %out
out:
  ret void
}

define i64 @argosy_threads() nounwind {
  %threads.p = getelementptr i8, ptr @context, i64 392
  %threads = load i64, ptr %threads.p
  ret i64 %threads
}

; A slab begins with a header of 64 bytes that holds its capacity.
define ptr @argosy_scratch(i64 %bytes) nounwind {
entry:
  %place = alloca ptr
  %key.p = getelementptr i8, ptr @context, i64 512
  %key = load i32, ptr %key.p
  %slab = call ptr @pthread_getspecific(i32 %key)
  %missing = icmp eq ptr %slab, null
  br i1 %missing, label %grow, label %check
check:
  %capacity = load i64, ptr %slab
  %enough = icmp uge i64 %capacity, %bytes
  br i1 %enough, label %have, label %grow
have:
  %body = getelementptr i8, ptr %slab, i64 64
  ret ptr %body
grow:
  call void @free(ptr %slab)
  %padded = add i64 %bytes, 2097215
  %size = and i64 %padded, -2097152
  %failed = call i32 @posix_memalign(ptr %place, i64 2097152, i64 %size)
  %bad = icmp ne i32 %failed, 0
  br i1 %bad, label %fatal, label %made
fatal:
  call void @abort()
  unreachable
made:
  %new = load ptr, ptr %place
  $ADVISE
  %usable = sub i64 %size, 64
  store i64 %usable, ptr %new
  %set = call i32 @pthread_setspecific(i32 %key, ptr %new)
  %fresh = getelementptr i8, ptr %new, i64 64
  ret ptr %fresh
}

; What LLVM calls where it moves a bfloat through a register of floats on a machine without conversions.
define bfloat @argosy_bfloat(float %x) nounwind {
  %bits = bitcast float %x to i32
  %above = lshr i32 %bits, 16
  %odd = and i32 %above, 1
  %half = add i32 %bits, 32767
  %nearest = add i32 %half, %odd
  %nan = fcmp uno float %x, %x
  %quiet = or i32 %bits, 4194304
  %chosen = select i1 %nan, i32 %quiet, i32 %nearest
  %high = lshr i32 %chosen, 16
  %short = trunc i32 %high to i16
  %made = bitcast i16 %short to bfloat
  ret bfloat %made
}
"""
