"""Static programs: built once by running Python on variables, then run by an ``Executor``."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())
