"""Data sets of text, and one of houses, from local files. Nothing is downloaded."""

from argosy.faces import face

_TABLE = {
    "Imdb": "argosy.text.datasets.imdb:Imdb",
    "Imikolov": "argosy.text.datasets.imikolov:Imikolov",
    "UCIHousing": "argosy.text.datasets.uci_housing:UCIHousing",
}

__all__ = [*_TABLE]
__getattr__, __dir__ = face(__name__, _TABLE, globals())
