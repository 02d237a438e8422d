"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.fleet.layers.mpu.random import RNGStatesTracker as RNGStatesTracker
from argosy.distributed.fleet.layers.mpu.random import get_rng_state_tracker as get_rng_state_tracker
from argosy.distributed.fleet.layers.mpu.random import model_parallel_random_seed as model_parallel_random_seed
