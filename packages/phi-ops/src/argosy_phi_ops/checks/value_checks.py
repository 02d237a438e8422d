"""Values that eager execution refuses: singular matrices, bounds that are exchanged.

Primitives compute on, as compiled code must: a matrix without an inverse gives infinities or NaN. An operator whose
users are told says with :meth:`Operator.refuse_values` what to look at, and a look is taken after its kernel has run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy_phi_ops.checks.bounds import check_bounds
from argosy_phi_ops.declare.operator import Operator

__all__ = ["guard_values", "look_at", "looks_at_constants"]

Kernel = Callable[[Sequence[Any], dict[str, Any]], Any]


def guard_values(op: Operator, kernel: Kernel) -> Kernel:
    """``kernel`` of ``op`` between looks at its indices and at its values, where it has any; they raise
    :class:`OperatorError`."""
    indices, values = op.bounds is not None or op.own_bounds is not None, op.refusal is not None
    if not indices and not values:
        return kernel

    def run(arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
        if indices:
            check_bounds(op, arrays, attributes)
        result = kernel(arrays, attributes)
        if values:
            look_at(op, arrays, attributes, result)
        return result

    return run


def look_at(
    op: Operator,
    arrays: Sequence[Any],
    attributes: dict[str, Any],
    result: Any,
    read: Callable[[Any], Any] = lambda x: x,
) -> None:
    """Let ``op`` refuse what an application has computed; ``read`` makes arrays of those that it looks at."""
    assert op.refusal is not None
    look, names = op.refusal
    given = {**op.signature.regroup(arrays, attributes), "result": result}
    look(**{name: read(given[name]) for name in names})


def looks_at_constants(op: Operator, numbers: Sequence[Any], attributes: dict[str, Any]) -> bool:
    """Whether nothing has to be looked at any more where operands are these ``numbers`` (None where a tensor is): an
    application to the same numbers was not refused."""
    if op.refusal is None:
        return True
    tensor = object()
    given = op.signature.regroup([tensor if x is None else x for x in numbers], attributes)
    return not any(name == "result" or given[name] is tensor for name in op.refusal[1])
