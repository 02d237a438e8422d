"""Other names of operators, as functions and methods of Paddle have them."""

from __future__ import annotations

__all__ = ["ALIASES"]

ALIASES: dict[str, str] = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "bitwise_invert": "bitwise_not", "cat": "concat", "clamp": "clip",
    "concatenate": "concat", "div": "divide", "eq": "equal", "fix": "trunc", "floor_mod": "remainder",
    "gammaln": "lgamma",
    "ge": "greater_equal", "ger": "outer", "greater": "greater_than", "gt": "greater_than", "inverse": "inv",
    "le": "less_equal", "less": "less_than", "logsigmoid": "log_sigmoid", "lt": "less_than", "mod": "remainder",
    "mul": "multiply", "ne": "not_equal", "negative": "neg", "reverse": "flip", "sgn": "sign",
    "sub": "subtract", "swapdims": "swapaxes", "take_along_dim": "take_along_axis",
}  # fmt: skip
"""Other name -> the operator's own."""
