"""Written by ``python -m argosy.api.stubs``."""

from argosy.audio import backends as backends
from argosy.audio import datasets as datasets
from argosy.audio import features as features
from argosy.audio import functional as functional
from argosy.audio.backends import info as info
from argosy.audio.backends import load as load
from argosy.audio.backends import save as save
