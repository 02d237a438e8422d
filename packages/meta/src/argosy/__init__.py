"""A complete deep-learning framework in Python with the system architecture of PaddlePaddle 3.

``import argosy as paddle`` and go on as usual. The names of this module live in the packages it is made of
(:mod:`argosy.api`) and are fetched when first used, so that importing it costs next to nothing.
"""

import argosy as paddle  # noqa: F401  (scripts write paddle.paddle)
from argosy.__about__ import __version__ as __version__
from argosy.api import fetch, lazy_names, operator_function

pi = 3.141592653589793
e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None


def _operators() -> list[str]:
    listed: list[str] = fetch("argosy_phi_ops.listing:functions", "dir(argosy)")()
    return listed


__getattr__, __dir__ = lazy_names(__name__, globals(), operator_function, _operators)
