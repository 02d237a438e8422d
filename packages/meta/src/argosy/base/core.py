"""``argosy.framework.core`` where older scripts look for it."""

from argosy.framework.core import *  # noqa: F403
from argosy.framework.core import (  # noqa: F401
    _has_grad,
    _set_has_grad,
    _set_prim_all_enabled,
    _set_prim_backward_blacklist,
    _set_prim_backward_enabled,
    _set_prim_forward_blacklist,
    _set_prim_forward_enabled,
)
