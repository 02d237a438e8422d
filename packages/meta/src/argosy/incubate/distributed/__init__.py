"""What Paddle keeps under ``incubate.distributed``."""

from argosy.faces import face

__getattr__, __dir__ = face(__name__, {"fleet": "argosy.incubate.distributed.fleet"}, globals())
