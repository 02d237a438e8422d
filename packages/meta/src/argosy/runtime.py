"""What must be in place before the first tensor is made: operators bound to ``Tensor``, and the gradient tape.

Faces import this module with the first name that makes or takes tensors; ``import argosy`` alone does not.
"""

from __future__ import annotations

import argosy_autograd  # noqa: F401  (installs the gradient recorder and Tensor's gradient methods)
from argosy_phi_ops import extension
from argosy_phi_ops.methods import inplace
from argosy_phi_ops.operator import find_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Tensor", "find", "in_place"]

# What every tensor can be asked; the package that answers is loaded with the first question.
extension.register_methods(
    {name: f"argosy_autoparallel.dist_tensor:{name}" for name in ("is_dist", "placements", "process_mesh")}
)


def find(name: str) -> object | None:
    """The operator ``name`` or the in-place form ``name_``; None where there is none."""
    found = find_operator(name)
    if found is None and name.endswith("_"):
        return in_place(name[:-1])
    return found


def in_place(name: str) -> object | None:
    """The in-place form of the operator ``name``; None when it has none."""
    base = find_operator(name)
    return inplace(base) if base is not None and base.inplace else None
