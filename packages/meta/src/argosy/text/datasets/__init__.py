"""Data sets of text, one of houses and one of ratings, from local files. Nothing is downloaded."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())
