"""Written by ``python -m argosy.api.stubs``."""

from argosy.framework.random import get_rng_state as get_rng_state
from argosy.framework.random import initial_seed as initial_seed
from argosy.framework.random import seed as seed
from argosy.framework.random import set_rng_state as set_rng_state
