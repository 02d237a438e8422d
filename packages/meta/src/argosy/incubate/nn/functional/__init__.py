"""Functions that Paddle has as kernels of their own: compositions here, which the compiler fuses."""

from argosy.api import lazy_names, targets

__all__ = [name for name, target in targets(__name__).items() if not target.startswith("absent")]
__getattr__, __dir__ = lazy_names(__name__, globals())
