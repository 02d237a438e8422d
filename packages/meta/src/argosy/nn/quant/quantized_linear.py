"""Where Paddle defines linear maps with quantised weights."""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())


def _get_arch_info() -> int:
    """The generation of the CUDA device: 0, for there is none."""
    return 0
