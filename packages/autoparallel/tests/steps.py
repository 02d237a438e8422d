"""A proof by induction over steps: all layouts of an operator at once, however many it has.

Whatever the layouts of an operator's operands, the partitioner composes its program of steps of two kinds:

- a primitive application on parts, as one strategy for each mesh dimension says (``emit_local``);
- a change of one mesh dimension of a value's layout (``emit_step``).

The layouts decide only which of the steps are taken. If every strategy that there is for every primitive application of
an operator's program gives what one process gives, and every change of layout of every value keeps what the value is,
then any composition does, by induction over the program. What is left to go wrong is the bookkeeping (which step reads
which value), which does not depend on layouts: operators are run in layouts by chance as well.

Bodies of loops and branches take the same steps, for layouts that stay as they are from one time to the next.
"""

import itertools
from typing import NamedTuple

import numpy as np
from lockstep import parts_of, run_together, whole_of
from occurrences import value_of
from prover import assert_close, calls, types_of

from argosy_autoparallel import Partial, ProcessMesh, ReduceType, Replicate, Shard
from argosy_autoparallel.localize import LocalOperation, emit_local
from argosy_autoparallel.resharding.convert import convert
from argosy_autoparallel.resharding.emitter import Emitter
from argosy_autoparallel.resharding.path import is_allowed
from argosy_autoparallel.resharding.steps import emit_step
from argosy_autoparallel.spmd import strategies
from argosy_autoparallel.spmd.strategy import StrategyQuery
from argosy_autoparallel.strategy_choice import drop_mixed_reductions
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType
from argosy_tensorcore.dtype import as_dtype


class Application(NamedTuple):
    """A primitive application, but for the values: what a step depends on."""

    name: str
    attributes: tuple
    operands: tuple
    results: tuple

    @property
    def dtypes(self):
        """Those of its operands."""
        return {x.dtype for x in self.operands}


class Value(NamedTuple):
    """What a change of layout depends on."""

    shape: tuple
    dtype: str

    @property
    def dtypes(self):
        """The one."""
        return {self.dtype}


class Needed(NamedTuple):
    """The steps of an operator: its applications, its values, and the reductions that values may be left with."""

    applications: list
    values: list
    kinds: tuple


def steps_of(name):
    """The steps of all programs of an operator's samples; none of one that has no program."""
    op, applications, values = get_operator(name), {}, {}
    for _, operands, attributes, _ in [] if op.opaque else calls(name):
        program = op.expand(types_of(op, operands), attributes).program
        tensors = list(program.inputs)
        for made in program.walk():
            tensors += [x for x in (*made.operands, *made.results) if isinstance(x.type, TensorType)]
            if made.dialect == "prim":
                given = tuple(made.attributes.items())
                types = tuple(x.type for x in made.operands), tuple(x.type for x in made.results)
                applications[Application(made.name, given, *types)] = None
        values.update(dict.fromkeys(Value(x.type.shape, _LIKE[as_dtype(x.dtype).kind]) for x in tensors))
    return Needed(list(applications), list(values), _kinds(applications))


_LIKE = {"f": "float32", "V": "float32", "c": "complex64", "i": "int64", "u": "int64", "b": "bool"}
"""What a change of layout looks at of a dtype is its kind alone."""


def _kinds(applications):
    """The reductions that are left to be made: the sums of operands that come so, and what strategies leave."""
    found = {ReduceType.kRedSum}
    for application in applications:
        for given in ([Replicate()], [Partial()]):
            _, op = alone(application)
            types = [x.type for x in op.operands], [x.type for x in op.results]
            options = strategies(StrategyQuery(op, *types, op.attributes, 2, {}, given * len(op.operands)))
            found.update(p.reduce_type() for s in options for p in s.results if isinstance(p, Partial))
    return tuple(sorted(found))


class Steps:
    """The proof of operators on a mesh; what several operators have in common is proven once."""

    def __init__(self, mesh_ranks, seed=0):
        self.mesh = ProcessMesh(mesh_ranks)
        self.seed = seed
        self.proven = {}
        self.changes = set()

    def prove(self, name):
        """Prove every step of an operator; returns how many there are."""
        needed = steps_of(name)
        count = sum(self._once(prove_application, x, needed.kinds) for x in needed.applications)
        return count + sum(self._once(self._prove_changes, x, needed.kinds) for x in needed.values)

    def _prove_changes(self, *given):
        return prove_changes(*given, self.changes)

    def _once(self, prove, step, kinds):
        kinds = tuple(k for k in kinds if any(k in kinds_of(dtype) for dtype in step.dtypes))
        key = prove, str(step), kinds
        if key not in self.proven:
            self.proven[key] = prove(step, self.mesh, kinds, np.random.default_rng(self.seed))
        return self.proven[key]


# Applications


def alone(application):
    """A program of the one operation."""
    program = Program("alone")
    operands = [program.add_input(t) for t in application.operands]
    made = Builder.at_end(program.block).create(
        application.name, operands, dict(application.attributes), result_types=list(application.results)
    )
    program.set_outputs(list(made.results))
    return program, made


def choices(op, mesh, kinds):
    """Every way to run ``op`` on ``mesh``: a strategy for each dimension, whatever the operands' placements are."""
    types = [x.type for x in op.operands], [x.type for x in op.results]
    found = [((), {})]
    for size in mesh.shape:
        longer = []
        for chosen, taken in found:
            options = {}
            for given in [[placement] * len(types[0]) for placement in _placements(types[0], kinds)]:
                options.update(dict.fromkeys(strategies(StrategyQuery(op, *types, op.attributes, size, taken, given))))
            for s in filter(_exists(types[0], kinds), drop_mixed_reductions(options, chosen)):
                now = {**taken, s.factor: taken.get(s.factor, 1) * size} if s.factor else taken
                longer.append(((*chosen, s), now))
        found = longer
    return [chosen for chosen, _ in found]


def _placements(types, kinds):
    """What rules may ask operands for: axes that are split, reductions that are left."""
    ndim = max((len(x.shape) for x in types), default=0)
    return [Replicate(), *map(Shard, range(ndim)), *map(Partial, kinds)]


def _exists(types, kinds):
    """Whether the operands of a strategy may be laid out as it asks: there are no averages of integers."""
    have = [{k for k in kinds_of(x.dtype) if k in kinds} for x in types]
    return lambda s: all(
        not isinstance(p, Partial) or p.reduce_type() in k for p, k in zip(s.operands, have, strict=True)
    )


def prove_application(application, mesh, kinds, rng):
    """Run every choice for an application on parts; returns how many there are."""
    program, op = alone(application)
    arrays = [_operand(application, i, x, rng) for i, x in enumerate(program.inputs)]
    expected = interpret(program, arrays)[0]
    found = choices(op, mesh, kinds)
    for chosen in found:
        _prove_choice(op, mesh, chosen, arrays, expected)
    return len(found)


def _prove_choice(op, mesh, chosen, arrays, expected):
    given = [Layout(mesh, [s.operands[i] for s in chosen]) for i in range(len(op.operands))]
    wanted = [Layout(mesh, [s.results[i] for s in chosen]) for i in range(len(op.results))]
    what = f"{op.name} {dict(op.attributes)} of {[str(x.type) for x in op.operands]} as {given} -> {wanted}"
    try:
        parts = [parts_of(a, layout) for a, layout in zip(arrays, given, strict=True)]
        programs = [_local_program(op, rank, given, wanted) for rank in mesh.process_ids]
        made = run_together(programs, list(zip(*parts, strict=True)) or [()] * len(programs), mesh.process_ids)
        for number, (layout, array) in enumerate(zip(wanted, expected, strict=True)):
            assert_close(whole_of([m[number] for m in made], layout), array, what)
    except Exception as error:
        error.add_note(what)
        raise


def _local_program(op, rank, given, wanted):
    program = Program("local")
    emitter = Emitter(program, rank)
    operands = [
        program.add_input(TensorType(layout.local_slice(tuple(x.shape), rank).shape, x.dtype))
        for x, layout in zip(op.operands, given, strict=True)
    ]
    emitter = Emitter(program, rank)
    with emitter.emit_here():
        made = emit_local(LocalOperation(emitter, op, operands, given, wanted))
    program.set_outputs(list(made))
    return program


_ADDRESSED = {"prim.gather": 1, "prim.scatter": 1}  # the operand that holds indices


def _operand(application, number, x, rng):
    """A value well inside of every domain; indices go over the ends of the axis that they address."""
    shape, dtype = tuple(x.shape), as_dtype(x.dtype).numpy
    if _ADDRESSED.get(application.name) == number and dtype.kind == "i":
        axes = dict(application.attributes)["axes"]
        sizes = [application.operands[0].shape[axis] for axis in axes]
        columns = [rng.integers(-1, n + 1, shape[:-1]) for n in sizes]
        return np.stack(columns, -1).astype(dtype)
    square = PRIMITIVES[application.name.removeprefix("prim.")].category == "decomposition"
    return value_of(shape, dtype, square, rng)


# Changes of layout


def changes(value, mesh, kinds):
    """Every (layout, mesh dimension, new placement) that the search of ways may take a value through."""
    single = [Replicate(), *(Shard(i) for i in range(len(value.shape)))]
    single += [Partial(kind) for kind in kinds]
    for placements in itertools.product(single, repeat=mesh.ndim):
        layout = Layout(mesh, placements)
        if len({p.reduce_type() for p in placements if isinstance(p, Partial)}) > 1:
            continue
        for dim in range(mesh.ndim):
            for new in single:
                if new != placements[dim] and is_allowed(layout, dim, new):
                    yield layout, dim, new


def kinds_of(dtype):
    """The reductions that a value of a dtype may be left with."""
    if dtype == "bool":
        return ReduceType.kRedAny, ReduceType.kRedAll, ReduceType.kRedMax, ReduceType.kRedMin
    sums = (ReduceType.kRedSum, ReduceType.kRedProd)
    if as_dtype(dtype).kind == "c":
        return sums
    extrema = (ReduceType.kRedMax, ReduceType.kRedMin)
    return (*sums, *extrema) if as_dtype(dtype).kind in "iu" else (*sums, *extrema, ReduceType.kRedAvg)


def prove_changes(value, mesh, kinds, rng, proven=None):
    """Run every change of layout of a value; returns how many there are. Those that differ in axes alone that no
    placement names are run once, and those in ``proven`` not again."""
    proven, count = set() if proven is None else proven, 0
    for given in changes(value, mesh, kinds):
        essential = _essential(value, *given)
        if essential not in proven:
            proven.add(essential)
            (shape, dtype), *change = essential
            prove_change(value_of(shape, as_dtype(dtype).numpy, False, rng), *change)
        count += 1
    return count


def _essential(value, layout, dim, new):
    """The change without the axes that neither layout splits: they are carried along."""
    named = sorted({p.dim for p in (*layout.placements, new) if isinstance(p, Shard)})
    *placements, new = (Shard(named.index(p.dim)) if isinstance(p, Shard) else p for p in (*layout.placements, new))
    return Value(tuple(value.shape[axis] for axis in named), value.dtype), Layout(layout.mesh, placements), dim, new


def prove_change(array, layout, dim, new):
    """Run one change of layout on all ranks."""
    ranks = layout.mesh.process_ids
    parts = parts_of(array, layout)
    programs = []
    for rank, part in zip(ranks, parts, strict=True):
        program = Program("change")
        x = program.add_input(TensorType(part.shape, as_dtype(array.dtype).name))
        emitter = Emitter(program, rank)
        with emitter.emit_here():
            program.set_outputs([emit_step(emitter, x, layout, array.shape, dim, new)])
        programs.append(program)
    made = run_together(programs, [[p] for p in parts], ranks)
    what = f"{array.dtype} {array.shape}: {list(layout.placements)}, dimension {dim} to {new}"
    assert_close(whole_of([outputs[0] for outputs in made], layout.with_placement(dim, new)), array, what)


# Transfers between meshes


def prove_transfers(array, source, target):
    """Bring ``array`` from every layout on the mesh ``source`` into every one on ``target``; returns how many ways
    there are. Of parts ranks are sent what they lack, and nothing else."""
    single = [Replicate(), *(Shard(i) for i in range(array.ndim)), Partial()]
    pairs = [
        [Layout(mesh, placements) for placements in itertools.product(single, repeat=mesh.ndim)]
        for mesh in (source, target)
    ]
    for given, wanted in itertools.product(*pairs):
        _prove_transfer(array, given, wanted)
    return len(pairs[0]) * len(pairs[1])


def _prove_transfer(array, given, wanted):
    ranks = sorted({*given.mesh.process_ids, *wanted.mesh.process_ids})
    parts = dict(zip(given.mesh.process_ids, parts_of(array, given), strict=True))
    programs = {}
    for rank in ranks:
        program = programs[rank] = Program("transfer")
        x = program.add_input(TensorType(parts[rank].shape, as_dtype(array.dtype).name)) if rank in parts else None
        emitter = Emitter(program, rank)
        with emitter.emit_here():
            made = convert(emitter, x, given, wanted, array.shape, as_dtype(array.dtype).name)
        program.set_outputs([made] if wanted.mesh.contains(rank) else [])
    outputs = run_together(list(programs.values()), [[parts[r]] if r in parts else [] for r in ranks], ranks)
    outputs = dict(zip(ranks, outputs, strict=True))
    what = f"{array.dtype} {array.shape}: {given} to {wanted}"
    assert_close(whole_of([outputs[r][0] for r in wanted.mesh.process_ids], wanted), array, what)
    if not given.is_partial and not wanted.is_partial:
        sent = sum(op.operand(0).type.size for p in programs.values() for op in p.walk() if op.name == "prim.send")
        assert sent == sum(_lacking(array, given, wanted, rank) for rank in wanted.mesh.process_ids), what


def _lacking(array, given, wanted, rank):
    """How many elements of its part in ``wanted`` a rank has not in ``given``."""
    lacks = np.zeros(array.shape, bool)
    lacks[wanted.local_slice(array.shape, rank).slices()] = True
    if given.mesh.contains(rank):
        lacks[given.local_slice(array.shape, rank).slices()] = False
    return int(lacks.sum())
