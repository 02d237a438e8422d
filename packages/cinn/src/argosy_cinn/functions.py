"""Mathematical functions by name and type: code of our own, or a call of the C library for each lane."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from argosy_cinn import elementary, math, special_functions, trigonometry
from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import DOUBLE, FLOAT, Value, element_of

__all__ = ["LIBRARY", "NAMES", "OWN", "apply"]

Code = Callable[..., Value]
_BOTH: dict[str, Code] = {
    "expm1": elementary.expm1, "sinh": elementary.sinh, "cosh": elementary.cosh, "log1p": elementary.log1p,
    "asinh": elementary.asinh, "acosh": elementary.acosh, "atanh": elementary.atanh, "asin": elementary.asin,
    "acos": elementary.acos, "atan": elementary.atan, "atan2": elementary.atan2, "sin": trigonometry.sin,
    "cos": trigonometry.cos, "tan": trigonometry.tan, "erfinv": math.erfinv, "digamma": special_functions.digamma,
    "pow": elementary.power, "lgamma": special_functions.lgamma,
}  # fmt: skip
#: Vector code by type and primitive name.
OWN: Mapping[str, Mapping[str, Code]] = {
    FLOAT: {
        **_BOTH, "exp": math.exp, "log": math.log, "tanh": math.tanh, "logistic": math.logistic, "erf": math.erf,
        "erfc": math.erfc,
    },
    DOUBLE: {
        **_BOTH, "exp": elementary.exp, "log": elementary.log, "tanh": elementary.tanh,
        "logistic": elementary.logistic, "erf": special_functions.erf, "erfc": special_functions.erfc,
    },
}  # fmt: skip
#: Names in the C library (of the function on doubles; ``f`` is appended for floats).
LIBRARY = {"rem": "fmod"}
NAMES = frozenset(LIBRARY).union(*OWN.values())


def apply(b: Instructions, name: str, *operands: Value) -> Value:
    """The function of that name on scalars or vectors of floats or doubles."""
    element = element_of(operands[0].type)
    own = OWN[element].get(name)
    return own(b, *operands) if own else math.library(b, LIBRARY[name] + "f" * (element == FLOAT), *operands)
