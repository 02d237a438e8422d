"""Results do not depend on how code is cut and scheduled: choices of the generators of kernels are made otherwise, one
at a time, and on 1, 2 and 4 threads the bits are the same."""

import functools

import pytest
from programs import assert_equal, build
from test_optimisations import PROGRAMS

from argosy_cinn import CinnCompiler
from argosy_cinn.assembly import segments
from argosy_cinn.assembly.building import assemble_program
from argosy_cinn.attention import tiles
from argosy_cinn.batch_tiling import rewrite as blocks
from argosy_cinn.contraction import blocking, nest, orientation, skinny_blocking
from argosy_cinn.forms import nest as nests
from argosy_cinn.fuel import Budget
from argosy_cinn.fusion import groups, memory, recompute
from argosy_cinn.loops import nest as loops
from argosy_cinn.loops import schedule
from argosy_cinn.pipeline import lower_program
from argosy_cinn.plan import buffer_reuse
from argosy_cinn.runtime import ObjectCache, set_threads
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_phi_ops.reference.interpreter import interpret
from argosy_tensorcore.storage import StridedArray

HUGE = 1 << 40

#: What is chosen otherwise: modules (or this machine), names in them and other values.
CHOICES = {
    "single vectors": [(loops, "_FOUR_IN_TURNS", HUGE), (loops, "_WITH_SUMS", HUGE), (loops, "_HEAVY", 0)],
    "four vectors in turns": [
        (loops, "_FOUR_IN_TURNS", 0), (loops, "_WITH_SUMS", 0), (loops, "_TWO_IN_TURNS", HUGE),
    ],
    "no rows kept between phases": [(schedule, "_ROW_BUFFER_BYTES", 0)],
    "everything kept between phases": [(schedule, "_EXPENSIVE", 0), (schedule, "_ROW_BUFFER_BYTES", HUGE)],
    "small chunks": [(nests, "CHUNK_ELEMENTS", 16)],
    "one chunk": [(nests, "CHUNK_ELEMENTS", HUGE), (nests, "_MOST_CHUNKS", 1)],
    "no sums by chunk": [(nests, "_MOST_PARTIALS", 1)],
    "A is copied": [(blocking, "order_of_a", lambda *_: "packed"), (nest, "order_of_a", lambda *_: "packed")],
    "B is copied": [(blocking, "_reads_b_in_place", lambda *_: False)],
    "products as they are": [(blocking, "is_better_turned", lambda *_: False)],
    "products turned": [
        (orientation, "_MOST_ROWS", HUGE), (orientation, "_DEEP", 0), (orientation, "_LEAST_TERMS", 0)
    ],
    "no product is skinny": [(skinny_blocking, "MOST", 0)],
    "past the caches": [(Target.host(), "l3_bytes", 0)],
    "small results over operands": [(buffer_reuse, "LARGE", 0)],
    "small batches in blocks": [
        (blocks, "_LEAST", 8), (blocks, "_MOST", 8), (blocks, "_NEAR", 1e-3), (blocks, "_AGAIN", 100.0)
    ],
    "short tiles": [(tiles, "_MOST_ROWS", 8), (tiles, "_CHUNK_ROWS", 8)],
    "places by tables": [(segments, "_MANY_PLACES", 0)],
    "groups of two": [(groups, "_MOST_MEMBERS", 2)],
    "groups that read little": [(groups, "_MOST_READS", 2)],
    "everything has memory": [(memory, "_CHEAP", 0), (memory, "_MOST_COST", 0), (memory, "_MOST_LEAVES", 0)],
    "much is computed again": [(memory, "_CHEAP", 40), (recompute, "_LARGE", 0), (recompute, "_MOST_COST", 400)],
}  # fmt: skip


def code(name):
    """The LLVM text of a program, and where its values lie."""
    function, arguments, states = PROGRAMS[name]
    program = lower_program(to_primitives(build(function, arguments, states)), Target.host())
    plan, assembly = assemble_program(program, Target.host(), Budget())
    return assembly.module.text(), [repr(place) for place in plan.places.values()]


@functools.cache
def plain_code(name):
    return code(name)


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("choice", CHOICES)
def test_each_choice_may_be_another(choice, monkeypatch):
    """In all programs that it makes other code of; there are some (of vectors of 512 bits)."""
    for name in PROGRAMS:
        plain_code(name)
    for module, name, value in CHOICES[choice]:
        assert hasattr(module, name)
        monkeypatch.setattr(module, name, value)
    changed = [name for name in PROGRAMS if code(name) != plain_code(name)]
    assert changed or Target.host().vector_bits != 512
    for name in changed:
        compare(*PROGRAMS[name])


def compare(function, arguments, states):
    program = build(function, arguments, states)
    outputs, updates = interpret(program, arguments, [s.copy() for s in states])
    executable = CinnCompiler().compile(program, device("cpu"), options={"cache": ObjectCache(None)})
    found = []
    try:
        for threads in (1, 2, 4):
            set_threads(threads)
            held = [StridedArray.from_array(s.copy()) for s in states]
            outcome = executable.run([StridedArray.from_array(a) for a in arguments], held)
            found.append([r.array().copy() for r in (*outcome, *held)])
    finally:
        set_threads(1)
    for got in found:
        for g, w, first in zip(got, [*outputs, *updates], found[0], strict=True):
            assert_equal(g, w, 100)
            assert g.tobytes() == first.tobytes(), "threads change bits"
