"""The argosy operator library: one declaration per operator.

``get_operator("matmul")`` finds an operator; ``prim`` holds the primitives that operators are made of. Importing the
package gives ``Tensor`` its methods and Python operators; the modules behind them load on first use.
"""

from argosy_phi_ops import extension
from argosy_phi_ops.__about__ import __version__
from argosy_tensorcore.tensor import set_method_resolver

__all__ = ["__version__", "get_operator"]


def get_operator(name: str) -> object:
    """The operator of that name; see :func:`argosy_phi_ops.declare.operator.get_operator`."""
    from argosy_phi_ops.declare import operator

    return operator.get_operator(name)


def _resolve(name: str) -> object | None:
    from argosy_phi_ops import methods

    return methods.resolve(name)


def _names() -> list[str]:
    from argosy_phi_ops import listing

    return listing.methods()


set_method_resolver(_resolve, _names)
extension.register_evaluator("argosy_phi_ops.eager.entries:EVALUATOR")
