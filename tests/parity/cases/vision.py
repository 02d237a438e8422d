"""Images, and rearrangements that serve them and sequences."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import given
from parity.inputs import tensor as t

F = "nn.functional."


def cases() -> Iterator[Case]:
    yield from _interpolation()
    for data_format, shape in (("NCHW", (2, 8, 3, 2)), ("NHWC", (2, 3, 2, 8))):
        yield call(F + "pixel_shuffle", t(*shape), 2, data_format)
        yield call(F + "channel_shuffle", t(*shape), 4, data_format)
    yield call(F + "pixel_unshuffle", t(2, 3, 4, 6), 2)
    yield call(F + "pixel_unshuffle", t(2, 4, 6, 3), 2, "NHWC")
    yield call(F + "pixel_shuffle", t(2, 6, 3, 2), 4)
    yield call(F + "pairwise_distance", t(3, 4), t(3, 4))
    yield call(F + "pairwise_distance", t(3, 4), t(4), 1.0, 1e-3, True)
    yield call(F + "sequence_mask", given([1, 3, 0], "int64"), 4)
    yield call(F + "sequence_mask", given([[1, 3], [2, 0]], "int64"), 3, "float32")
    yield call(F + "sequence_mask", given([1, 3, 0], "int64"))
    yield from _windows()
    yield from _distances()


def _interpolation() -> Iterator[Case]:
    f = F + "interpolate"
    for mode, shape, size, data_format in (
        ("nearest", (2, 3, 4, 5), [6, 7], "NCHW"), ("bilinear", (2, 3, 4, 5), [6, 7], "NCHW"),
        ("bicubic", (2, 3, 4, 5), [6, 7], "NCHW"), ("area", (2, 3, 4, 6), [2, 3], "NCHW"),
        ("linear", (2, 3, 5), [8], "NCW"), ("trilinear", (1, 2, 3, 4, 3), [5, 3, 4], "NCDHW"),
        ("bilinear", (2, 4, 5, 3), [3, 9], "NHWC"), ("nearest", (2, 4, 5, 3), [3, 9], "NHWC"),
    ):  # fmt: skip
        yield call(f, t(*shape), size, mode=mode, data_format=data_format)
        if mode in ("bilinear", "bicubic", "linear", "trilinear"):
            yield call(f, t(*shape), size, mode=mode, align_corners=True, data_format=data_format)
    yield call(f, t(1, 2, 4, 4), scale_factor=2)
    yield call(f, t(1, 2, 4, 4), scale_factor=[1.5, 0.5], mode="bilinear")
    yield call(f, t(1, 2, 4, 4), [6, 6], mode="bilinear", align_mode=1)
    yield call(f, t(1, 2, 4, 4), scale_factor=1.7, mode="bicubic")
    yield call(f, t(1, 2, 4, 4), scale_factor=1.7, mode="bicubic", recompute_scale_factor=True)
    yield call(f, t(1, 2, 4, 5, 3), [2, 3], mode="bicubic")
    for mode in ("bilinear", "bicubic"):
        yield call(f, t(1, 2, 7, 9, grad=False), [3, 4], mode=mode, antialias=True)
        yield call(f, t(1, 2, 4, 3, grad=False), [9, 5], mode=mode, antialias=True)
    yield call(F + "upsample", t(1, 2, 3, 3), scale_factor=2)


def _windows() -> Iterator[Case]:
    yield call("slice", t(3, 4, 5), [0, 2], [1, -3], [3, 5])
    yield call("slice", t(3, 4), [1], [-100], [100])
    yield call("strided_slice", t(3, 6), [1], [0], [6], [2])
    yield call("strided_slice", t(3, 6), [0, 1], [2, 5], [-4, 0], [-1, -2])
    yield call("narrow", t(3, 6), 1, 2, 3)
    yield call("ravel", t(2, 3))
    yield call("ravel", t(2, 3, layout="T"))
    yield call("increment", t(1, grad=False))
    yield call("increment", t(1, grad=False), 2.5)
    yield call(F + "unfold", t(1, 2, 4, 5), [2, 3])
    yield call(F + "unfold", t(1, 2, 5, 5), 3, 2, 1)
    yield call(F + "grid_sample", t(1, 2, 3, 3), t(1, 2, 2, 2, low=-1, high=1))
    yield call(F + "temporal_shift", t(4, 4, 2, 2), 2)


def _distances() -> Iterator[Case]:
    for p in (1.0, 2.0, 3.0, float("inf"), 0.0):
        yield call("cdist", t(3, 4), t(2, 4), p)
    yield call("cdist", t(2, 3, 4), t(2, 5, 4))
    yield call("multigammaln", t(3, low=3, high=6), 2)
    yield call("multigammaln", t(3, low=3, high=6, dtype="float64"), 3)
    yield call("linalg.cov", t(3, 5))
    yield call("linalg.corrcoef", t(3, 5))
