"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.checkpoint.loading import load_merged_state_dict as load_merged_state_dict
from argosy.distributed.checkpoint.loading import load_state_dict as load_state_dict
