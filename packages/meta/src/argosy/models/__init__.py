"""Model families as ordinary ``nn`` code: the face of ``argosy.models``."""

from argosy.faces import face

_TABLE = {name: f"argosy.models.gpt:{name}" for name in ("GPT", "GPTConfig")}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
