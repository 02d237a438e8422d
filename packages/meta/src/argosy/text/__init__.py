"""Text: decoding of tag sequences, and data sets."""

from argosy.faces import face

_SETS = ("Conll05st", "Imdb", "Imikolov", "Movielens", "UCIHousing", "WMT14", "WMT16")
_TABLE = {
    **{name: f"argosy.text.viterbi:{name}" for name in ("ViterbiDecoder", "viterbi_decode")},
    **{name: f"argosy.text.datasets:{name}" for name in _SETS},
    "datasets": "argosy.text.datasets",
}

__all__ = [name for name in _TABLE if name != "datasets"]
__getattr__, __dir__ = face(__name__, _TABLE, globals())
