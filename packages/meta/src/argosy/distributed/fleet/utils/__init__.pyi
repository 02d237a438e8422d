"""Written by ``python -m argosy.api.stubs``."""

from typing import Any as _Any
from typing import NoReturn as _NoReturn

from argosy.distributed.fleet.utils.fs import LocalFS as LocalFS
from argosy.distributed.fleet.utils import hybrid_parallel_util as hybrid_parallel_util
from argosy.distributed.fleet.utils import log_util as log_util
from argosy.distributed.fleet.utils import mix_precision_utils as mix_precision_utils
from argosy.distributed.fleet.recompute.recompute import recompute as recompute
from argosy.distributed.fleet.utils import sequence_parallel_utils as sequence_parallel_utils
from argosy.distributed.fleet.utils import timer_helper as timer_helper
def DistributedInfer(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def HDFSClient(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
