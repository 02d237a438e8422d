"""Weights that several kernels of a run read: a product of few rows takes as long as reading its weight, so that each
read beyond the first is time lost.

A weight is a constant, or a state that the run does not change, that is a matrix and does not stay in a first-level
cache. Kernels that read a part of it (rows of a table, a slice) count by the bytes they read, and it is read again
where these are twice its own. A product may read its weight several times: for each few rows, see
`argosy_cinn.assembly.products.passes_over_right`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from argosy_cinn.forms.cost import bytes_read
from argosy_cinn.forms.form import Form
from argosy_cinn.forms.nest import LoopNest
from argosy_cinn.forms.product import ProductForm
from argosy_cinn.plan.steps import Step
from argosy_cinn.shapes import Size, count, nbytes, sizes, smaller, surely_less
from argosy_cinn.target import Target
from argosy_pir.program import Program
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value


@dataclass(frozen=True, slots=True)
class WeightReads:
    """A ``weight``, and the kernels of a run that read of it: steps, forms, and the bytes that each reads, once."""

    weight: Value
    kernels: Sequence[tuple[Step, Form, Size]]

    def bytes_in(self, passes: Callable[[Value, Form], Size]) -> Size:
        """The bytes that a run reads, each kernel ``passes`` times."""
        return sum((read * passes(self.weight, form) for _, form, read in self.kernels), 0)

    def is_repeated(self, read: Size) -> bool:
        """Whether ``read`` bytes are twice the weight's, or may be, where sizes decide it."""
        return not surely_less(read, 2 * nbytes(self.weight))


def weight_reads(
    program: Program, constants: Iterable[Value], steps: Sequence[Step], target: Target
) -> list[WeightReads]:
    """The weights of a program, and what reads them."""
    unchanged = [
        state.argument
        for state, value in zip(program.states, program.state_updates, strict=True)
        if value is state.argument
    ]
    weights = [v for v in (*unchanged, *constants) if _is_large_matrix(v, target.l1_bytes)]
    readers: dict[Value, list[tuple[Step, Form, Size]]] = {weight: [] for weight in weights}
    for step in steps:
        for form in step.forms:
            for weight in form.reads() & readers.keys():
                readers[weight].append((step, form, _bytes_of(weight, form)))
    return [WeightReads(weight, kernels) for weight, kernels in readers.items() if kernels]


def _is_large_matrix(value: Value, cache: int) -> bool:
    shape = sizes(value)
    if not all(isinstance(n, int) for n in shape):
        return False
    return sum(n > 1 for n in shape) > 1 and nbytes(value) > cache


def _bytes_of(weight: Value, form: Form) -> int:
    """The bytes of a weight that a kernel reads at most once: siblings share them."""
    read = sum(_bytes_in(weight, part) for part in (form, *getattr(form, "siblings", ())))
    return smaller(read, nbytes(weight))


def _bytes_in(weight: Value, form: Form) -> int:
    if isinstance(form, LoopNest):
        return _loaded(weight, form.graph.order, form.variables)
    if not isinstance(form, ProductForm):
        return nbytes(weight)
    product, epilogue = form.product, form.epilogue
    size = ITEM_SIZES[weight.dtype]
    whole = [count(v) for v, m in zip(product.op.operands, product.operands, strict=False) if m.buffer is weight]
    return size * sum(whole) + _loaded(weight, epilogue.graph.order, epilogue.variables)


def _loaded(weight: Value, order: Iterable[Any], variables: Sequence[Any]) -> int:
    return bytes_read([n for n in order if n.kind == "load" and n.payload[0] is weight], variables)


__all__ = ["WeightReads", "weight_reads"]
