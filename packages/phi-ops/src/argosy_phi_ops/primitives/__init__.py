"""The closed set of primitives, one module for each family.

Every subsystem owns rules for these and only these: derivatives, sharding rules, loop nests. Operators are written with
them.
"""

from argosy_phi_ops.primitives import (
    attention,
    binding,
    communication,
    contraction,
    decomposition,
    elementwise,
    grouped_products,
    host,
    indexing,
    layout,
    random,
    reduction,
    transform,
)
from argosy_phi_ops.primitives.declaration import PRIMITIVES, Primitive
from argosy_phi_ops.primitives.dialect import DIALECT, install_operators
from argosy_pir.dialect import register_dialect

__all__ = [
    "PRIMITIVES",
    "Primitive",
    "attention",
    "binding",
    "communication",
    "contraction",
    "decomposition",
    "elementwise",
    "grouped_products",
    "host",
    "indexing",
    "layout",
    "random",
    "reduction",
    "transform",
]

register_dialect(DIALECT)
install_operators()
