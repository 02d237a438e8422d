"""Sampling at grids, unpooling, and pooling over uneven windows."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call, layer
from parity.inputs import given
from parity.inputs import tensor as t

F = "nn.functional."


def cases() -> Iterator[Case]:
    for align in (True, False):
        yield call(f"{F}affine_grid", t(2, 2, 3), [2, 3, 4, 5], align)
        yield call(f"{F}affine_grid", t(1, 3, 4, dtype="float64"), [1, 2, 2, 3, 4], align_corners=align)
        for padding in ("zeros", "border", "reflection"):
            for mode in ("bilinear", "nearest"):
                grid = t(2, 3, 2, 2, low=-1.5, high=1.5)
                yield call(f"{F}grid_sample", t(2, 3, 4, 5), grid, mode, padding, align)
                volume = t(2, 2, 3, 2, 3, low=-1.5, high=1.5)
                yield call(f"{F}grid_sample", t(2, 2, 3, 4, 5), volume, mode, padding, align_corners=align)
    yield call(f"{F}grid_sample", t(2, 3, 4, 5), t(2, 3, 2, 2), mode="cubic")
    yield call(f"{F}grid_sample", t(2, 3, 4, 5), t(2, 3, 2, 3))
    yield from _unpooling()
    yield from _fractional()


def _unpooling() -> Iterator[Case]:
    line, plane = given([[[0, 3, 5], [1, 2, 4]]], "int32"), given([[[[0, 3], [9, 15]]]], "int32")
    yield call(f"{F}max_unpool1d", t(1, 2, 3), line, 2)
    yield call(f"{F}max_unpool1d", t(1, 2, 3), line, 2, output_size=[7])
    yield call(f"{F}max_unpool2d", t(1, 1, 2, 2), plane, 2)
    yield call(f"{F}max_unpool2d", t(1, 1, 2, 2), plane, 3, 2, 0, output_size=[1, 1, 4, 5])
    yield call(f"{F}max_unpool2d", t(1, 1, 2, 2), plane, 2, output_size=[9, 9])
    yield call(f"{F}max_unpool3d", t(1, 1, 1, 2, 2), given([[[[[0, 3], [9, 15]]]]], "int32"), [1, 2, 2])
    yield layer("nn.MaxUnPool1D", t(1, 2, 3), line, kernel_size=2)
    yield layer("nn.MaxUnPool2D", t(1, 1, 2, 2), plane, kernel_size=2)
    yield layer("nn.MaxUnPool3D", t(1, 1, 1, 2, 2), given([[[[[0, 3], [9, 15]]]]], "int32"), kernel_size=[1, 2, 2])


def _fractional() -> Iterator[Case]:
    for u in (0.1, 0.5, 0.9):
        yield call(f"{F}fractional_max_pool2d", t(2, 2, 9, 7), 4, random_u=u)
        yield call(f"{F}fractional_max_pool2d", t(2, 2, 9, 7), [5, 3], random_u=u, return_mask=True)
        yield call(f"{F}fractional_max_pool2d", t(2, 2, 9, 7), [4, 3], 2, u, True)
        yield call(f"{F}fractional_max_pool3d", t(1, 2, 5, 6, 7), [2, 3, 4], random_u=u, return_mask=True)
    yield call(f"{F}fractional_max_pool2d", t(2, 2, 9, 7), [None, 3], random_u=0.3)
    yield call(f"{F}fractional_max_pool2d", t(2, 2, 9, 7), 4, random_u=1.5)
    yield layer("nn.FractionalMaxPool2D", t(2, 2, 9, 7), output_size=4, random_u=0.3)
    yield layer("nn.FractionalMaxPool3D", t(1, 2, 5, 6, 7), output_size=3, kernel_size=2, random_u=0.3)
