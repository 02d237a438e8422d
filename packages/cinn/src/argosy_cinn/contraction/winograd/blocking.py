"""Which convolutions are made by minimal filtering, and how they are cut into chunks: those with windows of 3 x 3 and
stride one, where transforms cost less than three quarters of the arithmetic do.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy_cinn.contraction.problem import Contraction
from argosy_cinn.contraction.winograd.transforms import MADE, SEEN, TAPS
from argosy_cinn.forms.product import Axis, Window
from argosy_cinn.printers.types import FLOAT
from argosy_cinn.target import Target

#: Factors of a tile, each of which is a product of matrices.
POINTS = SEEN * SEEN
#: Vectors of a panel of transformed tiles.
VECTORS = 3
#: Bytes of transformed tiles of a chunk, which should stay in a thread's share of the last-level cache.
_MOST_BYTES = 4 << 20
#: Bytes of them where a single row of tiles has more.
_MOST_SCRATCH = 32 << 20
#: Channels and filters from which on transforms do not outweigh what products save.
FEWEST = 8
#: What transforms cost beside one multiply-add of a vector: of a vector of tiles (for each channel, each filter), and
#: of the taps of a channel and filter.
OF_IMAGE, OF_RESULT, _OF_TAPS = 300, 250, 12
#: The share of a plain product's time that minimal filtering must be expected to stay below.
WORTHWHILE = 0.8


@dataclass(frozen=True, slots=True)
class Images:
    """What a window of 3 x 3 sees: ``channels``, ``images``, the places of the result (``height``, ``width``), elements
    from channel to channel, image to image and row to row, and for rows and columns (first, size) of the coordinates
    that are inside. ``axis``: that of the product's batch which images are; None where they are columns."""

    channels: int
    images: int
    height: int
    width: int
    steps: tuple[int, int, int]
    bounds: tuple[tuple[int, int], tuple[int, int]]
    axis: int | None

    @property
    def tile_rows(self) -> int:
        """Rows of tiles of an image."""
        return -(-self.height // MADE)

    @property
    def tiles_across(self) -> int:
        """Tiles of such a row."""
        return -(-self.width // MADE)


def sees_three_by_three(window: Window | None) -> bool:
    """Whether a window is one of 3 x 3 taps beside each other, at neighbouring places: along its rows, channel by
    channel, or (for gradients of weights) along its columns, tap by tap."""
    if window is None:
        return False
    ways = (window.rows, window.columns), (channels_first(window.columns), window.rows)
    return any(image_bounds(window, *way) is not None for way in ways)


def channels_first(taps: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The axes of taps whose last one is that of channels, with that before the others."""
    return (*taps[-1:], *taps[:-1])


def image_bounds(
    window: Window, taps: tuple[Axis, ...], places: tuple[Axis, ...]
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The bounds of both axes of an image, seen through a window whose ``taps`` are 3 x 3 for every channel."""
    if len(taps) != 3 or len(places) not in (2, 3) or any(taps[0].steps):
        return None
    if len(places) == 3 and any(places[0].steps):
        return None
    bounds, used = [], set()
    for tap, place in zip(taps[1:], places[-2:], strict=True):
        if tap.extent != TAPS or tap.stride != place.stride or tap.steps != place.steps:
            return None
        found = [i for i, step in enumerate(place.steps) if step]
        if len(found) > 1 or any(place.steps[i] != 1 or i in used for i in found):
            return None
        used.update(found)
        bounds.append(window.bounds[found[0]] if found else (0, place.extent + TAPS - 1))
    if places[-1].stride != 1 or len(used) != len(window.bounds):
        return None
    rows, columns = bounds
    return rows, columns


def is_plain(problem: Contraction) -> bool:
    """Whether a product of float32 numbers is nothing but that, before its epilogue."""
    a, b = problem.a, problem.b
    plain = a.prologue is None and b.prologue is None and problem.column_sums is None and not problem.siblings
    floats = all(kind == FLOAT for kind in (problem.compute, a.element, b.element))
    known = isinstance(problem.m, int) and all(isinstance(n, int) for n in problem.batch)
    return plain and floats and known and not problem.narrow


def _images(problem: Contraction) -> Images | None:
    """The images of a product, where minimal filtering can compute it."""
    window, a, b = problem.b.window, problem.a, problem.b
    if window is None or problem.run or not is_plain(problem):
        return None
    bounds = image_bounds(window, window.rows, window.columns)
    if bounds is None:
        return None
    *outer, high, wide = window.columns
    images, step, axis = (outer[0].extent, outer[0].stride, None) if outer else (1, 0, None)
    if not outer:
        free = [i for i, (n, s) in enumerate(zip(problem.batch, a.batch, strict=True)) if s == 0 and n != 1]
        axis = free[0] if free else None
        if axis is not None:
            images, step = problem.batch[axis], b.batch[axis]  # type: ignore[assignment]
    if not isinstance(images, int) or not isinstance(step, int):
        return None
    channels: Axis = window.rows[0]
    return Images(channels.extent, images, high.extent, wide.extent, (channels.stride, step, high.stride), bounds, axis)


@dataclass(frozen=True, slots=True)
class WinogradBlocking:
    """How a convolution runs: ``images`` and ``rows`` of tiles of a chunk at most, and the lanes of a vector."""

    seen: Images
    images: int
    rows: int
    lanes: int

    @property
    def vectors(self) -> int:
        """Vectors of tiles of a whole chunk."""
        return -(-self.images * self.rows * self.seen.tiles_across // self.lanes)

    @property
    def blocks(self) -> int:
        """Chunks that all images are cut into, for all filters."""
        return -(-self.seen.images // self.images) * -(-self.seen.tile_rows // self.rows)


def plan_winograd(problem: Contraction, target: Target) -> WinogradBlocking | None:
    """The plan of a product that minimal filtering makes faster, or None."""
    seen = _images(problem) if problem.minimal else None
    if seen is None or not isinstance(problem.m, int):
        return None
    return plan_images(seen, problem.m, target.vector_bits)


def plan_images(seen: Images, filters: int, vector_bits: int) -> WinogradBlocking | None:
    """The plan of a convolution of images with so many filters, or None where a plain product is as fast."""
    if vector_bits != 512 or min(seen.channels, filters) < FEWEST:
        return None
    lanes = vector_bits // 32
    plan = WinogradBlocking(seen, *cut(seen, max(_MOST_BYTES // (4 * POINTS * seen.channels), VECTORS * lanes)), lanes)
    fits = 4 * POINTS * seen.channels * lanes * plan.vectors <= _MOST_SCRATCH
    return plan if fits and _share_of_plain(plan, filters) < WORTHWHILE else None


def cut(seen: Images, most: int) -> tuple[int, int]:
    """Images, and rows of tiles of each, of parts with at most so many tiles where a row has no more: whole images
    where several fit, else equal parts of one."""
    row, rows = seen.tiles_across, seen.tile_rows
    images = min(max(most // (row * rows), 1), seen.images)
    images = -(-seen.images // -(-seen.images // images))
    parts = -(-row * rows // most) if images == 1 else 1
    return images, -(-rows // min(parts, rows))


def _share_of_plain(plan: WinogradBlocking, filters: int) -> float:
    """The time of minimal filtering divided by that of a plain product, in multiply-adds of a vector."""
    seen, depth = plan.seen, plan.seen.channels
    vectors = plan.blocks * plan.vectors
    products = vectors * POINTS * filters * depth
    transforms = vectors * (OF_IMAGE * depth + OF_RESULT * filters) + plan.blocks * _OF_TAPS * filters * depth
    plain = -(-seen.images * seen.height * seen.width // plan.lanes) * TAPS * TAPS * filters * depth
    return (products + transforms) / plain
