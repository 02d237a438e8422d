"""Event files that TensorBoard shows, written by the writer of the package ``tensorboard`` (the extra
``[tensorboard]``)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from time import time
from typing import Any, Self

import numpy as np

from argosy.notebook.pictures import as_image, png
from argosy_tensorcore.tensor import Tensor

__all__ = ["SummaryWriter"]


def _library(module: str) -> Any:
    try:
        return import_module(f"tensorboard.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "tensorboard":
            raise
        raise ImportError("SummaryWriter needs tensorboard: python -m pip install 'argosy[tensorboard]'") from error


class SummaryWriter:
    """Scalars, histograms, images and text under tags, by step, in a file of the folder ``log_dir``.

    Also a context: the file is closed at its end. Raises ImportError where tensorboard is not installed.

    >>> with SummaryWriter("runs/first") as writer:  # doctest: +SKIP
    ...     writer.add_scalar("loss", 0.5, step=1)
    """

    def __init__(self, log_dir: str | os.PathLike[str]) -> None:
        self.log_dir = os.fspath(log_dir)
        self._summary: Any = _library("compat.proto.summary_pb2")
        self._event: Any = _library("compat.proto.event_pb2").Event
        self._file: Any = _library("summary.writer.event_file_writer").EventFileWriter(self.log_dir)

    def add_scalar(self, tag: str, value: float | Tensor, step: int) -> None:
        """A number."""
        self._add(step, self._summary.Summary.Value(tag=tag, simple_value=float(value)))

    def add_scalars(self, values: Mapping[str, float | Tensor], step: int) -> None:
        """Several numbers, by tag."""
        for tag, value in values.items():
            self.add_scalar(tag, value, step)

    def add_histogram(self, tag: str, values: Any, step: int, bins: int = 30) -> None:
        """How the elements of a tensor or array are spread; those that are not finite are left out."""
        flat = np.asarray(values, np.float64).ravel()
        flat = flat[np.isfinite(flat)]
        if not flat.size:
            raise ValueError(f"add_histogram(): argument 'values' of {tag!r} has no finite element")
        counts, edges = np.histogram(flat, bins)
        spread = self._summary.HistogramProto(
            min=flat.min(), max=flat.max(), num=flat.size, sum=flat.sum(), sum_squares=(flat**2).sum(),
            bucket_limit=edges[1:].tolist(), bucket=counts.tolist(),
        )  # fmt: skip
        self._add(step, self._summary.Summary.Value(tag=tag, histo=spread))

    def add_image(self, tag: str, image: Any, step: int) -> None:
        """A picture [H, W], [1 or 3, H, W] or [H, W, 1 or 3], from its least to its greatest value; both sizes from 8
        to 512. Raises ValueError for any other shape."""
        array = np.asarray(image)
        shown = as_image(array)
        if shown is None:
            raise ValueError(f"add_image(): argument 'image' should have a shape of a picture, got {list(array.shape)}")
        height, width = shown.shape[:2]
        picture = self._summary.Summary.Image(
            height=height, width=width, colorspace=3 if shown.ndim == 3 else 1, encoded_image_string=png(shown)
        )
        self._add(step, self._summary.Summary.Value(tag=tag, image=picture))

    def add_text(self, tag: str, text: str, step: int) -> None:
        """Text, which TensorBoard reads as Markdown."""
        self._write(step, _library("plugins.text.summary_v2").text_pb(tag, text))

    def _add(self, step: int, value: Any) -> None:
        self._write(step, self._summary.Summary(value=[value]))

    def _write(self, step: int, summary: Any) -> None:
        self._file.add_event(self._event(wall_time=time(), step=int(step), summary=summary))

    def flush(self) -> None:
        """Write what is still in memory."""
        self._file.flush()

    def close(self) -> None:
        """Write what is still in memory, and close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
