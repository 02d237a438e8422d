"""Written by ``python -m argosy.api.stubs``."""

from argosy.framework.dygraph import guard as guard
from argosy_autograd.modes import no_grad as no_grad
from argosy.framework.dygraph import to_variable as to_variable
