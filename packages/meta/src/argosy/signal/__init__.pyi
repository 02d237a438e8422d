"""Written by ``python -m argosy.api.stubs``."""

from argosy.signal.short_time import frame as frame
from argosy.signal.short_time import istft as istft
from argosy.signal.short_time import overlap_add as overlap_add
from argosy.signal.short_time import stft as stft
