"""Fourier transforms, differentiated through the real and imaginary parts of their results."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import tensor as t

COMPLEX = ("fft", "ifft", "hfft", "irfft")
REAL = ("fft", "ifft", "rfft", "ihfft")
NORMS = ("backward", "forward", "ortho")


def cases() -> Iterator[Case]:
    for name in COMPLEX:
        yield from _along_one(name, "complex64")
    for name in REAL:
        yield from _along_one(name, "float32")
    for name in ("fft", "ifft", "irfft", "hfft"):
        yield from _along_many(name, "complex64")
    for name in ("fft", "ifft", "rfft", "ihfft"):
        yield from _along_many(name, "float32")
    yield from _helpers()


def _along_one(name: str, dtype: str) -> Iterator[Case]:
    target = f"fft.{name}"
    for size in (5, 6):
        yield call(target, t(3, size, dtype=dtype))
    for norm in NORMS:
        yield call(target, t(3, 6, dtype=dtype), norm=norm)
    for n in (3, 9):
        yield call(target, t(3, 6, dtype=dtype), n)
    yield call(target, t(3, 6, dtype=dtype), axis=0)
    yield call(target, t(3, 6, dtype=dtype), 4, 0, "ortho")
    yield call(target, t(3, 6, dtype=dtype, layout="T"))
    yield call(target, t(3, 6, dtype="complex128" if dtype == "complex64" else "float64"))
    yield call(target, t(3, 6, dtype=dtype), 0)


def _along_many(name: str, dtype: str) -> Iterator[Case]:
    x = t(3, 4, 6, dtype=dtype)
    yield call(f"fft.{name}2", x)
    yield call(f"fft.{name}2", x, axes=(0, 1), norm="ortho")
    yield call(f"fft.{name}2", x, [3, 8])
    yield call(f"fft.{name}n", x)
    yield call(f"fft.{name}n", x, axes=[0, 2])
    yield call(f"fft.{name}n", x, [2, 5], norm="forward")


def _helpers() -> Iterator[Case]:
    for n in (5, 6):
        yield call("fft.fftfreq", n)
        yield call("fft.rfftfreq", n, 0.5)
        yield call("fft.fftshift", t(n))
        yield call("fft.ifftshift", t(n))
    yield call("fft.fftfreq", 4, dtype="float64")
    yield call("fft.fftshift", t(3, 4), 1)
    yield call("fft.fftshift", t(3, 4), [0, 1])
