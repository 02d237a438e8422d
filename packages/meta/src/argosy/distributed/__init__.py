"""Ranks, collectives, meshes and distributed training.

``import argosy.distributed as dist``. Nothing is started before it is used: MPI begins with the first communication.
"""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals(), found=lambda: ["launch"])  # a module that is called
