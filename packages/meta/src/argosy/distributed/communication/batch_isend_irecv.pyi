"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.point_to_point import P2POp as P2POp
from argosy.distributed.point_to_point import coalescing_manager as _own__coalescing_manager
from argosy.distributed.point_to_point import batch_isend_irecv as batch_isend_irecv
_coalescing_manager = _own__coalescing_manager
