"""``distributed.communication``: groups of ranks (:mod:`.group`), collectives on streams (:mod:`.stream`)."""

from argosy.distributed.communication import group, stream

__all__ = ["group", "stream"]
