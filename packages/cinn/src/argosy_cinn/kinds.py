"""The kinds of kernels, a line each: a new kind, or another family of schedules, is registered here and nowhere else.

A *form* (`argosy_cinn.forms`) says what a kernel computes, a family of *schedules* how machines of a sort do it, and an
*emitter* is found by both. ``chunks`` is for cores with vectors: a kernel is cut into chunks for any thread to run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from argosy_cinn.dialect import FOURIER, NOTE, ORDER, SCALED_GROUPED
from argosy_phi_ops.errors import CompileError

if TYPE_CHECKING:
    from argosy_cinn.emitter import Emitter
    from argosy_cinn.forms.form import Form
    from argosy_pir.core import Operation


@dataclass(frozen=True, slots=True)
class Kind:
    """Where a kind of kernel is found (``module:name``, in this package where it begins with a dot): its emitters by
    family of schedules, and, where nothing is fused into it, the ``operations`` that it is made of, with
    their ``lowering`` to a form."""

    emitters: Mapping[str, str]
    operations: tuple[str, ...] = ()
    lowering: str = ""


_TEXT = ".simt.sources:EMITTER"
KINDS = {
    "nest": Kind({"chunks": ".loops.nest:EMITTER", "simt": ".simt.nest:EMITTER", "text": _TEXT}),
    "product": Kind({"chunks": ".assembly.products:EMITTER", "simt": ".simt.product:EMITTER", "text": _TEXT}),
    "attention": Kind({"chunks": ".attention.emit:EMITTER", "simt": ".simt.attention:EMITTER"}),
    "paged attention": Kind(
        {"chunks": ".paged_attention.emit:EMITTER"},
        operations=("prim.paged_attention",),
        lowering=".paged_attention.lowering:lower_paged_attention",
    ),
    "segment merge": Kind({"chunks": ".paged_attention.merge:EMITTER"}),
    "grouped product": Kind(
        {"chunks": ".grouped_gemm.emit:EMITTER"},
        operations=("prim.grouped_dot", "prim.grouped_outer", SCALED_GROUPED),
        lowering=".grouped_gemm.lowering:lower_grouped",
    ),
    "sum of parts": Kind({"chunks": ".attention.emit:SUM_EMITTER", "simt": ".simt.attention:SUM_EMITTER"}),
    "order": Kind(
        {"chunks": ".ordering.emit:EMITTER", "simt": ".simt.order:EMITTER", "text": _TEXT},
        operations=(ORDER,),
        lowering=".ordering.lowering:lower_order",
    ),
    "fourier": Kind(
        {"chunks": ".fourier.emit:EMITTER"}, operations=(FOURIER,), lowering=".fourier.lowering:lower_fourier"
    ),
    "index check": Kind(
        {"chunks": ".checks.emit:EMITTER", "simt": ".simt.index_check:EMITTER", "text": _TEXT},
        operations=(NOTE,),
        lowering=".checks.lowering:lower_check",
    ),
    "control": Kind(
        {"chunks": ".assembly.control:EMITTER", "simt": ".simt.control:EMITTER", "text": ".simt.control:EMITTER"}
    ),
}
#: The kind of what an operation becomes alone.
KIND_OF_OPERATION = {op: name for name, kind in KINDS.items() for op in kind.operations}


def has_emitter(kind: str, family: str) -> bool:
    """Whether forms of a kind have an emitter for a family of schedules."""
    return family in KINDS[kind].emitters


@cache
def emitter_of(kind: str, family: str) -> Emitter:
    """The emitter of forms of a kind for a family of schedules. Raises `CompileError` where there is none."""
    emitters = KINDS[kind].emitters
    if family not in emitters:
        raise CompileError(f"kernels of kind {kind!r} have no schedule of family {family!r}")
    emitter: Emitter = _find(emitters[family])
    return emitter


def lower_alone(op: Operation) -> Form:
    """The form of an operation that is a kernel alone."""
    form: Form = _find(KINDS[KIND_OF_OPERATION[op.name]].lowering)(op)
    return form


@cache
def _find(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module, __package__), attribute)
