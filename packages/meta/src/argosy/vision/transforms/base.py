"""Transforms: objects that are called with a picture, or with a tuple of a picture and what belongs to it."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from argosy.argument_checks import CheckedConstructor

__all__ = ["BaseTransform", "Compose"]


class Compose:
    """Transforms, one after the other; after the first, a tuple or list is handed on as arguments are."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        if not isinstance(transforms, (list, tuple)) or not all(map(callable, transforms)):
            raise TypeError(f"Compose(): argument 'transforms' must be a list of functions, got {transforms!r:.80}")
        self.transforms = transforms

    def __call__(self, data: Any) -> Any:
        for transform in self.transforms:
            try:
                data = transform(data)
            except Exception as error:
                warnings.warn(f"transform {transform!r} failed:\n{traceback.format_exc(limit=-3)}", stacklevel=2)
                raise error
        return data

    def __repr__(self) -> str:
        inner = "".join(f"\n    {transform!r}" for transform in self.transforms)
        return f"{type(self).__name__}({inner}\n)"


class BaseTransform(CheckedConstructor):
    """What a transform of one's own derives from: ``_get_params(inputs)`` draws, ``_apply_image(image)`` transforms.

    keys: what the inputs are, of "image", "coords", "boxes" and "mask", each with a method ``_apply_...``; inputs
    beyond the keys pass through. Drawn parameters are ``self.params`` while inputs are transformed.
    """

    def __init__(self, keys: Sequence[str] | None = None) -> None:
        if keys is None:
            keys = ("image",)
        elif not isinstance(keys, Sequence) or isinstance(keys, str):
            raise ValueError(f"keys should be a sequence of names, got {keys!r}")
        for key in keys:
            if not hasattr(self, f"_apply_{key}"):
                raise NotImplementedError(f"{type(self).__name__} does not transform {key!r}: define _apply_{key}")
        self.keys = keys
        self.params: Any = None

    def _get_params(self, inputs: Any) -> Any:
        return None

    def __call__(self, inputs: Any) -> Any:
        """The transformed inputs, in the form they came in."""
        single = not isinstance(inputs, tuple)
        given = (inputs,) if single else inputs
        self.params = self._get_params(given)
        made = [getattr(self, f"_apply_{key}")(given[i]) for i, key in enumerate(self.keys)]
        made += given[len(made) :]
        return made[0] if single and len(made) == 1 else tuple(made)

    def _apply_image(self, image: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no _apply_image")

    def _apply_boxes(self, boxes: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no _apply_boxes")

    def _apply_mask(self, mask: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no _apply_mask")

    def _apply_coords(self, coords: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no _apply_coords")
