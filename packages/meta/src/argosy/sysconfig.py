"""Where Paddle's headers and libraries lie. Both functions raise NotImplementedError: argosy has none."""

from argosy.absent import absent_names

_WHY = "operators in C need no headers: argosy.library.custom_op takes their symbols"

__all__ = ["get_include", "get_lib"]  # noqa: F822
__getattr__ = absent_names(__name__, "sysconfig", dict.fromkeys(__all__, _WHY))
