"""Tensors that share memory, while capturing: a write to one of them is seen in the others, as in eager execution.

A traced tensor that comes from a view operator knows what it shows of what. Writing to it writes to that base, and a
write to a base gives all views of it that anybody still holds their new values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from argosy_phi_ops.declare.operator import Operator, get_operator
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_phi_ops.capture.tracer import Tracer

__all__ = ["View", "is_view", "link", "one_operand_view", "refresh", "write_through"]

_RESHAPING = frozenset({"reshape", "flatten", "ravel", "unflatten", "view", "view_as", "as_strided"})
"""Views of contiguous memory only: of other memory they are copies."""
_ALWAYS = frozenset({"squeeze", "unsqueeze"})
"""Views that leave memory as contiguous as it was."""


class View:
    """Result number ``result`` of the operator ``op`` of ``base``, the payload of a traced tensor or a concrete tensor.

    ``contiguous`` tells that it is known to show one stretch of memory, ``certain`` that it is a view for sure.
    """

    __slots__ = ("attributes", "base", "certain", "contiguous", "op", "result")

    def __init__(self, base: Any, op: Operator, attributes: dict[str, Any], result: int) -> None:
        under = getattr(base, "view_of", None)
        plain = under is None or under.contiguous
        self.base = base
        self.op = op
        self.attributes = attributes
        self.result = result
        self.certain = (under is None or under.certain) and (plain or op.name not in _RESHAPING)
        self.contiguous = plain and op.name in _RESHAPING | _ALWAYS

    def base_tensor(self) -> Tensor:
        """The base as a tensor."""
        if isinstance(self.base, Tensor):
            return self.base
        return Tensor._wrap(self.base, not self.base.active)

    def overwrite_operation(self, base: Tensor, value: Tensor) -> tuple[Operator, tuple[Any, ...], dict[str, Any]]:
        """The operator, its operands and attributes, that gives the base after ``value`` is written to the view.

        Raises ``NotImplementedError`` for what may be a copy.
        """
        self.check_writable()
        op = get_operator("overwritten_view")
        options = tuple(self.attributes.items())
        return op, *op.signature.bind((base, value, self.op.name, options, self.result), {})

    def check_writable(self) -> None:
        """Raise ``NotImplementedError`` for what may be a copy."""
        if not self.certain:
            raise NotImplementedError(
                f"writing to what {self.op.name} of a tensor with gaps in its memory gave, which may be a copy, is not "
                "implemented for distributed tensors and while capturing; write to the base tensor"
            )


def is_view(op: Operator, operands: Any) -> bool:
    """Whether a view operator of these operands gives views: one that indexes by tensors gives a copy."""
    return op.name != "getitem" or len(operands) == 1


def one_operand_view(op: Operator, attributes: dict[str, Any], shape: Any) -> tuple[Operator, dict[str, Any]]:
    """The operator and attributes that give the view, of ``shape``, by its base alone."""
    return (get_operator("reshape"), {"shape": tuple(shape)}) if op.name == "view_as" else (op, attributes)


def link(tracer: Tracer, made: Tensor, operands: Any, op: Operator, attributes: dict[str, Any], result: int) -> None:
    """Note that ``made`` is a result of a view operator."""
    if not is_view(op, operands):
        return
    base = operands[0]
    op, attributes = one_operand_view(op, attributes, made.payload.shape)
    view = View(base.payload if base.payload.is_traced else base, op, attributes, result)
    made.payload.view_of = view
    place = view.base if base.payload.is_traced else tracer._entry(base)
    place.views.append(ref(made.payload))


def write_through(tracer: Tracer, target: Tensor, value: Tensor) -> Tensor:
    """Write ``value`` to a view: its base becomes another version, and so does what else shows that. Gives the base."""
    view: View = target.payload.view_of
    base = view.base_tensor()
    tracer.overwrite(base, tracer.record_operator(*view.overwrite_operation(base, value)))
    target.stop_gradient = target.stop_gradient and value.stop_gradient
    return base


def refresh(tracer: Tracer, place: Any, base: Value, active: bool) -> None:
    """Give the views of a place (a traced payload, or a state) that has become ``base`` their new values."""
    alive = [(weak, payload) for weak in place.views if (payload := weak()) is not None]
    place.views = [weak for weak, _ in alive]
    for _, payload in alive:
        view: View = payload.view_of
        if not view.certain:
            continue
        expansion = view.op.expand([base.type], view.attributes)
        made = tracer.builder.create(
            f"phi.{view.op.name}", [base], view.attributes, expansion.result_types, location=payload.location,
            inferred=True,
        )  # fmt: skip
        tracer._note(payload)
        payload.value = made.results[view.result]
        payload.shape, payload.dtype = payload.value.shape, as_dtype(payload.value.dtype)
        payload.active = active and payload.dtype.kind in "fc"
        refresh(tracer, payload, payload.value, payload.active)
