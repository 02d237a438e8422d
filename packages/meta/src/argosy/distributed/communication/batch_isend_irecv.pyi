"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.point_to_point import P2POp as P2POp
from argosy.distributed.point_to_point import batch_isend_irecv as batch_isend_irecv
