"""Recordings with labels, as sound or as what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from argosy.audio.backends import load
from argosy.audio.features import MFCC, LogMelSpectrogram, MelSpectrogram, Spectrogram
from argosy.dataset.common import DATA_HOME
from argosy.io.dataset import Dataset
from argosy_tensorcore.tensor import Tensor

__all__ = ["AudioClassificationDataset", "folder"]

_FEATURES: dict[str, Callable[..., Any] | None] = {
    "raw": None,
    "melspectrogram": MelSpectrogram,
    "mfcc": MFCC,
    "logmelspectrogram": LogMelSpectrogram,
    "spectrogram": Spectrogram,
}


class AudioClassificationDataset(Dataset):
    """Pairs of a recording and its label.

    files: WAV files of one channel; labels: one for each; feat_type: "raw" (the samples, float32 ``[n]``),
    "spectrogram", "melspectrogram", "logmelspectrogram" or "mfcc" (``[bins, frames]``); sample_rate: kept, and
    replaced by that of the last file that was read; kwargs: given to the layer that computes the feature. Raises
    ValueError for other features and for files of several channels.
    """

    def __init__(
        self,
        files: Sequence[str],
        labels: Sequence[int],
        feat_type: str = "raw",
        sample_rate: int | None = None,
        **kwargs: Any,
    ) -> None:
        if feat_type not in _FEATURES:
            raise ValueError(f"{type(self).__name__}: feat_type should be one of {[*_FEATURES]}, got {feat_type!r}")
        self.files, self.labels = list(files), list(labels)
        self.feat_type, self.sample_rate, self.feat_config = feat_type, sample_rate, kwargs

    def __getitem__(self, idx: int) -> tuple[Tensor, int]:
        sound, self.sample_rate = load(self.files[idx])
        if sound.shape[0] != 1:
            raise ValueError(f"{type(self).__name__}: {self.files[idx]} should have one channel, not {sound.shape[0]}")
        feature = _FEATURES[self.feat_type]
        if feature is None:
            return sound[0], self.labels[idx]
        rate = {} if self.feat_type == "spectrogram" else {"sr": self.sample_rate}
        return feature(**rate, **self.feat_config)(sound)[0], self.labels[idx]

    def __len__(self) -> int:
        return len(self.files)


def folder(dataset: str, archive: dict[str, str] | None, path: str) -> Path:
    """The folder ``path`` of Paddle's folder for data sets. Raises FileNotFoundError where it is not there."""
    place = Path(DATA_HOME) / path
    if not place.is_dir():
        source = f" (unpack {archive['url']})" if archive else ""
        raise FileNotFoundError(f"{dataset}: argosy downloads nothing. Put the folder {path} into {DATA_HOME}{source}")
    return place
