"""spmd-partition: one rank's program of a program on global tensors."""

from __future__ import annotations

from dataclasses import dataclass

from argosy_autoparallel.partition import Partitioner
from argosy_autoparallel.tensor_layout import Layout, parse_layout, print_layout
from argosy_pir.errors import PassError
from argosy_pir.passes import Pass, register_pass
from argosy_pir.program import Program

__all__ = ["SpmdPartition"]


@register_pass("spmd-partition")
@dataclass(frozen=True)
class SpmdPartition(Pass):
    """Cuts out what ``rank`` runs of a program of primitives on global tensors, with the communication that it takes.

    ``inputs``, ``states`` and ``outputs`` are layouts such as ``"dp=2 on 0-1: S(0)"``, for the first of them at least;
    none for a tensor that every rank of the world holds, and for an output that lies as it comes. Where the outputs lie
    is the attribute ``output_layouts`` of what comes out. ``reshard_after_use`` is as in ``partition``.
    `combine-collectives` comes next.
    """

    inputs: tuple[str | None, ...] = ()
    states: tuple[str | None, ...] = ()
    outputs: tuple[str | None, ...] = ()
    rank: int = 0
    reshard_after_use: bool = False

    def run(self, program: Program) -> bool:
        """Replace the program; all ranks' passes must have the same options but ``rank``."""
        inputs = _layouts("input", self.inputs, len(program.inputs))
        states = _layouts("state", self.states, len(program.states))
        outputs = _layouts("output", self.outputs, len(program.outputs))
        made = Partitioner(program, inputs, states, self.rank, self.reshard_after_use).run(outputs)
        texts = [None if layout is None else print_layout(layout) for layout in made.output_layouts]
        program.become(made.program)
        program.attributes["output_layouts"] = tuple(texts)
        return True


def _layouts(what: str, texts: tuple[str | None, ...], count: int) -> list[Layout | None]:
    if len(texts) > count:
        raise PassError(f"spmd-partition: {len(texts)} {what} layouts for a program of {count} {what}s")
    return [None if text is None else parse_layout(text) for text in (*texts, *[None] * (count - len(texts)))]
