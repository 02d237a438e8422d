"""The conformance kit's performance report: how fast a device is, and how fast the CPU device is at the same. Nothing
passes or fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import argosy as paddle
from argosy_hwadapt import Device, Pointer, Scalar
from argosy_hwadapt.testing.kernels import NEST, kit_source, load_kernel, usable_form
from argosy_tensorcore.place import as_place

__all__ = ["Figure", "measure", "report_text"]

#: Runs of each, of which the fastest counts.
_RUNS = 7
_SUBMISSIONS = 50


class Figure(NamedTuple):
    """What was measured: ``found`` on the device, and ``host`` on the CPU device (None where it has no such thing)."""

    name: str
    unit: str
    found: float
    host: float | None


def measure(place: str, size: int = 1024) -> Iterator[Figure]:
    """Figures of ``place``: microseconds of a submission, copies, and operators on matrices of ``size``."""
    launch = [_launch_seconds(where) * 1e6 for where in (place, "cpu")]
    yield Figure("operator on one number", "us", *launch)
    yield Figure("launch beyond the plug-in's own", "us", _launch_overhead(as_place(place).device()) * 1e6, None)
    array = np.ones((size, size), np.float32)
    there = paddle.to_tensor(array, place=place)
    bring = lambda: paddle.to_tensor(array, place=place)  # noqa: E731
    for name, run in (("copy to the device", bring), ("copy from the device", there.numpy)):
        yield Figure(name, "GB/s", _rate(array.nbytes, place, run), None)
    functional = paddle.nn.functional
    work: dict[str, tuple[Callable[[Any], Any], float, str]] = {
        "gelu": (functional.gelu, 2 * array.nbytes, "GB/s"), "softmax": (functional.softmax, 2 * array.nbytes, "GB/s"),
        "rms_norm": (lambda x: functional.rms_norm(x, [size]), 2 * array.nbytes, "GB/s"),
        "matmul": (lambda x: paddle.matmul(x, x), 2 * size**3, "GFLOP/s"),
        "attention": (_attention, 4 * size**3, "GFLOP/s"),
    }  # fmt: skip
    for name, (function, amount, unit) in work.items():
        rates = [_operator_rate(function, amount, where, array) for where in (place, "cpu")]
        yield Figure(f"{name} [{size}, {size}]", unit, *rates)


def _attention(x: Any) -> Any:
    """Of as many heads as fit 64 numbers."""
    heads = x.reshape([1, len(x), -1, min(64, len(x))])
    return paddle.nn.functional.scaled_dot_product_attention(heads, heads, heads)


def _launch_overhead(device: Device) -> float:
    """Seconds that a launch takes longer than the plug-in's own method."""
    form = usable_form(device)
    kernel, buffer = load_kernel(device, kit_source(form, "relu"), form, "relu"), device.allocate(400)
    count = () if form == NEST else (Scalar("q", 1),)
    one, arguments = (1, 1, 1), [Pointer(buffer.handle), Pointer(buffer.handle), *count]

    def launch() -> None:
        for _ in range(_SUBMISSIONS):
            device.launch(kernel, one, one, [buffer, buffer, *count])

    def launch_bare() -> None:
        for _ in range(_SUBMISSIONS):
            device.runtime.launch(device.context, kernel, one, one, arguments)

    place = str(device)
    return (_fastest(place, launch) - _fastest(place, launch_bare)) / _SUBMISSIONS


def _operator_rate(function: Callable[[Any], Any], amount: float, place: str, array: Any) -> float:
    x = paddle.to_tensor(array, place=place)
    return _rate(amount, place, lambda: function(x))


def _rate(amount: float, place: str, run: Callable[[], Any]) -> float:
    """Billions a second."""
    return amount / _fastest(place, run) * 1e-9


def _launch_seconds(place: str) -> float:
    x = paddle.ones([1]).to(place)
    return _fastest(place, lambda: [x + x for _ in range(_SUBMISSIONS)]) / _SUBMISSIONS


def _fastest(place: str, run: Callable[[], Any]) -> float:
    """Seconds of the fastest run after the first, which makes code."""
    found = []
    for _ in range(_RUNS + 1):
        paddle.device.synchronize(place)
        began = perf_counter()
        run()
        paddle.device.synchronize(place)
        found.append(perf_counter() - began)
    return max(min(found[1:]), 1e-9)


def report_text(place: str, figures: Iterator[Figure]) -> str:
    """A line for each figure."""
    lines = [f"{'':28}{place:>14}{'cpu':>14}"]
    for name, unit, found, host in figures:
        shown = "" if host is None else f"{host:.4g} {unit}"
        lines.append(f"{name:28}{f'{found:.4g} {unit}':>14}{shown:>14}")
    return "\n".join(lines) + "\n"
