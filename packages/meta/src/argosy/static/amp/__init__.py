"""Mixed precision of static programs: scaled losses, and which operators are recorded in half precision."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())
