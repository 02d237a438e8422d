"""The nearest of known names, for errors about unknown ones; looked for only when such an error is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["MissingAttribute", "did_you_mean", "nearest"]

ELSEWHERE = {
    "affine": "weight_attr", "batch_first": "time_major", "betas": "beta1", "bias": "bias_attr", "clamp_": "clip_",
    "device": "place", "dim": "axis", "dims": "axis", "eps": "epsilon", "in_planes": "in_channels",
    "input_size": "in_features", "keepdims": "keepdim", "lr": "learning_rate", "output_size": "out_features",
    "params": "parameters", "prob": "p", "requires_grad": "stop_gradient", "reshape_as": "view_as", "size": "shape",
    "units": "out_features", "weight": "weight_attr",
}  # fmt: skip
"""What other frameworks call it, and its name here."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The one of ``names`` that ``name`` is likely to mean: by another framework's word, or by few letters' difference;
    None where none is near."""
    known = list(names)
    translated = ELSEWHERE.get(name)
    if translated in known:
        return translated
    from difflib import get_close_matches

    words = {each.lower(): each for each in known}
    words |= {word: own for word, own in ELSEWHERE.items() if own in known}
    close = get_close_matches(name.lower(), words, n=1, cutoff=0.7)
    if close:
        return words[close[0]]
    return next((each for each in known if len(name) > 3 and each.startswith(name + "_")), None)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: ``"; did you mean 'axis'?"``, or nothing."""
    found = nearest(name, names)
    return "" if found is None else f"; did you mean {found!r}?"


class MissingAttribute(AttributeError):
    """There is no attribute of that name; what is near is looked for when the message is read, since most are never
    (``hasattr``)."""

    def __init__(self, message: str, name: str = "", names: Callable[[], Iterable[str]] = tuple) -> None:
        super().__init__(message)
        self.name = name  # or Python adds a suggestion of its own
        self._names = names

    def __str__(self) -> str:
        message = super().__str__()
        if not self.name or self.name.startswith("_"):
            return message
        return message + did_you_mean(self.name, (each for each in self._names() if not each.startswith("_")))

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return MissingAttribute, (str(self),)
