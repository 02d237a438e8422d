"""Eager execution by machine code, where a compiler provides it and the interpreter is one that it was tested on.

The classes stay as they are: Python's operators on ``Tensor`` call native functions, which look an application up in a
table of plans and do all of it themselves (operands, kernel, result, node), and objects of the framework are freed into
lists for reuse. What the table does not know goes to the method that the class has, so nothing depends on the native
build being there. `routes` fills the table, autograd's tape adds its recipes.

``ARGOSY_EAGER=plain`` switches it off. ``status()`` says whether it is on, and if not, why.
"""

from argosy_phi_ops.native.plans import forget, is_small, learn, learn_program, least_steps, remember
from argosy_phi_ops.native.start import builtin, status
from argosy_phi_ops.native.updates import numbers, update

__all__ = [
    "builtin",
    "forget",
    "is_small",
    "learn",
    "learn_program",
    "least_steps",
    "numbers",
    "remember",
    "status",
    "update",
]
