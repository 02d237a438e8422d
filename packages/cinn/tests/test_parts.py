"""The compiler's parts alone: index arithmetic, memory plan, vector functions, the cache of programs, row buffers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import ON_HOST, build, check, on_host

from argosy_cinn import CinnCompiler
from argosy_cinn.forms.expressions import Graph, loaded_buffers
from argosy_cinn.forms.indices import (
    Index,
    Lookup,
    Position,
    Quotient,
    Remainder,
    Variable,
    atom_index,
    delinearise,
    linearise,
)
from argosy_cinn.forms.nest import LoopNest, Reduction, Store
from argosy_cinn.fusion.group_lowering import GridLowering, KnownReads
from argosy_cinn.fusion.groups import Fusion
from argosy_cinn.fusion.memory import Memory
from argosy_cinn.loops.schedule import row_buffers
from argosy_cinn.lowering.elements import NotAligned
from argosy_cinn.pipeline import lower_program
from argosy_cinn.plan.memory import Lifetime, assign_offsets
from argosy_cinn.runtime import ObjectCache
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Dense, Program, TensorType
from argosy_tensorcore.storage import StridedArray


def evaluate(index, values):
    """The number that an index is for given variables."""
    total = index.constant
    for atom, coefficient in index.terms:
        if isinstance(atom, Variable):
            number = values[atom.number]
        else:
            assert not isinstance(atom, Lookup)
            inner = evaluate(atom.index, values)
            number = inner // atom.divisor if isinstance(atom, Quotient) else inner % atom.divisor
            assert isinstance(atom, Quotient | Remainder)
        total += coefficient * number
    return total


shapes = st.lists(st.integers(1, 7), min_size=1, max_size=4)


@settings(max_examples=200, deadline=None)
@given(shapes, shapes, st.data())
def test_coordinates_of_a_position_are_exact_and_lead_back(loops, shape, data):
    variables = [Variable(i, n) for i, n in enumerate(loops)]
    flat = linearise([atom_index(v) for v in variables], loops)
    coordinates = delinearise(flat, shape, split=False)
    back = linearise(coordinates, shape)
    values = [data.draw(st.integers(0, n - 1)) for n in loops]
    position = evaluate(flat, values)
    if position < np.prod(shape):
        want = np.unravel_index(position, shape)
        assert tuple(evaluate(c, values) for c in coordinates) == tuple(want)
        assert evaluate(back, values) == position


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40), st.integers(0, 40)), min_size=2, max_size=30))
def test_groups_know_all_that_must_run_before_them(steps):
    """Joined groups, too, and what was made after them; kernels are joined and ordered by it."""

    def program(*found):
        found = [*found]
        for kind, i, j in steps:
            x, y = found[i % len(found)], found[j % len(found)]
            turned = prim.transpose(y, permutation=(1, 0))
            total = prim.broadcast(prim.reduce_sum(y, axes=(kind % 2,)), shape=x.shape, axes=(1 - kind % 2,))
            product = prim.dot_general(x, turned, lhs_contract=(1,), rhs_contract=(0,)) if kind == 4 else x
            found.append((prim.add(x, y), prim.tanh(x), prim.mul(x, total), prim.add(x, turned), product, x)[kind])
        return [prim.copy(x) for x in found[3::3]] or [found[-1]]

    made = build(program, [np.zeros((64, 64), np.float32)] * 3)
    memory = Memory(lower_program(made, Target.host()))
    fusion = Fusion(memory)
    before: dict[int, set[int]] = {}

    def earlier(group):
        if group.number not in before:
            producers = fusion.producers(group)
            before[group.number] = {p.number for p in producers}.union(*map(earlier, producers))
        return before[group.number]

    for group in fusion.groups.values():
        known = {other.number for other in fusion.groups.values() if group.ancestors & other.bits}
        assert known == earlier(group)


def layers(x, w, count):
    """So many equal blocks: a normalised product with a residual."""
    for _ in range(count):
        y = prim.tanh(prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,)))
        total = prim.broadcast(prim.reduce_sum(prim.mul(y, y), axes=(1,)), shape=x.shape, axes=(0,))
        x = prim.add(x, prim.div(y, prim.sqrt(total)))
    return x


def fused(program):
    """The fusion of a program, and what it knows of its groups."""
    memory = Memory(lower_program(program, Target.host()))
    reads = KnownReads(memory)
    return Fusion(memory, reads), reads, memory


def test_repeated_blocks_are_lowered_once():
    operands = [np.zeros((64, 64), np.float32)] * 2
    few, many = (fused(build(lambda x, w, n=n: layers(x, w, n), operands)) for n in (4, 12))
    assert len(many[0].groups) > len(few[0].groups)
    assert many[1].lowered == few[1].lowered


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=16))
def test_joined_groups_read_what_their_own_expressions_load(steps):
    def program(x, y):
        found = [x, y]
        for kind, i, j in [(0, 0, 1), (1, 2, 0), *steps * 2]:
            x, y = found[i % len(found)], found[j % len(found)]
            total = prim.broadcast(prim.reduce_sum(y, axes=(kind % 2,)), shape=x.shape, axes=(1 - kind % 2,))
            product = prim.dot_general(x, y, lhs_contract=(1,), rhs_contract=(0,)) if kind == 4 else x
            moved = prim.slice(prim.concat(x, y, axis=0), start=(3, 0), limit=(67, 64), stride=(1, 1))
            found.append(
                (prim.add(x, y), prim.tanh(x), prim.mul(x, total), moved, product, total, prim.mul(x, 2.0))[kind]
            )
        return found[2:]

    class Lowered(KnownReads):
        """Each group that is considered, lowered."""

        considered = False

        def find_joint_reads(self, group, first, second):
            Lowered.considered = True
            grid = GridLowering(group, memory.values, split=False)
            try:
                grid.lower()
            except NotAligned:
                with pytest.raises(NotAligned):
                    super().find_joint_reads(group, first, second)
                raise
            loaded = loaded_buffers(grid.graph) | (group.product.buffers if group.product is not None else set())
            assert super().find_joint_reads(group, first, second) == loaded - group.members.keys()
            return loaded - group.members.keys()

    memory = Memory(lower_program(build(program, [np.zeros((64, 64), np.float32)] * 2), Target.host()))
    Fusion(memory, Lowered(memory))
    assert Lowered.considered


def test_views_that_undo_each_other_leave_the_index_as_it_was():
    row, column = Variable(0, 48), Variable(1, 256)
    flat = atom_index(row) * 256 + atom_index(column)
    there = Position((8, 6, 256), flat)
    assert Position((8, 6, 256), None, there.coordinates).flat_index == flat
    assert Position((2, 4, 6, 16, 16), flat).with_shape((48, 256), flat).coordinates == (
        atom_index(row),
        atom_index(column),
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 50_000), st.integers(0, 12), st.integers(0, 6)), max_size=30))
def test_values_alive_at_the_same_time_never_overlap(recipe):
    lifetimes = [Lifetime(i, size, first, first + length) for i, (size, first, length) in enumerate(recipe)]
    offsets, size = assign_offsets(lifetimes)
    for a in lifetimes:
        assert offsets[a.key] % 64 == 0
        assert offsets[a.key] + a.nbytes <= size
        for b in lifetimes:
            if a.key < b.key and a.first <= b.last and b.first <= a.last:
                assert offsets[a.key] + a.nbytes <= offsets[b.key] or offsets[b.key] + b.nbytes <= offsets[a.key]


def test_an_equal_program_comes_from_the_cache_whole(tmp_path):
    x = np.ones((5, 40), np.float32)

    def program():
        return build(lambda x: [on_host(prim.tanh(x), 1), prim.add(x, 1.0)], [x])

    options = {"cache": ObjectCache(tmp_path)}
    first = CinnCompiler().compile(program(), device("cpu"), options=options)
    again = CinnCompiler().compile(program(), device("cpu"), options=options)
    other = CinnCompiler().compile(build(lambda x: prim.add(x, 2.0), [x]), device("cpu"), options=options)
    assert [e.report()["cache_hit"] for e in (first, again, other)] == [False, True, False]
    assert again.report()["host_calls"] == {ON_HOST: 1}
    assert again.describe() == first.describe()
    a, b = (e.run([StridedArray.from_array(x)]) for e in (first, again))
    assert all((p.array() == q.array()).all() for p, q in zip(a, b, strict=True))


def test_constants_of_a_program_from_the_cache_are_kept(tmp_path):
    program = Program("constants")
    x = program.add_input(TensorType((4,), "float32"))
    builder = Builder.at_end(program.block)
    type = TensorType((4,), "float32")
    table = builder.constant(type, Dense(type, np.arange(4, dtype=np.float32).tobytes()))
    with emit_at(builder):
        program.set_outputs([prim.mul(x, table)])
    for _ in range(2):
        executable = CinnCompiler().compile(program, device("cpu"), options={"cache": ObjectCache(tmp_path)})
        (got,) = executable.run([StridedArray.from_array(np.full(4, 3, np.float32))])
        assert got.array().tolist() == [0, 3, 6, 9]


def test_long_rows_recompute_and_short_ones_are_buffered():
    def program(x):
        e = prim.exp(x)
        total = prim.reduce_sum(e, axes=(1,))
        return prim.div(e, prim.broadcast(total, shape=x.shape, axes=(0,)))

    for columns in (33, 20_000):
        x = np.random.default_rng(0).standard_normal((3, columns)).astype(np.float32)
        assert check(program, x, scale=4).report()["kernel_calls"] == 1


def test_the_last_value_that_phases_share_is_kept_not_what_it_is_made_of():
    graph, row, column = Graph(), Variable(0, 8), Variable(1, 64)
    place = atom_index(row) * 64 + atom_index(column)
    x, y = (graph.load(name, place, "float32", ()) for name in "xy")
    shared = graph.node("add", "float32", (graph.node("tanh", "float32", (x,)), y))
    largest = graph.reduction_result(0, "float32", row.variables, 1)
    power = graph.node("exp", "float32", (graph.node("sub", "float32", (shared, largest)),))
    total = graph.reduction_result(1, "float32", row.variables, 2)
    share = graph.node("div", "float32", (power, total))
    reductions = [Reduction("max", "float32", shared, largest), Reduction("sum", "float32", power, total)]
    stores = [Store("z", place, share, "float32", False)]
    assert row_buffers(LoopNest(graph, [row], [column], reductions, stores)) == [shared, power]


def test_what_is_cheap_to_compute_again_is_not_kept():
    graph, row, column = Graph(), Variable(0, 8), Variable(1, 64)
    place = atom_index(row) * 64 + atom_index(column)
    shared = graph.node("mul", "float32", [graph.load(name, place, "float32", ()) for name in "xy"])
    total = graph.reduction_result(0, "float32", row.variables, 1)
    stores = [Store("z", place, graph.node("mul", "float32", (shared, total)), "float32", False)]
    reductions = [Reduction("sum", "float32", shared, total)]
    assert row_buffers(LoopNest(graph, [row], [column], reductions, stores)) == []


def test_indices_print_and_compare_by_value():
    i = Variable(0, 5)
    assert atom_index(i) * 3 + 2 == Index([(Variable(0, 5), 3)], 2)
    assert str(atom_index(i) * 3 + 2) == "3*i0 + 2"
