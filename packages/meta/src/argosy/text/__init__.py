"""Text: decoding of tag sequences."""

from argosy.faces import face

_TABLE = {name: f"argosy.text.viterbi:{name}" for name in ("ViterbiDecoder", "viterbi_decode")}

__all__ = [*_TABLE]
__getattr__, __dir__ = face(__name__, _TABLE, globals())
