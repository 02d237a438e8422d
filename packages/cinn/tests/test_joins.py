"""What the host reads as one tensor of many is made in place, part by part."""

import numpy as np
import pytest
from programs import values

from argosy_cinn import CinnCompiler
from argosy_cinn.assembly.building import assemble_program
from argosy_cinn.fuel import Budget
from argosy_cinn.fusion.joins import offsets_in
from argosy_cinn.pipeline import lower_program
from argosy_cinn.plan import buffer_reuse
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_hwadapt.inproc import run_ranks
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType
from argosy_tensorcore.storage import StridedArray

N = 16


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    monkeypatch.setattr(buffer_reuse, "LARGE", 0)


def square(x, y):
    return prim.dot_general(x, y, lhs_contract=(1,), rhs_contract=(0,))


def flat(x):
    return x if len(x.shape) == 1 else prim.reshape(x, shape=(int(np.prod(x.shape)),))


def step(parts, more=None, also=lambda *_: []):
    """A program that sums ``parts(x, y)`` over two ranks as one tensor, and then reads each of them from that; it
    returns what ``also`` makes of the first of them and the parts, too."""
    made = Program("step")
    x, y = (made.add_input(TensorType((N, N), "float32")) for _ in "xy")
    with emit_at(Builder.at_end(made.block)):
        tensors = parts(x, y)
        joined = prim.concat(*map(flat, tensors), axis=0)
        whole, _ = prim.all_reduce(joined, prim.create_token(), size=2)
        outputs, start = [], 0
        for tensor in tensors:
            stop = start + int(np.prod(tensor.shape))
            part = prim.slice(whole, start=(start,), limit=(stop,), stride=(1,))
            outputs.append(prim.tanh(prim.reshape(part, shape=tensor.shape)))
            start = stop
        made.set_outputs([*outputs, *also(outputs[0], *tensors)])
    return made


def plan_of(program):
    return assemble_program(lower_program(to_primitives(program), Target.host()), Target.host(), Budget())[0]


def joins(plan):
    return [step.group.operation for step in plan.steps if "join" in step.group.members.values()]


def check(program, place="cpu"):
    """Compiled as interpreted, on two ranks and twice, since an arena is used again."""
    rng = np.random.default_rng(0)
    arrays = [[values(rng, (N, N), "float32", -1, 1) for _ in "xy"] for _ in range(2)]

    def rank(communicator):
        executable = CinnCompiler().compile(program, device(place), [communicator])
        given = [StridedArray.from_array(a, device(place)) for a in arrays[communicator.rank]]
        found = [[out.to_host() for out in executable.run(given, [])] for _ in range(2)]
        return found, interpret(program, arrays[communicator.rank], (), [communicator])[0]

    for found, expected in run_ranks(rank, 2):
        for run in found:
            for a, b in zip(run, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


PARTS = {
    "products": lambda x, y: [square(x, y), square(y, x)],
    "loops and reductions": lambda x, y: [
        prim.exp(prim.mul(x, y)),
        prim.reduce_sum(prim.sin(x), axes=(0,)),
        square(x, y),
    ],
    "a part that is one of many": lambda x, y: [
        square(x, y),
        prim.concat(prim.reduce_sum(x, axes=(1,)), prim.reduce_max(y, axes=(0,)), axis=0),
    ],
    "a copy of an input": lambda x, y: [prim.transpose(x, permutation=(1, 0)), square(x, y)],
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_parts_lie_in_the_whole(parts):
    """Each at its place, the result over them; nothing copies, and the arena holds them once."""
    program = step(parts)
    plan = plan_of(program)
    (op,) = joins(plan)
    whole = plan.places[op.result]
    assert [plan.places[x] for x in op.operands] == [whole.advance(start) for start in offsets_in(op)]
    total = next(user for user in op.result.users if user.name == "prim.all_reduce").results[0]
    assert plan.places[total] == whole
    assert not [v for life in plan.lifetimes if (v := life.key) in set(op.operands) | {total}]
    for place in ("cpu", "virtual"):
        check(program, place)


def test_a_part_lives_while_anybody_reads_it():
    """One is read after it was sent, which leaves the whole to it: the sum lies elsewhere."""
    program = step(
        lambda x, y: [flat(square(x, y)), flat(square(y, x))],
        also=lambda made, first, second: [prim.cumulative(first * made, axis=0, kind="sum")],
    )
    plan = plan_of(program)
    (op,) = joins(plan)
    total = next(user for user in op.result.users if user.name == "prim.all_reduce").results[0]
    (life,) = [life for life in plan.lifetimes if life.key is op.result]
    assert life.last == max(i for i, s in enumerate(plan.steps) if op.operand(0) in s.group.reads)
    assert plan.places[total] != plan.places[op.result]
    check(program)


REFUSED = {
    "an input": step(lambda x, y: [x, square(x, y)]),
    "an output": step(PARTS["products"], also=lambda made, first, second: [flat(first)]),
    "begins within a line": step(
        lambda x, y: [prim.slice(square(x, y), start=(0, 0), limit=(3, 5), stride=(1, 1)), x + y]
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_lie_there_is_copied(name):
    """An input or an output has its place, and kernels write from whole cache lines on."""
    check(REFUSED[name])
    if name != "an input":  # it is copied, as one: a view of it has memory of its own
        assert not joins(plan_of(REFUSED[name]))


def test_two_wholes_share_no_part():
    """The second is made by a kernel."""
    made = Program("twice")
    x = made.add_input(TensorType((N, N), "float32"))
    with emit_at(Builder.at_end(made.block)):
        a, b = flat(square(x, x)), flat(prim.exp(x))
        one, token = prim.all_reduce(prim.concat(a, b, axis=0), prim.create_token(), size=2)
        other, _ = prim.all_reduce(prim.concat(b, a, axis=0), token, size=2)
        made.set_outputs([prim.neg(one), prim.neg(other)])
    assert len(joins(plan_of(made))) == 1

    def rank(communicator):
        array = np.full((N, N), 0.5 + communicator.rank, np.float32)
        found = CinnCompiler().compile(made, device("cpu"), [communicator]).run([StridedArray.from_array(array)], [])
        return [x.to_host() for x in found], interpret(made, [array], (), [communicator])[0]

    for found, expected in run_ranks(rank, 2):
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5)
