"""Operations that have code for wider dtypes only, done there and rounded once: sums scattered into narrow floats,
products of dtypes that no instruction multiplies. Products in int32 of what was int8 are products of bytes."""

from __future__ import annotations

from dataclasses import dataclass

from argosy_cinn.forms.dtypes import DTYPES, NARROW, SMALL_INTEGERS
from argosy_cinn.lowering.classify import has_product
from argosy_cinn.rewrites.builders import Rule, defined_by, replacements
from argosy_phi_ops import prim
from argosy_pir.core import Operation
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.rewrite.driver import apply_patterns
from argosy_pir.values import Value

#: What combining booleans by a sum or product is.
_OF_BOOLEANS = {"add": "max", "mul": "min"}


def _scatter(op: Operation) -> Value | None:
    """Narrow floats accumulate in float32, booleans as bytes."""
    x, indices, updates = op.operands
    a, dtype = op.attributes, x.dtype
    if a["kind"] == "set" or not (dtype in NARROW or dtype == "bool"):
        return None
    wide, kind = ("uint8", _OF_BOOLEANS.get(a["kind"], a["kind"])) if dtype == "bool" else ("float32", a["kind"])
    operands = prim.cast(x, dtype=wide), indices, prim.cast(updates, dtype=wide)
    result: Value = prim.cast(prim.scatter(*operands, axes=a["axes"], batch=a["batch"], kind=kind), dtype=dtype)
    return result


def _dot(op: Operation) -> Value | None:
    """Operands are converted to what the products are summed in where nothing multiplies them as they are."""
    a, source, dtype = op.attributes, op.operand(0).dtype, op.result.dtype
    if (narrow := as_bytes(op)) is not None:
        return prim.dot_general(*narrow, **{**a, "accumulate": "int32"})  # type: ignore[no-any-return]
    if has_product(source, a["accumulate"] or dtype):
        return None
    wide = a["accumulate"] or source
    wide = "float32" if wide in NARROW else "int32" if wide in SMALL_INTEGERS else wide
    axes = {k: a[k] for k in ("lhs_contract", "rhs_contract", "lhs_batch", "rhs_batch")}
    result: Value = prim.cast(prim.dot_general(*(prim.cast(v, dtype=wide) for v in op.operands), **axes), dtype=dtype)
    return result


def as_bytes(op: Operation) -> tuple[Value, Value] | None:
    """The operands of a product or convolution in int32 before both were converted from int8; None for others."""
    made = [defined_by(v, "prim.cast") for v in op.operands]
    if op.result.dtype != "int32" or None in made:
        return None
    x, w = (cast.operand(0) for cast in made if cast is not None)
    return (x, w) if x.dtype == w.dtype == "int8" else None


def _conv(op: Operation) -> Value | None:
    dtype = op.result.dtype
    if has_product(dtype, dtype):
        return None
    wide = "float32" if dtype in NARROW else "int32"
    result: Value = prim.cast(prim.conv(*(prim.cast(v, dtype=wide) for v in op.operands), **op.attributes), dtype=dtype)
    return result


_RULES: dict[str, Rule] = {
    "prim.scatter": _scatter,
    "prim.dot_general": _dot,
    "prim.conv": _conv,
}


def _with_code(rule: Rule) -> Rule:
    """A rule for operations on dtypes that there is code for."""
    return lambda op: rule(op) if all(v.dtype in DTYPES for v in (*op.operands, *op.results)) else None


_PATTERNS = replacements("widen-narrow", {name: _with_code(rule) for name, rule in _RULES.items()})


@register_pass("widen-narrow")
@dataclass(frozen=True)
class WidenNarrow(Pass):
    """Rewrites operations on narrow dtypes that have code for wider ones only: done there, and rounded once."""

    def run(self, program: Program) -> bool:
        """Rewrite the program's own block; True where anything changed."""
        return apply_patterns(program.block, _PATTERNS, max_iterations=1, fold=False).has_changed
