"""Training through a captured forward function: ``loss.backward()`` outside of it.

The captured program is one node of the tape. Its backward program is made by differentiating the captured one and
recomputes what it needs from inputs and states, so nothing but those is kept between the two calls. Of states that the
program writes (the counter of random draws, running statistics) it is a copy of what they were before.

Gradients that are to be differentiated again (``create_graph=True``) come from the same backward program as an
operator of its own: it is differentiated like every other one, to any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy.jit import lowering
from argosy.jit.arguments import Call
from argosy.jit.compiled import CompiledCall, OutputTree
from argosy.jit.partitioned_program import PartitionedExecutable, layouts_of, lower_partitioned
from argosy_autograd.derivatives import ProgramOperator
from argosy_autograd.pylayer import PyLayer
from argosy_autograd.tiered_program import TieredProgram
from argosy_autograd.transform import vjp_program
from argosy_hwadapt import Device
from argosy_phi_ops.capture.tracer import CapturedProgram
from argosy_phi_ops.compiler import Executable
from argosy_phi_ops.context import grad_enabled
from argosy_phi_ops.eager.placement import accelerator_of
from argosy_phi_ops.eager.recording import record_results
from argosy_pir import Operation
from argosy_pir.program import Program
from argosy_pir.values import Value
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_autoparallel.tensor_layout import Layout

__all__ = ["DifferentiableCall", "differentiable_form", "is_differentiable_forward", "writes_what_it_leaves"]

_KEEPING = lowering.PIPELINE.replace("expand-gradients", "expand-gradients{keep-custom=true}")


def is_differentiable_forward(captured: CapturedProgram, tree: OutputTree) -> bool:
    """Whether what was captured leaves gradients to be asked for later: results want them, and nothing was trained."""
    return any(not t.stop_gradient for t in tree.traced) and not captured.grads and not _writes_leaves(captured)


def writes_what_it_leaves(captured: CapturedProgram, tree: OutputTree) -> bool:
    """Whether gradients will be asked for, later, of parameters that the forward function writes (it clips weights,
    say): they would be those of the values before."""
    return (
        any(not t.stop_gradient for t in tree.traced)
        and not captured.grads
        and _writes_leaves(captured)
        and all(op.name != "ad.gradient" for op in captured.program.walk())
    )


def _writes_leaves(captured: CapturedProgram) -> bool:
    return any(not captured.states[i].stop_gradient for i in captured.written)


def differentiable_form(program: Program) -> Program:
    """What is differentiated of a captured ``program``: itself, as it is when it has been lowered, or, where users gave
    derivatives (PyLayer, hooks), a copy that keeps them.
    """
    if all(op.name != "ad.custom" for op in program.walk()):
        return program
    kept = program.clone()
    lowering.simplify(kept, _KEEPING)
    return kept


def values_read(results: Iterable[Value]) -> set[Value]:
    """``results`` and the values that they are made of, those behind a ``stop_gradient`` left out."""
    found: set[Value] = set()
    pending = list(results)
    while pending:
        value = pending.pop()
        if value in found:
            continue
        found.add(value)
        if isinstance(value.owner, Operation) and value.owner.name != "prim.stop_gradient":
            pending += [operand for op in value.owner.walk() for operand in op.operands]
    return found


class DifferentiableCall(CompiledCall):
    """A compiled forward function whose results can be differentiated; ``lowered`` is what is differentiated."""

    __slots__ = (
        "backend", "backward", "cotangents", "device", "differentiable", "leaves", "lowered", "reads", "recorded",
        "written",
    )  # fmt: skip

    def __init__(
        self, captured: CapturedProgram, executable: Executable, tree: OutputTree, *rest: Any, backend: Any,
        device: Device, lowered: Program,
    ) -> None:  # fmt: skip
        self.differentiable = [i for i, t in enumerate(tree.traced) if not t.stop_gradient]
        super().__init__(captured, executable, tree, *rest)
        self.lowered = lowered
        self.backend, self.device = backend, device
        self.leaves = [
            (i, t) for i, t in enumerate(captured.states) if not t.stop_gradient and t.payload.dtype.kind in "fc"
        ]
        self.reads: dict[frozenset[int], list[bool]] = {}  # by results, see `reached`
        self.backward: Any = None
        self.recorded: _BackwardOperator | None = None
        self.written = captured.written
        self.cotangents = self._cotangent_layouts(executable)

    def __call__(self, call: Call) -> Any:
        """Execute, and leave one node on the tape."""
        if self.carried:
            call = self.add_carried(call)
        wanted = [x for x in call.tensors if not x.stop_gradient] + [t for _, t in self.leaves]
        made = _Forward.apply(self, call, *wanted)
        return self.tree.fill(list(made))

    def values_before(self) -> list[Any]:
        """Copies of the states that a call is about to write, as payloads."""
        return [StridedArray(self.bound[i][1].ndarray.copy()) for i in self.written]

    def gradients(self, call: Call, cotangents: list[Any], before: list[Any]) -> list[Any]:
        """Gradients of the inputs that want them, then of the leaves among the states, as payloads; ``before`` is what
        :meth:`values_before` gave for the forward call."""
        if self.backward is None:
            self.backward = self._compile_backward(call)
        payloads = [*self.payloads(call), *(g.payload for g in cotangents), *before]
        return self.backward(payloads)  # type: ignore[no-any-return]

    def recorded_gradients(self, call: Call, cotangents: list[Tensor], before: list[Any]) -> list[Tensor]:
        """The same as tensors that can be differentiated again."""
        if self.cotangents is not None:
            raise NotImplementedError(
                f"{self.lowered.name}: second derivatives (create_graph=True) of a captured function of distributed "
                "tensors, asked for outside of it; take paddle.grad inside of the captured function"
            )
        if self.recorded is None:
            self.recorded = _BackwardOperator(self._backward_program(call), self.device)
        inputs = self.payloads(call)[len(call.tensors) :] + before
        made = [Tensor._wrap(payload) for payload in inputs]
        floats, before = made[: len(made) - len(before)], made[len(made) - len(before) :]
        states = [tensor for tensor, _ in self.bound]
        return self.recorded([*call.tensors, *floats, *cotangents, *before, *states])

    def _backward_program(self, call: Call) -> Program:
        program = vjp_program(self.lowered, self._wrt(call), self.differentiable)
        program.name = self.lowered.name + "_backward"
        unchanged = [state.argument for state in program.states]
        program.set_outputs(program.outputs[len(self.lowered.outputs) :], unchanged)
        for i in self.written:  # read as they were before the forward program wrote them
            unchanged[i].replace_all_uses_with(program.add_input(unchanged[i].type))
        program.set_outputs(program.outputs, unchanged)
        return program

    def _wrt(self, call: Call) -> list[int]:
        """The numbers of the inputs and then the states that want gradients."""
        inputs = len(self.lowered.inputs)
        return [i for i, x in enumerate(call.tensors) if not x.stop_gradient] + [inputs + i for i, _ in self.leaves]

    def _compile_backward(self, call: Call) -> Any:
        executable = self._lowered_backward(self._backward_program(call), call, self._wrt(call))
        return executable.bind([payload for _, payload in self.bound])

    def reached_inputs(self, call: Call, results: frozenset[int]) -> list[bool]:
        """Which of the inputs and states that want gradients these ``results`` read."""
        found = self.reads.get(results)
        if found is None:
            values = values_read([self.lowered.outputs[i] for i in results])
            arguments = self.lowered.block.arguments
            found = self.reads[results] = [arguments[i] in values for i in self._wrt(call)]
        return found

    # ---- on a mesh

    def _lowered_backward(self, program: Program, call: Call, wrt: list[int]) -> Executable:
        """The backward program compiled; on a mesh this rank's, with gradients laid out like what they belong to."""
        if self.cotangents is None:
            return lowering.lower(program, self.backend, self.device)
        inputs = layouts_of(call.tensors) or (None,) * len(call.tensors)
        states = tuple([getattr(payload, "layout", None) for _, payload in self.bound])
        inputs += (None,) * (len(self.lowered.inputs) - len(inputs))
        wanted = [(inputs + states)[i] for i in wrt]
        outputs = [None if layout is None else layout.cotangent() for layout in wanted]
        return lower_partitioned(
            program, self.backend, self.device, inputs + self.cotangents, states, outputs, reduce_scalars=False
        )

    def _cotangent_layouts(self, executable: Executable) -> tuple[Layout | None, ...] | None:
        """Where the gradients of results lie; None for a program of ordinary tensors."""
        if not isinstance(executable, PartitionedExecutable):
            return None
        layouts = [executable.layouts[i] for i in self.differentiable]
        return tuple([None if layout is None else layout.cotangent() for layout in layouts])

    def place_cotangents(self, cotangents: list[Tensor]) -> list[Tensor]:
        """Cotangents where the backward program expects them."""
        if self.cotangents is None:
            return cotangents
        from argosy_autoparallel.redistribution import redistribute

        return [
            g if layout is None or getattr(g.payload, "layout", None) == layout else redistribute(g, layout)
            for g, layout in zip(cotangents, self.cotangents, strict=True)
        ]


class _Forward(PyLayer):
    """The node: forward and backward are one native call each."""

    @staticmethod
    def forward(ctx: Any, compiled: DifferentiableCall, call: Call, *wanted: Tensor) -> tuple[Tensor, ...]:
        """The traced results."""
        ctx.before = compiled.values_before()
        made = tuple(Tensor._wrap(payload) for payload in compiled.execute(call))
        ctx.set_materialize_grads(False)
        ctx.types = [(y.payload.shape, y.payload.dtype.numpy, accelerator_of(y)) for y in made]
        chosen = set(compiled.differentiable)
        ctx.mark_non_differentiable(*(t for i, t in enumerate(made) if i not in chosen))
        ctx.compiled, ctx.call = compiled, call
        kept = [tensor for i, (tensor, _) in enumerate(compiled.bound) if i not in compiled.written]
        ctx.save_for_backward(*call.tensors, *kept)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        """Gradients of ``wanted``; None of those that the results with gradients do not read, as in eager execution."""
        ctx.saved_tensor()  # raises where an input or a parameter was changed in between
        chosen = ctx.compiled.differentiable
        reached = ctx.compiled.reached_inputs(ctx.call, frozenset(i for i in chosen if grads[i] is not None))
        full = [_cotangent(grads[i], *ctx.types[i]) for i in chosen]
        cotangents = ctx.compiled.place_cotangents(full)
        if grad_enabled():
            made = ctx.compiled.recorded_gradients(ctx.call, cotangents, ctx.before)
        else:
            made = [Tensor._wrap(payload) for payload in ctx.compiled.gradients(ctx.call, cotangents, ctx.before)]
        return tuple(g if reads else None for g, reads in zip(made, reached, strict=True))


def _cotangent(g: Tensor | None, shape: Any, dtype: Any, device: Device | None) -> Tensor:
    """A result's gradient where the result is; zeros where there is none."""
    if g is not None and (type(g.payload) is not StridedArray or g.payload.array_type.device is device):
        return g
    array = np.zeros(shape, dtype) if g is None else g.payload.to_host()
    return Tensor._wrap(StridedArray.from_array(array, device))


class _BackwardOperator:
    """A backward program as an operator on tensors, whose states are inputs like the others."""

    __slots__ = ("_operator", "_run")

    def __init__(self, program: Program, device: Device) -> None:
        outputs = program.outputs
        program.states.clear()  # they are the last arguments of the block: inputs from here on
        program.set_outputs(outputs)
        self._operator: Any = ProgramOperator(program.name, program, device)
        self._run = TieredProgram(self._operator.expansion.runs, device)

    def __call__(self, operands: list[Tensor]) -> list[Tensor]:
        """The gradients, recorded."""
        made = [Tensor._wrap(StridedArray.from_array(a)) for a in self._run([x.payload.ndarray for x in operands])]
        record_results(self._operator, operands, {}, made)
        return made
