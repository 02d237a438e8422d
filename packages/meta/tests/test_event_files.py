"""Event files for TensorBoard and VisualDL: read back by their own readers."""

import sys
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
from argosy.hapi.summaries import SummaryWriter


class _Numbers(paddle.io.Dataset):
    def __getitem__(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        return np.full(3, i, "float32"), np.ones(1, "float32")

    def __len__(self) -> int:
        return 8


def _trained(*callbacks: object) -> None:
    paddle.seed(0)
    model = paddle.Model(paddle.nn.Linear(3, 1))
    model.prepare(paddle.optimizer.SGD(0.001, parameters=model.parameters()), paddle.nn.MSELoss())
    model.fit(_Numbers(), _Numbers(), batch_size=4, epochs=2, verbose=0, callbacks=list(callbacks))


def _read(folder: Path) -> object:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulator.EventAccumulator(str(folder), size_guidance={accumulator.HISTOGRAMS: 0})
    found.Reload()
    return found


def test_tensorboard_reads_what_the_writer_writes(tmp_path: Path) -> None:
    """Scalars, histograms, images and text."""
    pytest.importorskip("tensorboard")
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars({"loss": paddle.to_tensor(0.5), "rate": 0.25}, step=1)
        writer.add_scalar("loss", 0.125, step=2)
        writer.add_histogram("weights", paddle.arange(100, dtype="float32"), step=1)
        writer.add_image("picture", paddle.rand([3, 16, 12]), step=1)
        writer.add_text("words", "**bold**", step=1)
        with pytest.raises(ValueError, match=r"should have a shape of a picture, got \[4\]"):
            writer.add_image("picture", paddle.ones([4]), step=1)
        with pytest.raises(ValueError, match="'weights' has no finite element"):
            writer.add_histogram("weights", [float("nan")], step=1)
    found = _read(tmp_path)
    assert [(each.step, each.value) for each in found.Scalars("loss")] == [(1, 0.5), (2, 0.125)]
    (spread,) = found.Histograms("weights")
    assert (spread.histogram_value.num, sum(spread.histogram_value.bucket)) == (100, 100)
    (picture,) = found.Images("picture")
    assert (picture.width, picture.height) == (12, 16)
    assert picture.encoded_image_string[:4] == b"\x89PNG"
    assert "words" in "".join(found.Tags()["tensors"])


def test_training_is_written_for_tensorboard(tmp_path: Path) -> None:
    """Every batch's loss, every evaluation's, and the parameters."""
    pytest.importorskip("tensorboard")
    _trained(paddle.callbacks.TensorBoard(str(tmp_path), histograms=True))
    found = _read(tmp_path)
    assert len(found.Scalars("train/loss")) == 4
    assert len(found.Scalars("eval/loss")) == 2
    assert set(found.Tags()["histograms"]) == {"parameters/weight", "parameters/bias"}


def test_training_is_written_for_visualdl(tmp_path: Path) -> None:
    """Read back by its reader."""
    reader = pytest.importorskip("visualdl").LogReader
    _trained(paddle.callbacks.VisualDL(str(tmp_path)))
    (file,) = tmp_path.iterdir()
    assert len(reader(file_path=str(file)).get_data("scalar", "train/loss")) == 4


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With how to install it."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ImportError, match=r"pip install 'argosy\[tensorboard\]'"):
        SummaryWriter(tmp_path)
