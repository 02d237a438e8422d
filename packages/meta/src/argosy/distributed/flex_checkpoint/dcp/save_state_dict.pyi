"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.checkpoint.saving import save_state_dict as save_state_dict
