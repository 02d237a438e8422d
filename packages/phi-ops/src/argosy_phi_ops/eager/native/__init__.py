"""Eager execution by machine code, where a compiler provides it and the interpreter is one that it was tested on.

The classes stay as they are: Python's operators on ``Tensor`` call native functions, which find the plan of an
application and do all of it themselves (operands, kernel, result, node), and objects of the framework are freed into
lists for reuse. What has no plan goes to the method that the class has, so nothing depends on the native build being
there. Plans are `eager.application`'s, to which autograd's tape adds recipes.

``ARGOSY_EAGER=plain`` switches it off. ``status()`` says whether it is on, and if not, why.
"""

from argosy_phi_ops.eager.native.backward import least_steps_back, way_back
from argosy_phi_ops.eager.native.learning import learn, learn_parts, learn_program, learn_several, learn_view
from argosy_phi_ops.eager.native.loading import builtin, status
from argosy_phi_ops.eager.native.methods import KERNELS
from argosy_phi_ops.eager.native.plans import NativePlan, drop, is_small, least_steps, remember
from argosy_phi_ops.eager.native.signatures import CallSignature, read
from argosy_phi_ops.eager.native.updates import may_update, numbers, update

__all__ = [
    "KERNELS",
    "CallSignature",
    "NativePlan",
    "builtin",
    "drop",
    "is_small",
    "learn",
    "learn_parts",
    "learn_program",
    "learn_several",
    "learn_view",
    "least_steps",
    "least_steps_back",
    "may_update",
    "numbers",
    "read",
    "remember",
    "status",
    "update",
    "way_back",
]
