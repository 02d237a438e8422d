"""Data sets of text, one of houses and one of ratings, from local files. Nothing is downloaded."""

from argosy.faces import face

_TABLE = {
    "Imdb": "argosy.text.datasets.imdb:Imdb",
    "Imikolov": "argosy.text.datasets.imikolov:Imikolov",
    "Conll05st": "argosy.text.datasets.conll05:Conll05st",
    "Movielens": "argosy.text.datasets.movielens:Movielens",
    "UCIHousing": "argosy.text.datasets.uci_housing:UCIHousing",
    "WMT14": "argosy.text.datasets.translation:WMT14",
    "WMT16": "argosy.text.datasets.translation:WMT16",
}

__all__ = [*_TABLE]
__getattr__, __dir__ = face(__name__, _TABLE, globals())
