"""Where Paddle keeps ``save`` and ``load``."""

from argosy.nn.parameter import Parameter as EagerParamBase
from argosy.serialization import load, save

__all__ = ["EagerParamBase", "load", "save"]
