"""``argosy.framework.core`` where older scripts look for it."""

from argosy.framework.core import *  # noqa: F403
from argosy.framework.core import (  # noqa: F401
    _set_prim_all_enabled,
    _set_prim_backward_enabled,
    _set_prim_forward_enabled,
)
