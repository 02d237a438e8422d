"""Written by ``python -m argosy.api.stubs``."""

from argosy_autoparallel.placement import Partial as Partial
from argosy_autoparallel.placement import Placement as Placement
from argosy_autoparallel.placement import ReduceType as ReduceType
from argosy_autoparallel.placement import Replicate as Replicate
from argosy_autoparallel.placement import Shard as Shard
