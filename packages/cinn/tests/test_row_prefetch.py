"""The rows that a kernel with several loops over a row will read next are prefetched by its later loops."""

import os
import re

import numpy as np
import pytest
from programs import build, check

from argosy_cinn.assembly.building import assemble_program
from argosy_cinn.fuel import Budget
from argosy_cinn.loops import nest, schedule
from argosy_cinn.pipeline import lower_program
from argosy_cinn.runtime import set_threads
from argosy_cinn.target import Target
from argosy_phi_ops import prim
from argosy_phi_ops.passes.primitives import to_primitives


def softmax(x):
    def wide(v):
        return prim.broadcast(v, shape=x.shape, axes=(0,))

    e = prim.exp(prim.sub(x, wide(prim.reduce_max(x, axes=(1,)))))
    return prim.div(e, wide(prim.reduce_sum(e, axes=(1,))))


def of_sum(x, y, w):
    return softmax(prim.add(prim.mul(x, prim.broadcast(w, shape=x.shape, axes=(1,))), y))


def f32(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


def text(function, *shapes, cache=1 << 16):
    """The code of a program for a machine with a second-level cache of so many bytes."""
    arguments = [np.zeros(shape, np.float32) for shape in shapes]
    program = lower_program(to_primitives(build(function, arguments)), Target.host())
    host = Target.host()
    target = Target(host.triple, host.cpu, host.features, host.l1_bytes, cache, host.l3_bytes)
    return assemble_program(program, target, Budget())[1].module.text()


def prefetched(*program, cache=1 << 16):
    """The operands of which later rows are asked for, however many vectors a loop takes at a time."""
    code = text(*program, cache=cache)
    base = dict(re.findall(r"(%\w+) = getelementptr \w+, ptr (%\w+),", code))
    return {base[base[place]] for place in re.findall(r"call void @llvm.prefetch[.\w]*\(ptr (%\w+)", code)}


def test_each_operand_that_does_not_fit_is_prefetched():
    """Two operands, and not the one that every row reads, nor those that a cache holds."""
    assert len(prefetched(softmax, (64, 256))) == 1
    assert len(prefetched(of_sum, (64, 256), (64, 256), (256,))) == 2
    assert not prefetched(of_sum, (64, 256), (64, 256), (256,), cache=1 << 18)


def test_later_phases_share_the_operands(monkeypatch):
    """Of three loops over a row the last two ask for one operand each, and the first one for none."""
    seen = {}

    def note(kernel, cache):
        found = schedule.row_prefetches(kernel, cache)
        seen.update({phase: [request.distance for request in found[phase]] for phase in found})
        return found

    monkeypatch.setattr(nest, "row_prefetches", note)
    text(of_sum, (64, 256), (64, 256), (256,))
    assert seen == {1: [4096], 2: [4096]}


def test_one_loop_is_left_to_the_processor():
    assert not prefetched(lambda x, y: prim.add(prim.exp(x), y), (64, 256), (64, 256))


@pytest.mark.parametrize("shape", [(1, 1), (7, 13), (3, 131), (33, 64), (5, 1000), (0, 4)])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_no_result_changes(shape, threads, monkeypatch):
    """Whatever is asked for, beyond the last row too."""
    monkeypatch.setattr(nest, "row_prefetches", lambda kernel, cache: schedule.row_prefetches(kernel, 0))
    try:
        set_threads(threads)
        check(of_sum, f32(*shape), f32(*shape)[::-1].copy(), np.ones(shape[1], np.float32))
    finally:
        set_threads(os.cpu_count() or 1)


def test_what_is_read_in_every_second_place_is_right(monkeypatch):
    monkeypatch.setattr(nest, "row_prefetches", lambda kernel, cache: schedule.row_prefetches(kernel, 0))

    def every_second(x, y):
        cut = prim.slice(x, start=(0, 1), limit=x.shape, stride=(1, 2))
        return softmax(prim.add(cut, prim.reverse(y, axes=(1,))))

    check(every_second, f32(9, 74), f32(9, 37))
