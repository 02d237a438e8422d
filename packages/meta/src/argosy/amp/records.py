"""Figures of tensors that operators made, as lines of a log in Paddle's form, and two logs side by side."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

__all__ = ["HALF_LARGEST", "Record", "compare", "record_of"]

HALF_LARGEST = float(np.finfo(np.float16).max)
_SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}
_CLOSE = 1e-2  # how near the figures of two precisions are to be, relative and absolute, as in Paddle


@dataclass(frozen=True)
class Record:
    """One tensor: the operator that made it, its type, and its figures (of the elements that are no NaN)."""

    op: str
    dtype: str
    numel: int
    num_nan: int
    num_inf: int
    num_zero: int
    max: float
    min: float
    mean: float
    tensor: str = ""

    @property
    def has_nonfinite(self) -> bool:
        """Whether NaN or infinity is among the elements."""
        return bool(self.num_nan or self.num_inf)

    @property
    def overflows(self) -> bool:
        """Whether float16 could not hold it."""
        return self.has_nonfinite or max(abs(self.max), abs(self.min)) > HALF_LARGEST

    def line(self) -> str:
        """As Paddle's log has it; counts of NaN and infinity where there are some."""
        bad = f"num_nan={self.num_nan}, num_inf={self.num_inf}, " if self.has_nonfinite else ""
        mark = " [ERROR]" if self.has_nonfinite else ""
        return (
            f"[PRECISION]{mark} in [device=cpu, op={self.op}, tensor={self.tensor}, dtype={self.dtype}], "
            f"numel={self.numel}, {bad}num_zero={self.num_zero}, max={self.max:e}, min={self.min:e}, mean={self.mean:e}"
        )


def record_of(op: str, dtype: str, array: np.ndarray[Any, Any], tensor: str = "") -> Record:
    """The record of a float array that ``op`` made; ``dtype`` is the name of its type, ``tensor`` its own."""
    values = array.astype(np.float64)
    largest, least = (f.reduce(values, axis=None, initial=math.nan) for f in (np.fmax, np.fmin))
    nan, inf, zero = (int(each.sum()) for each in (np.isnan(values), np.isinf(values), values == 0))
    with np.errstate(all="ignore"):
        mean = float(values.mean()) if values.size else math.nan
    return Record(op, _SHORT.get(dtype, dtype), values.size, nan, inf, zero, float(largest), float(least), mean, tensor)


def _parse(line: str) -> Record:
    """What :meth:`Record.line` or Paddle wrote. Raises ValueError for another line."""
    words = [word.strip("[],") for word in line.split()]
    found = dict(word.split("=", 1) for word in words if "=" in word)
    try:
        numel, nan, inf, zero = (int(found.get(name, "0")) for name in ("numel", "num_nan", "num_inf", "num_zero"))
        largest, least, mean = (float(found[name]) for name in ("max", "min", "mean"))
        return Record(found["op"], found["dtype"], numel, nan, inf, zero, largest, least, mean)
    except (KeyError, ValueError) as error:
        raise ValueError(f"a line of a log of tensors does not say its {error}: {line.strip():.200}") from error


def _read(folder: str) -> dict[str, list[Record]]:
    """The records of a folder's logs by operator, in their order."""
    found: dict[str, list[Record]] = {}
    names = sorted(name for name in os.listdir(folder) if name.startswith("worker_"))
    if not names:
        raise ValueError(f"compare_accuracy: {folder!r} holds no logs (worker_...) of tensors")
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            for line in file:
                if line.startswith("[PRECISION]"):
                    record = _parse(line)
                    found.setdefault(record.op, []).append(record)
    return found


_FIGURES = ("dtype", "max", "min", "mean", "num_zero", "num_inf", "num_nan")


def compare(first: str, second: str, output: str, loss_scale: float) -> None:
    """Write the tensors of two folders of logs to a file of comma-separated values, the n-th of each operator beside
    the n-th; see :func:`argosy.amp.debugging.compare_accuracy`."""
    one, other = _read(first), _read(second)
    heads = [f"{side} {name}" for side in ("first", "second") for name in _FIGURES]
    ratios = [f"second / first {name}" for name in ("max", "min", "mean")]
    with open(output, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["op_type", "numel", "normal", *heads, *ratios])
        for op in dict.fromkeys([*one, *other]):
            for a, b in zip_longest(one.get(op, []), other.get(op, [])):
                table.writerow(_row(op, a, b, loss_scale))


def _row(op: str, a: Record | None, b: Record | None, loss_scale: float) -> list[Any]:
    held = [each for each in (a, b) if each is not None]
    figures = [getattr(each, name) if each is not None else "" for each in (a, b) for name in _FIGURES]
    ratios = list(_ratios(a, b)) if a is not None and b is not None else [""] * 3
    close = a is None or b is None or any(_is_close(a, b, scale) for scale in (1.0, loss_scale))
    normal = close and not any(each.overflows for each in held)
    return [op, held[0].numel, "yes" if normal else "no", *figures, *ratios]


def _is_close(a: Record, b: Record, scale: float) -> bool:
    """Whether extrema agree; gradients of a scaled loss may be ``scale`` times those of the other."""
    return np.allclose([b.max, b.min], [a.max * scale, a.min * scale], atol=_CLOSE, rtol=_CLOSE)


def _ratios(a: Record, b: Record) -> Iterator[float]:
    for name in ("max", "min", "mean"):
        below = getattr(a, name)
        yield getattr(b, name) / below if below else 1.0
