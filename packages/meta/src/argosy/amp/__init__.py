"""Mixed precision."""

# at once, because Paddle has a module of this name, too: imported later, it would take the function's place
from argosy.amp.auto_cast import auto_cast as auto_cast
from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())
