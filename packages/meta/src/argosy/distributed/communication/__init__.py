"""``distributed.communication``: the collectives with a choice of stream (:mod:`.stream`)."""

from argosy.distributed.communication import stream

__all__ = ["stream"]
