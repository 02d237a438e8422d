"""The default dtype of a rank: state of its context, and a layer, so that ranks without one of their own pay nothing.

Applications that a rank with a default of its own makes have it in their keys (`eager.table`). Its calls take the long
way to them, since a layer is active; the short ones, by what calls look like, by types and by native plans, stand for
applications under the process's default alone.
"""

from __future__ import annotations

from argosy_phi_ops.context import context, own_default_dtype, set_own_default_dtype
from argosy_phi_ops.eager.dispatch import Interpreter
from argosy_tensorcore import dtype as dtypes

__all__ = ["DefaultDTypeLayer", "set_default_dtype"]


class DefaultDTypeLayer(Interpreter):
    """Marks a rank whose default dtype is its own, and passes everything on."""

    stays = applies_to_building = True


def set_default_dtype(x: object) -> None:
    """Make ``x``, a floating type, what Python floats become: on the calling rank, where ranks are threads, else in the
    process. Raises ``TypeError`` for other types."""
    dtype, before = dtypes.as_default_dtype(x), own_default_dtype()
    if not set_own_default_dtype(dtype):
        dtypes.set_default_dtype(dtype)
    elif before is None:
        dtypes.override_default_dtype(own_default_dtype)
        context().put_everywhere(DefaultDTypeLayer())
