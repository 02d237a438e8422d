"""The transforms where Paddle has them, with a helper that other libraries take from there."""

from typing import Any

from argosy.api import lazy_names

__all__: list[str] = []


def _get_image_size(img: Any) -> tuple[int, int]:
    """(width, height) of a picture: a PIL image, an array [height, width, ...] or a tensor [..., height, width]."""
    size = getattr(img, "size", None)
    if isinstance(size, tuple):
        return size[0], size[1]
    height, width = img.shape[:2] if type(img).__module__ == "numpy" else img.shape[-2:]
    return int(width), int(height)


__getattr__, __dir__ = lazy_names(__name__, globals())
