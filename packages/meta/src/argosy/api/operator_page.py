"""The page of operators: ``python -m argosy.api.operator_page`` writes ``docs/OPERATORS.md`` in the working directory.

What a subsystem can do with an operator follows from its decomposition: it is expanded on its own samples, and the
primitives found there are looked up in the subsystem's tables.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from argosy_autograd.rules import NOT_APPLICABLE
from argosy_cinn.pipeline import lower_program
from argosy_cinn.plan.planning import plan_program
from argosy_cinn.target import Target
from argosy_phi_ops.declare.composition import find_composition
from argosy_phi_ops.declare.expansion import Expansion
from argosy_phi_ops.declare.index import COMPOSED, MODULES
from argosy_phi_ops.declare.operator import Operator, get_operator
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir.types import TensorType
from argosy_tensorcore.tensor import Tensor

__all__ = ["page", "rows"]

_INEXACT = ("float", "bfloat", "complex")


def page() -> str:
    """The text of the page."""
    head = (
        "# Operators\n\nWritten by `python -m argosy.api.operator_page`; a test compares. What each operator's "
        "decomposition\ninto primitives says about it, on its own samples:\n\n"
        "- **gradient**: some result depends on some operand through primitives that have derivatives;\n"
        "- **compiled**: natively, or with calls of the host for the primitives of the dtypes named;\n"
        "- **sharding**: its rule follows from the axis notation of its primitives, or operands are gathered for "
        "those named.\n\n"
        "| operator | module | gradient | compiled | sharding |\n|---|---|---|---|---|\n"
    )
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows())
    functions = "".join(
        f"| {name} | {module} | {_summary(find_composition(name))} |\n" for name, module in sorted(COMPOSED.items())
    )
    return (
        f"{head}{table}\n## Functions composed of operators\n\nThey have what the operators they call have.\n\n"
        f"| function | module | what it gives |\n|---|---|---|\n{functions}"
    )


def _summary(function: Any) -> str:
    """The first line of the docstring, fit for a table."""
    return str(function.__doc__).strip().partition("\n")[0].replace("|", "\\|")


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """Name, module, gradient, compiled, sharding of every operator."""
    for name, module in sorted(MODULES.items()):
        op = get_operator(name)
        if op.opaque:
            yield name, module, "no", "no: eager only", "no"
            continue
        found = list(_expansions(op))
        yield name, module, _gradient(found), _compile(found), _sharding_notes(found)


def _expansions(op: Operator) -> Iterator[Expansion]:
    for sample in op.sampler(np.random.default_rng(0)) if op.sampler is not None else ():
        args = tuple(_as_tensors(value) for value in sample.args)
        kwargs = {name: _as_tensors(value) for name, value in sample.kwargs.items()}
        operands, attributes = op.signature.bind(args, kwargs)
        if op.random:
            operands = (*operands, Tensor(np.zeros(2, np.uint64)))
            attributes = {**attributes, "counter": 0, "segments": (*attributes["segments"][:-1], 1)}
        given = [x if isinstance(x, Tensor) else Tensor(x) for x in operands]
        yield op.expand([TensorType(tuple(x.shape), x.dtype.name) for x in given], attributes)


def _as_tensors(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return Tensor(value)
    return [_as_tensors(item) for item in value] if isinstance(value, list) else value


def _operations(found: Sequence[Expansion]) -> Iterator[Any]:
    for expansion in found:
        yield from (op for op in expansion.program.walk() if op.name.startswith("prim."))


def _gradient(found: Sequence[Expansion]) -> str:
    for expansion in found:
        wanted: set[Any] = {v for v in expansion.program.inputs if v.dtype.startswith(_INEXACT)}
        for op in expansion.program.walk():
            passes = op.kind not in NOT_APPLICABLE
            if passes and wanted & set(op.operands):
                wanted |= {r for r in op.results if r.dtype.startswith(_INEXACT)}
        if wanted & set(expansion.program.outputs):
            return "yes"
    return "no"


def _compile(found: Sequence[Expansion]) -> str:
    hosts = set()
    for expansion in found:
        for step in plan_program(lower_program(expansion.program.clone(), Target.host()), Target.host()).steps:
            if step.group.kind.on_host:
                op = step.group.operation
                dtype = (op.operands or op.results)[0].dtype
                hosts.add(f"{op.name.removeprefix('prim.')} of {dtype}")
    return f"host: {', '.join(sorted(hosts))}" if hosts else "natively"


def _sharding_notes(found: Sequence[Expansion]) -> str:
    gathered = set()
    for op in _operations(found):
        primitive = PRIMITIVES[op.kind]
        attributes = {k: v for k, v in op.attributes.items() if k in primitive.attributes}
        if op.operands and primitive.notation([v.type for v in op.operands], attributes) is None:
            gathered.add(primitive.name)
    return f"gathers for {', '.join(sorted(gathered))}" if gathered else "from axes"


if __name__ == "__main__":
    Path("docs/OPERATORS.md").write_text(page(), encoding="utf-8")
    sys.stdout.write("wrote docs/OPERATORS.md\n")
