"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.fleet.utils import hybrid_parallel_util as hybrid_parallel_util
from argosy.distributed.fleet.utils import log_util as log_util
from argosy.distributed.fleet.recompute.recompute import recompute as recompute
from argosy.distributed.fleet.utils import sequence_parallel_utils as sequence_parallel_utils
