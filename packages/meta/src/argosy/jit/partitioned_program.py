"""Captured programs on distributed tensors: each rank compiles its own part.

The capture is that of one device: global shapes, no communication. The engine of ``argosy_autoparallel`` turns it into
the program of this rank for the layouts of inputs and states.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

from argosy.jit import lowering
from argosy.settings import CHECK_PROGRAMS
from argosy_hwadapt import Device
from argosy_phi_ops.capture.tracer import CapturedProgram, TracedPayload
from argosy_phi_ops.compiler import Executable
from argosy_phi_ops.context import context, own_context
from argosy_phi_ops.errors import UnsupportedSizes
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Value
from argosy_pir.dims import SymExpr, evaluate_dim, is_static
from argosy_pir.garbage import pause_collection
from argosy_pir.passes import PassManager
from argosy_pir.program import Program
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_autoparallel.incremental import IncrementalLayouts
    from argosy_autoparallel.tensor_layout import Layout

__all__ = [
    "CaptureLayouts", "PartitionedExecutable", "communicates", "kept_layouts", "layouts_of", "lower_partitioned",
    "makes_distributed",
]  # fmt: skip

_OF_ONE_RANK = frozenset(
    ["prim.to_local", "prim.from_local", *(f"prim.{n}" for n, p in PRIMITIVES.items() if p.category == "communication")]
)
"""What a program on global tensors has only where a rank asked for it, whose groups, peers and shapes are its own."""


def layouts_of(tensors: Sequence[Tensor]) -> tuple[Layout | None, ...] | None:
    """The layout of each tensor, None for ordinary ones; None when all are ordinary."""
    found = tuple([getattr(t.payload, "layout", None) for t in tensors])
    return found if any(layout is not None for layout in found) else None


def kept_layouts(captured: CapturedProgram) -> list[Layout | None]:
    """What is asked of a captured program's outputs: a gradient that will be written over one that is there comes laid
    out like that, also where both are still to be summed. Everything else lies as it comes.
    """
    found: list[Layout | None] = [None] * len(captured.program.outputs)
    for tensor, position, _ in captured.grads:
        if position is not None and tensor._grad is not None:
            found[position] = getattr(tensor._grad.payload, "layout", None)
    return found


def makes_distributed(program: Program) -> bool:
    """Whether a captured program lays tensors out over ranks by itself, or communicates: ``shard_tensor``, ``reshard``,
    ``all_reduce`` within.
    """
    names = {op.name for op in program.walk()}
    return not names.isdisjoint(("phi.redistribute_op", "prim.relayout")) or communicates(names)


def communicates(names: Set[str]) -> bool:
    """Whether among operations of these ``names`` are some that only a rank's program has, and no eager execution."""
    module: Any = sys.modules.get("argosy_autoparallel.rank_operators")
    return module is not None and not names.isdisjoint(module.COMMUNICATING)


class CaptureLayouts:
    """How the traced tensors of one capture lie: ``layouts(payload)`` is where the partitioner has one after the
    operations so far, None for an ordinary one.
    """

    def __init__(self) -> None:
        self._incremental: IncrementalLayouts | None = None

    def __call__(self, payload: TracedPayload) -> Layout | None:
        """Raises NotImplementedError for a tensor that is made within a branch or a loop."""
        tracer, value = payload.tracer, payload.value
        if self._incremental is None:
            if not _is_distributed(tracer):
                return None
            from argosy_autoparallel.incremental import IncrementalLayouts

            self._incremental = IncrementalLayouts(
                tracer.program,
                lambda: layouts_of(tracer.given) or (),
                lambda: [getattr(t.payload, "layout", None) for t in tracer.states()],
                context().rank,
            )
        found = self._incremental.find(value)
        return _behind_gradients(tracer, value) if found is None else found[0]


def _is_distributed(tracer: Any) -> bool:
    """Whether a traced tensor may be: collectives alone make none."""
    tensors = (*tracer.given, *tracer.states())
    names = ("phi.redistribute_op", "prim.relayout", "phi.from_local_op", "prim.from_local")
    return layouts_of(tensors) is not None or any(op.name in names for op in tracer.program.walk())


def _behind_gradients(tracer: Any, value: Value) -> Layout | None:
    """The layout of a value that depends on gradients, whose requests are expanded with the whole program in view. All
    gradients are looked at together."""
    from argosy_autoparallel.partition import partition

    mapping: dict[Value, Value] = {}
    program = tracer.program.clone(mapping)
    found = mapping.get(value)  # not there where its branch or loop has not ended
    if found is None or program.block not in (found.owner, getattr(found.owner, "parent", None)):
        raise NotImplementedError(
            "the placements of a tensor that is made within a captured branch or loop of a program on a mesh are not "
            "known: take parts, and communicate, before it or after it, or leave the branch to Python "
            "(full_graph=False)"
        )
    gradients = [result for op in tracer.program.block if op.name == "ad.gradient" for result in op.results]
    asked = [v for v in dict.fromkeys([value, *gradients]) if v not in tracer.placed]
    program.set_outputs([mapping[v] for v in asked])
    with own_context():
        PassManager(lowering.PIPELINE, verify=False).run(program)
    inputs = layouts_of(tracer.given) or ()
    inputs += (None,) * (len(program.inputs) - len(inputs))
    states = layouts_of(tracer.states()) or (None,) * len(program.states)
    made = partition(program, inputs, states, context().rank)
    tracer.placed.update(zip(asked, made.output_layouts, strict=True))
    return made.output_layouts[0]


def lower_partitioned(
    program: Program,
    backend: lowering.Backend,
    device: Device,
    inputs: tuple[Layout | None, ...] | None,
    states: tuple[Layout | None, ...] | None,
    outputs: Sequence[Layout | None] = (),
    overlap: bool = False,
    reshard_after_use: bool = False,
    reduce_scalars: bool = True,
) -> PartitionedExecutable:
    """Run the passes on the global ``program``, cut out this rank's part and compile it for ``device``.

    ``inputs`` and ``states`` are layouts (None: all ordinary). Inputs beyond those given are numbers. ``outputs`` may
    ask for layouts (None: as it comes); ``overlap`` and ``reshard_after_use`` as in ``partition``, ``reduce_scalars``
    as in ``partition_ranks``. The programs of all ranks are compared first, as ``ARGOSY_CHECK_PROGRAMS`` says:
    ``ScheduleError`` where they do not communicate alike.
    """
    from argosy_autoparallel.groups import communicators
    from argosy_autoparallel.partition import partition_ranks
    from argosy_autoparallel.schedule import verify_programs

    program = _with_whole_operators(program)
    given = inputs or ()
    given += (None,) * (len(program.inputs) - len(given))
    laid = given, states or (None,) * len(program.states), outputs
    sizes = OpenSizes.of(program, given)
    here, size = context().rank, context().size
    with pause_collection():
        ranks = [(here + i) % size for i in range(size)]
        walks = partition_ranks(program, *laid, ranks, overlap, reshard_after_use, reduce_scalars)
        made = next(walks)
        if sizes is None and _is_checked(program, made.program):
            programs = [made.program, *(other.program for other in walks)]
            verify_programs(programs[size - here :] + programs[: size - here])
    types = [(tuple(value.shape), value.dtype) for value in program.outputs]
    made.program.name = f"{program.name}_rank{here}"
    lowering.simplify(made.program, f"cse,dce,{lowering.RECOMPUTATION}")
    return PartitionedExecutable(
        lowering.build(made.program, backend, device, communicators()), made.output_layouts, types, sizes
    )


def _is_checked(program: Program, local: Program) -> bool:
    """Whether the programs of all ranks are compared: this one, ``local``, communicates, and ``program`` is what every
    rank has captured, nothing in it being of one rank alone."""
    if not 1 < context().size <= (CHECK_PROGRAMS.read() or 0):
        return False
    names = {op.name for op in program.walk()}
    return names.isdisjoint(_OF_ONE_RANK) and any(op.name in _OF_ONE_RANK for op in local.walk())


def _with_whole_operators(program: Program) -> Program:
    """``program`` after the passes, in place; or a copy in which operators with rules of their own are left as they
    are."""
    from argosy_autoparallel.operator_rules import ruled_operators
    from argosy_phi_ops.passes.decompose import Decompose

    kept = ruled_operators()
    names = {op.name for op in program.walk()}
    whole = program
    if not names.isdisjoint(f"phi.{name}" for name in kept):
        whole = program.clone()
        lowering.simplify(whole, lowering.PIPELINE.replace("decompose", str(Decompose(keep=kept))))
    lowering.simplify(program)
    return whole


class OpenSizes(NamedTuple):
    """Where the symbolic sizes of a global program are told, by input and axis, and into how many parts each is cut."""

    places: dict[str, tuple[int, int]]
    parts: dict[str, int]

    @staticmethod
    def of(program: Program, layouts: Sequence[Layout | None]) -> OpenSizes | None:
        """Those of a program's inputs; None where there are none."""
        from argosy_autoparallel.open_sizes import parts_of_sizes

        places: dict[str, tuple[int, int]] = {}
        for number, value in enumerate(program.inputs):
            for axis, size in enumerate(value.shape):
                if isinstance(size, SymExpr) and size.symbols == {str(size)}:
                    places.setdefault(str(size), (number, axis))
        return OpenSizes(places, parts_of_sizes(program.inputs, layouts)) if places else None

    def read(self, inputs: Sequence[Any]) -> dict[str, int]:
        """The sizes of a call. Raises ``UnsupportedSizes`` for one that ranks cannot have equal parts of."""
        found = {name: inputs[number].shape[axis] for name, (number, axis) in self.places.items()}
        for name, parts in self.parts.items():
            if found[name] % parts:
                raise UnsupportedSizes(f"{found[name]} elements of an axis of open size are no {parts} equal parts")
        return found


class PartitionedExecutable:
    """An executable of one rank that takes and gives distributed payloads. Has the protocol ``Executable``."""

    def __init__(
        self,
        local: Executable,
        layouts: Sequence[Layout | None],
        types: Sequence[tuple[tuple[Any, ...], str]],
        sizes: OpenSizes | None = None,
    ) -> None:
        self.local = local
        self.program: Program = local.program
        self.layouts = tuple(layouts)
        self._sizes = sizes
        self._wrap = [_wrapper(layout, *type) for layout, type in zip(layouts, types, strict=True)]

    def run(self, inputs: Sequence[Any], states: Sequence[Any]) -> list[Any]:
        """Run once; states are updated in place."""
        sizes = self._read_sizes(inputs)
        return self._wrap_outputs(
            self.local.run([_local_part(x) for x in inputs], [_local_part(x) for x in states]), sizes
        )

    def bind(self, states: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
        """The function of inputs, with these states."""
        run = self.local.bind([_local_part(x) for x in states])

        def call(inputs: Sequence[Any]) -> list[Any]:
            sizes = self._read_sizes(inputs)
            return self._wrap_outputs(run([_local_part(x) for x in inputs]), sizes)

        return call

    def _read_sizes(self, inputs: Sequence[Any]) -> Mapping[str, int]:
        return {} if self._sizes is None else self._sizes.read(inputs)

    def _wrap_outputs(self, outputs: Sequence[StridedArray], sizes: Mapping[str, int]) -> list[Any]:
        return [wrap(x, sizes) for wrap, x in zip(self._wrap, outputs, strict=True)]

    def report(self) -> dict[str, Any]:
        """What the compiler says of this rank's program."""
        return dict(self.local.report())


def _local_part(payload: Any) -> StridedArray:
    return payload if type(payload) is StridedArray else payload.local


def _wrapper(
    layout: Layout | None, shape: tuple[Any, ...], dtype: str
) -> Callable[[StridedArray, Mapping[str, int]], Any]:
    """What makes a payload of an output's part, given the sizes of the call."""
    if layout is None:
        return lambda local, sizes: local
    from argosy_autoparallel.dist_tensor import ShardedArray

    element = as_dtype(dtype)
    if is_static(shape):
        return lambda local, sizes: ShardedArray(local, shape, element, layout)
    return lambda local, sizes: ShardedArray(local, [evaluate_dim(n, sizes) for n in shape], element, layout)
