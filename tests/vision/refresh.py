"""Record what the real wheel's ``paddle.vision`` answers, for ``test_vision.py``.

PATH_OF_A_PYTHON_WITH_PADDLEPADDLE_AND_PILLOW tests/vision/refresh.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from vision.model_cases import MODELS, layout, scores
from vision.operation_cases import answers
from vision.records import save


def main() -> None:
    """See the module's docstring."""
    import paddle  # type: ignore[import-not-found]

    made = answers(paddle)
    for name in MODELS:
        made[f"model.{name}.layout"] = np.array(layout(paddle, name))
        for i, array in enumerate(scores(paddle, name)):
            made[f"model.{name}.{i}"] = array
    save(made)


if __name__ == "__main__":
    main()
