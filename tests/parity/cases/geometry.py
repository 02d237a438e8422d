"""Random geometries of windows: pooling, padding, folding, resizing and convolution over drawn sizes and settings.

What the cases of other families choose by hand (windows that reach beyond the padding, sizes that no stride divides,
padding in all of its notations) is drawn here from fixed seeds, so that combinations that nobody thought of are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from parity.case import Case, call
from parity.inputs import tensor as t

__all__ = ["GEOMETRIES", "cases", "drawn"]

F = "nn.functional."
FIRST = {1: "NCL", 2: "NCHW", 3: "NCDHW"}
LAST = {1: "NLC", 2: "NHWC", 3: "NDHWC"}

COUNTS = {
    "max_pool": 60, "avg_pool": 60, "lp_pool": 20, "adaptive": 20, "fractional": 10, "pad": 60, "unfold": 20,
    "fold": 20, "interpolate": 80, "conv": 40, "conv_transpose": 40,
}  # fmt: skip
"""How many cases of each kind are recorded."""


def cases() -> Iterator[Case]:
    for name, count in COUNTS.items():
        yield from drawn(name, seed=33, count=count)


def drawn(name: str, seed: int, count: int) -> list[Case]:
    """``count`` different cases of one kind of geometry, drawn from ``seed``."""
    draw, found = Draw(seed + sum(map(ord, name))), {}
    while len(found) < count:
        case = GEOMETRIES[name](draw)
        found[case.id] = case
    return list(found.values())


class Draw:
    """Random choices. RandomState's streams are frozen by numpy's policy."""

    def __init__(self, seed: int) -> None:
        self._state = np.random.RandomState(seed)

    def integer(self, low: int, high: int) -> int:
        """One of low..high, both included."""
        return int(self._state.randint(low, high + 1))

    def integers(self, count: int, low: int, high: int) -> list[int]:
        """Several of low..high."""
        return [self.integer(low, high) for _ in range(count)]

    def choice(self, *options: Any) -> Any:
        """One of the options."""
        return options[self.integer(0, len(options) - 1)]

    def often(self, probability: float) -> bool:
        """Whether something of that probability happens."""
        return bool(self._state.random_sample() < probability)

    def per_axis(self, rank: int, low: int, high: int) -> Any:
        """One number for all axes, or one for each."""
        return self.integer(low, high) if self.often(0.5) else self.integers(rank, low, high)

    def padding(self, rank: int, high: int, last: bool = False) -> Any:
        """Padding in one of its notations: a number, one for each axis or side, pairs of all axes, or an algorithm."""
        notation = self.choice("number", "axes", "axes", "sides", "sides", "pairs", "algorithm")
        if notation == "number":
            return self.integer(0, high)
        if notation == "algorithm":
            return self.choice("SAME", "VALID")
        if notation == "axes":
            return self.integers(rank, 0, high)
        sides = self.integers(2 * rank, 0, high)
        if notation == "sides":
            return sides
        pairs = [sides[i : i + 2] for i in range(0, 2 * rank, 2)]
        return [[0, 0], *pairs, [0, 0]] if last else [[0, 0], [0, 0], *pairs]


def _image(draw: Draw, rank: int, low: int, high: int, channels: int | None = None, last: bool = False) -> Any:
    """A tensor of [batch, channels, *space], or of the channels last."""
    batch, space = draw.integer(1, 2), draw.integers(rank, low, high)
    channels = draw.integer(1, 3) if channels is None else channels
    return t(batch, *space, channels) if last else t(batch, channels, *space)


def _given(**settings: Any) -> dict[str, Any]:
    """The settings that are not None."""
    return {name: value for name, value in settings.items() if value is not None}


def _layout(draw: Draw, rank: int) -> bool:
    return draw.often(0.2)


# pooling


def _max_pool(draw: Draw) -> Case:
    """With a mask every window has an element: the wheel writes the gradient of others outside of its tensor."""
    rank, mask = draw.integer(1, 3), draw.often(0.3)
    last = rank > 1 and not mask and _layout(draw, rank)
    size = draw.integers(rank, 1, 4)
    settings = _given(
        stride=draw.per_axis(rank, 1, 4) if draw.often(0.7) else None,
        padding=[draw.integer(0, k // 2) for k in size] if mask else draw.padding(rank, 2, last),
        ceil_mode=True if not mask and draw.often(0.6) else None,
        return_mask=True if mask else None,
        data_format=LAST[rank] if last else None,
    )
    return call(f"{F}max_pool{rank}d", _image(draw, rank, 1, 8, last=last), size, **settings)


def _avg_pool(draw: Draw) -> Case:
    rank = draw.integer(1, 3)
    last = rank > 1 and _layout(draw, rank)
    settings = _given(
        stride=draw.per_axis(rank, 1, 4) if draw.often(0.7) else None,
        padding=draw.padding(rank, 2, last) if draw.often(0.8) else None,
        ceil_mode=True if draw.often(0.6) else None,
        exclusive=False if draw.often(0.4) else None,
        divisor_override=draw.integer(1, 5) if rank > 1 and draw.often(0.15) else None,
        data_format=LAST[rank] if last else None,
    )
    return call(f"{F}avg_pool{rank}d", _image(draw, rank, 1, 8, last=last), draw.per_axis(rank, 1, 4), **settings)


def _lp_pool(draw: Draw) -> Case:
    rank = draw.integer(1, 2)
    last = _layout(draw, rank)
    settings = _given(
        stride=draw.per_axis(rank, 1, 4) if draw.often(0.7) else None,
        padding=draw.padding(rank, 1, last) if draw.often(0.6) else None,
        ceil_mode=True if draw.often(0.6) else None,
        data_format=LAST[rank] if last else None,
    )
    norm = draw.choice(1.0, 2.0, 3.0, float("inf"))
    shape = _image(draw, rank, 1, 8, last=last).shape
    return call(f"{F}lp_pool{rank}d", t(*shape, low=0.5), norm, draw.per_axis(rank, 1, 4), **settings)


def _adaptive(draw: Draw) -> Case:
    rank, name = draw.integer(1, 3), draw.choice("avg", "max")
    size: Any = draw.per_axis(rank, 1, 6)
    if rank > 1 and isinstance(size, list) and draw.often(0.3):
        size[draw.integer(0, rank - 1)] = None
    settings = _given(return_mask=True if name == "max" and draw.often(0.5) else None)
    return call(f"{F}adaptive_{name}_pool{rank}d", _image(draw, rank, 1, 8), size, **settings)


def _fractional(draw: Draw) -> Case:
    rank = draw.integer(2, 3)
    settings = _given(
        kernel_size=draw.per_axis(rank, 1, 3) if draw.often(0.5) else None,
        random_u=draw.choice(0.1, 0.3, 0.5, 0.7, 0.9),
        return_mask=True if draw.often(0.5) else None,
    )
    size = draw.integers(rank, 1, 4)
    return call(f"{F}fractional_max_pool{rank}d", _image(draw, rank, 5, 8), size, **settings)


# padding and folding


def _pad(draw: Draw) -> Case:
    rank, mode = draw.integer(1, 3), draw.choice("constant", "reflect", "replicate", "circular")
    last = _layout(draw, rank)
    x = _image(draw, rank, 1, 6, last=last)
    every = mode == "constant" and draw.often(0.2)
    low = -2 if mode == "constant" and draw.often(0.2) else 0
    width = 2 * (rank + 2) if every else 2 * rank
    edges: Any = draw.integers(width, low, 4) if draw.often(0.85) or every else draw.integer(0, 3)
    settings = _given(
        mode=None if mode == "constant" and draw.often(0.5) else mode,
        value=1.5 if mode == "constant" and draw.often(0.5) else None,
        data_format=LAST[rank] if last else FIRST[rank],
        pad_from_left_axis=draw.often(0.5) if every else None,
    )
    return call(f"{F}pad", x, edges, **settings)


def _folding(draw: Draw) -> dict[str, Any]:
    notation = draw.choice("number", "axes", "sides", "none")
    padding = {
        "number": draw.integer(0, 2),
        "axes": draw.integers(2, 0, 2),
        "sides": draw.integers(4, 0, 2),
        "none": None,
    }
    return _given(
        strides=draw.per_axis(2, 1, 3) if draw.often(0.7) else None,
        paddings=padding[notation],
        dilations=draw.per_axis(2, 1, 2) if draw.often(0.5) else None,
    )


def _unfold(draw: Draw) -> Case:
    return call(f"{F}unfold", _image(draw, 2, 1, 7), draw.per_axis(2, 1, 3), **_folding(draw))


def _fold(draw: Draw) -> Case:
    """Folding of as many columns as there are windows."""
    settings = _folding(draw)
    size, kernel = draw.integers(2, 2, 7), draw.integers(2, 1, 3)
    stride, dilation, edges = (
        [value, value] if isinstance(value, int) else value
        for value in (settings.get("strides", 1), settings.get("dilations", 1), settings.get("paddings", 0))
    )
    edges = edges if len(edges) == 4 else [*edges, *edges]
    counts = [
        max((n + edges[i] + edges[i + 2] - d * (k - 1) - 1) // s + 1, 1)
        for i, (n, k, s, d) in enumerate(zip(size, kernel, stride, dilation, strict=True))
    ]
    x = t(draw.integer(1, 2), draw.integer(1, 2) * kernel[0] * kernel[1], counts[0] * counts[1])
    return call(f"{F}fold", x, size, kernel, **settings)


# resizing


def _interpolate(draw: Draw) -> Case:
    rank, mode = draw.choice(
        (1, "linear"), (1, "nearest"), (1, "area"), (2, "nearest"), (2, "bilinear"), (2, "bicubic"), (2, "area"),
        (3, "nearest"), (3, "trilinear"), (3, "area"), (2, "bilinear"), (2, "bicubic"),
    )  # fmt: skip
    last = _layout(draw, rank)
    by_size = draw.often(0.5)
    factors = (0.3, 0.5, 0.7, 1.0, 1.3, 1.5, 2.0, 2.5, 3.0)
    factor: Any = draw.choice(*factors) if draw.often(0.5) else [draw.choice(*factors) for _ in range(rank)]
    settings = _given(
        size=draw.integers(rank, 1, 9) if by_size else None,
        scale_factor=None if by_size else factor,
        mode=mode,
        align_corners=draw.choice(None, True, False) if mode != "area" else None,
        align_mode=draw.choice(None, 0, 1),
        data_format={1: "NWC", 2: "NHWC", 3: "NDHWC"}[rank] if last else {1: "NCW", 2: "NCHW", 3: "NCDHW"}[rank],
    )
    return call(f"{F}interpolate", _image(draw, rank, 1, 7, last=last), **settings)


# convolution


def _conv(draw: Draw) -> Case:
    rank, groups = draw.integer(1, 3), draw.choice(1, 1, 2)
    last = _layout(draw, rank)
    kernel, inside = draw.integers(rank, 1, 3), draw.integer(1, 2)
    settings = _given(
        stride=draw.per_axis(rank, 1, 3) if draw.often(0.7) else None,
        padding=draw.padding(rank, 2, last) if draw.often(0.8) else None,
        dilation=draw.per_axis(rank, 1, 2) if draw.often(0.4) else None,
        groups=groups if groups > 1 else None,
        data_format=LAST[rank] if last else None,
    )
    x = _image(draw, rank, 1, 7, channels=inside * groups, last=last)
    return call(f"{F}conv{rank}d", x, t(groups * draw.integer(1, 2), inside, *kernel), **settings)


def _conv_transpose(draw: Draw) -> Case:
    rank, groups = draw.integer(1, 3), draw.choice(1, 1, 2)
    last = _layout(draw, rank)
    kernel, inside = draw.integers(rank, 1, 3), draw.integer(1, 2)
    stride: Any = draw.per_axis(rank, 1, 3)
    settings = _given(
        stride=stride,
        padding=draw.padding(rank, 1, last) if draw.often(0.7) else None,
        output_padding=draw.per_axis(rank, 0, 1) if draw.often(0.3) else None,
        dilation=draw.per_axis(rank, 1, 2) if draw.often(0.3) else None,
        groups=groups if groups > 1 else None,
        data_format=LAST[rank] if last else None,
    )
    x = _image(draw, rank, 1, 5, channels=inside * groups, last=last)
    return call(f"{F}conv{rank}d_transpose", x, t(inside * groups, draw.integer(1, 2), *kernel), **settings)


GEOMETRIES: dict[str, Callable[[Draw], Case]] = {
    "max_pool": _max_pool, "avg_pool": _avg_pool, "lp_pool": _lp_pool, "adaptive": _adaptive, "fractional": _fractional,
    "pad": _pad, "unfold": _unfold, "fold": _fold, "interpolate": _interpolate, "conv": _conv,
    "conv_transpose": _conv_transpose,
}  # fmt: skip
"""A case of each kind."""
