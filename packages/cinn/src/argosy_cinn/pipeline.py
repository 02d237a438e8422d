"""The passes of the compiler, as one list: from a program of operators to the form that plans are made of.

`argosy.explain` shows this list, with ``ARGOSY_DUMP`` each of them leaves its result, and on the command line any of
them runs alone: ``python -m argosy_pir opt program.pir -p "inline,split-complex"``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argosy_cinn.batch_tiling.rewrite import BatchTiling
from argosy_cinn.checks.rewrite import LowerIndexChecks, NumberIndexChecks
from argosy_cinn.complex_lowering.split import SplitComplex
from argosy_cinn.fourier.products import TransformsToProducts
from argosy_cinn.fourier.rewrite import AbsorbFactors, ExpandTransforms
from argosy_cinn.ordering.rewrite import SortToOrder
from argosy_cinn.recursion import deep_recursion
from argosy_cinn.rewrites.alignment import AlignContractions
from argosy_cinn.rewrites.convolution import LowerConvolutions
from argosy_cinn.rewrites.copies import CopyConstants, CopyResults
from argosy_cinn.rewrites.decompositions import ExpandDecompositions
from argosy_cinn.rewrites.indexed_products import ExpandIndexedProducts
from argosy_cinn.rewrites.random_counters import RandomCounters
from argosy_cinn.rewrites.simplify import Simplify
from argosy_cinn.rewrites.split_depth import SplitDepth
from argosy_cinn.rewrites.widening import WidenNarrow
from argosy_cinn.target import Target
from argosy_phi_ops.passes.primitives import primitive_passes
from argosy_phi_ops.settings import VERIFY
from argosy_pir.passes import Pass, PassManager
from argosy_pir.passes.cse import CommonSubexpressions
from argosy_pir.passes.dce import DeadCode
from argosy_pir.passes.inline import Inline
from argosy_pir.passes.symbol_dce import SymbolDeadCode
from argosy_pir.program import Program
from argosy_pir.rewrite.fuel import current_session


def compiler_passes(target: Target, options: Mapping[str, Any] | None = None) -> tuple[Pass, ...]:
    """All of them: what makes primitives of operators, which decides whether a compiled program is found on disk, and
    what lowers primitives."""
    return *primitive_passes(options), *lowering_passes(target)


def lowering_passes(target: Target, family: str = "chunks") -> tuple[Pass, ...]:
    """The passes for a machine, of which they know what their options say, and its ``family`` of schedules:
    work-groups have no products with scales of groups."""
    on_cores = family == "chunks"
    return (
        NumberIndexChecks(),
        Inline(),
        SymbolDeadCode(),
        *((ExpandTransforms(target.vector_bits),) if on_cores else _EXPANSIONS),
        SplitComplex(),
        WidenNarrow(),
        AlignContractions(on_cores),
        SortToOrder(),
        LowerConvolutions(target.vector_bits),
        DeadCode(),
        Simplify(),
        CommonSubexpressions(ignore_annotations=True),
        AbsorbFactors(),
        DeadCode(),
        BatchTiling(target.l2_bytes),
        DeadCode(),
        LowerIndexChecks(),
        RandomCounters(),
        CopyResults(),
        CopyConstants(),
    )


#: What work-groups have no steps of transforms, library of decompositions or kernels of looked-up matrices for; and
#: products that would have too few of them.
_EXPANSIONS = (ExpandDecompositions(), ExpandIndexedProducts(), TransformsToProducts(), SplitDepth())


def lower_program(program: Program, target: Target, family: str = "chunks") -> Program:
    """A copy of a program of primitives after the passes that lower it."""
    return _run(lowering_passes(target, family), program)


def dump_passes(program: Program, target: Target, options: Mapping[str, Any], folder: Path) -> None:
    """Leave the result of every pass in a folder."""
    _run(compiler_passes(target, options), program, folder)


def _run(passes: tuple[Pass, ...], program: Program, dump: Path | None = None) -> Program:
    copy = program.clone()
    with deep_recursion():
        PassManager(passes, verify=VERIFY.read(), dump=dump, session=current_session()).run(copy)
    return copy
