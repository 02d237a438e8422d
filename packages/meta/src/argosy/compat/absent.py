"""What Paddle's ``compat`` has and this one does not, each by its name."""

from argosy.absent import absent_names

__all__ = ["NAMES"]

_TORCH = "imports of another framework are not redirected; python -m argosy.as_paddle redirects those of Paddle"
NAMES = {
    "disable_compat": _TORCH,
    "enable_compat": _TORCH,
}
"""Why each is not there."""

__getattr__ = absent_names(__name__, "compat", NAMES)
