"""Written by ``python -m argosy.stubs``."""

from argosy.models.gpt import GPT as GPT
from argosy.models.gpt import GPTConfig as GPTConfig
