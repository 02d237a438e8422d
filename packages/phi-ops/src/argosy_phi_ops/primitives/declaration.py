"""The declaration of a primitive, and what calling one does.

A primitive is declared by a function from operand types to result types; its positional parameters are the operands and
its keyword-only ones the attributes::

    @primitive("layout")
    def transpose(x: TensorType, *, permutation: Shape) -> TensorType:
        '''Permute the axes of ``x``.'''
        return TensorType(tuple(x.shape[i] for i in permutation), x.dtype)

Called with IR values a primitive emits ``prim.<name>`` at the ambient builder; called with numpy arrays it evaluates
the reference kernel. Everything that is known about a primitive elsewhere (derivative, sharding, lowering) is a rule
filed under its name by the subsystem that owns the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argosy_phi_ops.declare.axes import AxisNotation
from argosy_phi_ops.errors import OperatorError
from argosy_phi_ops.primitives.cost import Cost, cost_of_moving, elements, no_cost
from argosy_pir.types import TensorType, Type

__all__ = ["PRIMITIVES", "Primitive", "Shape", "primitive"]

Shape = tuple[Any, ...]
"""Dims of a shape (int or symbolic), or axis numbers."""

PRIMITIVES: dict[str, Primitive] = {}
"""Every primitive by name: a closed set, complete once :mod:`argosy_phi_ops.primitives` is imported."""


class Primitive:
    """One primitive operation: its operands, attributes and type rule.

    ``operands`` names the positional parameters; the last one is variadic when ``variadic`` is set. ``attributes`` maps
    attribute names to defaults (``REQUIRED`` where there is none). ``category`` is the family's name. ``effect`` marks
    operations whose order matters. ``work`` is the number of operations that an element takes, in instructions of
    vector code, roughly.
    """

    REQUIRED = object()
    binding: Callable[[Primitive, tuple[Any, ...], dict[str, Any]], Any]
    """What a call does; :mod:`argosy_phi_ops.primitives.binding` puts it here."""

    __slots__ = (
        "_axes",
        "_cost",
        "attributes",
        "broadcasts",
        "category",
        "doc",
        "effect",
        "name",
        "operands",
        "rule",
        "variadic",
        "work",
    )

    def __init__(
        self, rule: Callable[..., Any], category: str, *, broadcasts: bool = False, effect: bool = False,
        name: str = "", work: int = 1,
    ) -> None:  # fmt: skip
        code = rule.__code__
        count, keyword_count = code.co_argcount, code.co_kwonlyargcount
        names = code.co_varnames
        defaults = rule.__kwdefaults__ or {}
        self.name = name or rule.__name__.rstrip("_")
        self.category = category
        self.variadic = bool(code.co_flags & 0x04)
        self.operands: tuple[str, ...] = names[:count]
        if self.variadic:
            self.operands += (names[count + keyword_count],)
        self.attributes: dict[str, Any] = {
            k: defaults.get(k, self.REQUIRED) for k in names[count : count + keyword_count]
        }
        self.rule = rule
        self.doc = rule.__doc__ or ""
        self.broadcasts = broadcasts
        self.effect = effect
        self.work = work
        self._cost: Callable[..., Cost] | None = None
        self._axes: Callable[..., AxisNotation | None] | None = None

    def axes(self, rule: Callable[..., AxisNotation | None]) -> Callable[..., AxisNotation | None]:
        """Decorator: file the function that gives the axis notation, called like the type rule."""
        self._axes = rule
        return rule

    def notation(self, operand_types: Sequence[Type], attributes: Mapping[str, Any]) -> AxisNotation | None:
        """The axis notation for operands of these types, or None when the dependence cannot be written as one."""
        return None if self._axes is None else self._axes(*operand_types, **attributes)

    def costs(self, rule: Callable[..., Cost]) -> Callable[..., Cost]:
        """Decorator: file the function that gives the cost, called with the tuple of result types and then like the
        type rule. Without one every operand is read, and ``work`` done for each element of the results."""
        self._cost = rule
        return rule

    def cost(self, operand_types: Sequence[Type], attributes: Mapping[str, Any], result_types: Sequence[Type]) -> Cost:
        """Operations and bytes of an application, which whoever knows a machine makes seconds of."""
        if self._cost is not None:
            return self._cost(result_types, *operand_types, **attributes)
        made = sum(elements(t.shape) for t in result_types if isinstance(t, TensorType))
        return cost_of_moving(operand_types, result_types, self.work * made)

    @property
    def is_free(self) -> bool:
        """Whether an application costs nothing: a view, or numbers of positions."""
        return self._cost is no_cost

    def complete(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """``attributes`` with defaults filled in. Raises :class:`OperatorError` for unknown or missing names."""
        unknown = attributes.keys() - self.attributes.keys()
        if unknown:
            raise OperatorError(
                f"prim.{self.name} has no attribute {sorted(unknown)}; it has {sorted(self.attributes)}"
            )
        full = {**self.attributes, **attributes}
        missing = [name for name, value in full.items() if value is self.REQUIRED]
        if missing:
            raise OperatorError(f"prim.{self.name} needs attribute {', '.join(missing)}")
        return {name: tuple(value) if isinstance(value, list) else value for name, value in full.items()}

    def infer(self, operand_types: Sequence[Type], attributes: Mapping[str, Any]) -> tuple[Type, ...]:
        """Result types. Raises :class:`OperatorError` naming the primitive, what came and what was expected."""
        return self.types(operand_types, self.complete(attributes))

    def types(self, operand_types: Sequence[Type], attributes: Mapping[str, Any]) -> tuple[Type, ...]:
        """`infer` for attributes that are complete."""
        if not self._accepts(len(operand_types)):
            raise OperatorError(
                f"prim.{self.name} takes operands ({', '.join(self.operands)}), got {len(operand_types)} operands"
            )
        result = self.rule(*operand_types, **attributes)
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)

    def _accepts(self, count: int) -> bool:
        return count >= len(self.operands) - 1 if self.variadic else count == len(self.operands)

    def __call__(self, *operands: Any, **attributes: Any) -> Any:
        """Emit the operation for IR values, or evaluate it on numpy arrays; see the module's docstring."""
        return type(self).binding(self, operands, attributes)

    def __repr__(self) -> str:
        return f"<primitive {self.name}({', '.join(self.operands)}; {', '.join(self.attributes)})>"


def primitive(
    category: str, *, broadcasts: bool = False, effect: bool = False, name: str = "", work: int = 1
) -> Callable[[Callable[..., Any]], Primitive]:
    """Decorator: declare the primitive whose type rule the function is, and enter it in :data:`PRIMITIVES`."""

    def declare(rule: Callable[..., Any]) -> Primitive:
        new = Primitive(rule, category, broadcasts=broadcasts, effect=effect, name=name, work=work)
        if new.name in PRIMITIVES:
            raise OperatorError(f"primitive {new.name} is declared twice")
        PRIMITIVES[new.name] = new
        return new

    return declare
