"""Words in seven moods (Pichora-Fuller and Dupuis, 2010), out of ``TESS_Toronto_emotional_speech_set``."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from argosy.audio.datasets.dataset import AudioClassificationDataset, folder

__all__ = ["TESS"]


class TESS(AudioClassificationDataset):
    """Pairs of a spoken word and one of seven moods (``label_list``).

    mode: "train" (all folds but one) or "dev" (the fold ``split``, 1 to ``n_folds``); feat_type and kwargs: see
    :class:`AudioClassificationDataset`; archive: where the data are published, named in the error if they are not in
    ``audio_path`` of Paddle's folder for data sets. Files are taken in alphabetical order (Paddle's order is that of
    the file system). Raises FileNotFoundError then, ValueError for other folds and for files without a mood.
    """

    archive: ClassVar[dict[str, str]] = {
        "url": "https://bj.bcebos.com/paddleaudio/datasets/TESS_Toronto_emotional_speech_set.zip",
        "md5": "1465311b24d1de704c4c63e4ccc470c7",
    }
    label_list: ClassVar[list[str]] = ["angry", "disgust", "fear", "happy", "neutral", "ps", "sad"]
    audio_path = "TESS_Toronto_emotional_speech_set"

    class meta_info(NamedTuple):
        """What the name of a file says."""

        speaker: str
        word: str
        emotion: str

    def __init__(
        self,
        mode: str = "train",
        n_folds: int = 5,
        split: int = 1,
        feat_type: str = "raw",
        archive: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(n_folds, int) or n_folds < 1 or split not in range(1, n_folds + 1):
            raise ValueError(f"TESS: split should be from 1 to n_folds, got {split} of {n_folds}")
        files = sorted(folder("TESS", archive or self.archive, self.audio_path).rglob("*.wav"))
        labels = [self.label_list.index(self.meta_info(*file.stem.split("_")).emotion) for file in files]
        chosen = [i for i in range(len(files)) if (i % n_folds + 1 != split) == (mode == "train")]
        super().__init__([str(files[i]) for i in chosen], [labels[i] for i in chosen], feat_type, **kwargs)
