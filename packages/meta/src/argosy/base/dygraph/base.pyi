"""Written by ``python -m argosy.api.stubs``."""

from argosy_autograd.modes import enable_grad as enable_grad
from argosy_autograd.engine import grad as grad
from argosy.framework.dygraph import guard as guard
from argosy_autograd.modes import no_grad as no_grad
from argosy.framework.dygraph import to_variable as to_variable
