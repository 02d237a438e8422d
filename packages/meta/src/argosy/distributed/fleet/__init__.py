"""Data-parallel training and recomputation as older scripts write them, and the layers of their split models for one
rank; ranks, meshes and annotations are in ``argosy.distributed``."""

# at once, because Paddle has a module of this name, too: imported later, it would take the function's place
from argosy.api import lazy_names
from argosy.distributed.fleet.recompute import recompute as recompute

__getattr__, __dir__ = lazy_names(__name__, globals())
