"""Sounds of the surroundings (Piczak, 2015), out of ``ESC-50-master``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from argosy.audio.datasets.dataset import AudioClassificationDataset, folder

__all__ = ["ESC50"]

_FOLDS = 5


class ESC50(AudioClassificationDataset):
    """Pairs of five seconds of sound and one of fifty labels (``label_list``).

    mode: "train" (four folds) or "dev" (the fold ``split``, 1 to 5); feat_type and kwargs: see
    :class:`AudioClassificationDataset`; archive: where the data are published, named in the error if they are not in
    ``ESC-50-master`` of Paddle's folder for data sets. Raises FileNotFoundError then, ValueError for other folds.
    """

    archive: ClassVar[dict[str, str]] = {
        "url": "https://paddleaudio.bj.bcebos.com/datasets/ESC-50-master.zip",
        "md5": "7771e4b9d86d0945acce719c7a59305a",
    }
    label_list: ClassVar[list[str]] = [
        "Dog", "Rooster", "Pig", "Cow", "Frog", "Cat", "Hen", "Insects (flying)", "Sheep", "Crow", "Rain",
        "Sea waves", "Crackling fire", "Crickets", "Chirping birds", "Water drops", "Wind", "Pouring water",
        "Toilet flush", "Thunderstorm", "Crying baby", "Sneezing", "Clapping", "Breathing", "Coughing", "Footsteps",
        "Laughing", "Brushing teeth", "Snoring", "Drinking, sipping", "Door knock", "Mouse click", "Keyboard typing",
        "Door, wood creaks", "Can opening", "Washing machine", "Vacuum cleaner", "Clock alarm", "Clock tick",
        "Glass breaking", "Helicopter", "Chainsaw", "Siren", "Car horn", "Engine", "Train", "Church bells",
        "Airplane", "Fireworks", "Hand saw",
    ]  # fmt: skip
    meta = str(Path("ESC-50-master", "meta", "esc50.csv"))
    audio_path = str(Path("ESC-50-master", "audio"))

    class meta_info(NamedTuple):
        """A row of the table of recordings."""

        filename: str
        fold: str
        target: str
        category: str
        esc10: str
        src_file: str
        take: str

    def __init__(
        self,
        mode: str = "train",
        split: int = 1,
        feat_type: str = "raw",
        archive: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        if split not in range(1, _FOLDS + 1):
            raise ValueError(f"ESC50: split should be 1 to {_FOLDS}, got {split}")
        sounds = folder("ESC50", archive or self.archive, self.audio_path)
        with (folder("ESC50", archive or self.archive, str(Path(self.meta).parent)) / "esc50.csv").open() as file:
            rows = [self.meta_info(*row) for row in list(csv.reader(file))[1:]]
        chosen = [row for row in rows if (int(row.fold) != split) == (mode == "train")]
        files = [str(sounds / row.filename) for row in chosen]
        super().__init__(files, [int(row.target) for row in chosen], feat_type, **kwargs)
