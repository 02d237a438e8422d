"""Written by ``python -m argosy.api.stubs``."""

from argosy.audio.datasets.esc50 import ESC50 as ESC50
from argosy.audio.datasets.tess import TESS as TESS
