"""Data sets of recordings in folders made here."""

from __future__ import annotations

import numpy as np
import pytest

import argosy as paddle
from argosy.audio.datasets import dataset


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Five recordings of each data set, of 800 samples."""
    monkeypatch.setattr(dataset, "DATA_HOME", str(tmp_path))
    sounds = paddle.to_tensor(np.linspace(-0.5, 0.5, 800, dtype="float32")[None])
    esc, tess = tmp_path / "ESC-50-master", tmp_path / "TESS_Toronto_emotional_speech_set" / "OAF"
    for place in (esc / "meta", esc / "audio", tess):
        place.mkdir(parents=True)
    rows = ["filename,fold,target,category,esc10,src_file,take"]
    for fold in range(1, 6):
        paddle.audio.save(str(esc / "audio" / f"{fold}-1.wav"), sounds, 8000)
        rows.append(f"{fold}-1.wav,{fold},{fold * 7},x,False,1,A")
    for mood in ("angry", "disgust", "fear", "ps", "sad"):
        paddle.audio.save(str(tess / f"OAF_back_{mood}.wav"), sounds, 8000)
    (esc / "meta" / "esc50.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_folds_are_left_for_the_test(home):
    """One fold is kept apart, by the table or by the files' order."""
    sets = paddle.audio.datasets
    assert (sets.ESC50("train", 2).labels, sets.ESC50("dev", 2).labels) == ([7, 21, 28, 35], [14])
    assert (sets.TESS("train", 2).labels, sets.TESS("dev", 2, split=2).labels) == ([1, 5], [1, 5])
    sound, label = sets.TESS("dev")[0]
    assert (sound.shape, sound.dtype, label) == ([800], paddle.float32, 0)
    assert len(sets.ESC50.label_list) == 50


def test_features_of_recordings(home):
    """Features take the rate of the file and the settings that are given."""
    sets = paddle.audio.datasets
    coefficients, label = sets.ESC50("dev", 1, "mfcc", n_mfcc=8, n_fft=64, n_mels=12, f_min=0.0)[0]
    direct = paddle.audio.features.MFCC(sr=8000, n_mfcc=8, n_fft=64, n_mels=12, f_min=0.0)
    sound = paddle.audio.load(str(home / "ESC-50-master" / "audio" / "1-1.wav"))[0]
    np.testing.assert_array_equal(coefficients.numpy(), direct(sound)[0].numpy())
    assert (coefficients.shape, label) == ([8, 51], 7)
    assert sets.ESC50("dev", 1, "spectrogram", n_fft=64)[0][0].shape == [33, 2]


def test_what_is_wrong_is_told(tmp_path, monkeypatch):
    """Folders that are not there, folds and features that do not exist, and sound of two channels."""
    monkeypatch.setattr(dataset, "DATA_HOME", str(tmp_path))
    sets = paddle.audio.datasets
    for make, error, told in (
        (lambda: sets.ESC50(), FileNotFoundError, "downloads nothing.*ESC-50-master.zip"),
        (lambda: sets.ESC50(split=6), ValueError, "1 to 5, got 6"),
        (lambda: sets.TESS(split=6), ValueError, "got 6 of 5"),
        (lambda: dataset.AudioClassificationDataset([], [], "chroma"), ValueError, "'chroma'"),
    ):
        with pytest.raises(error, match=told):
            make()
    paddle.audio.save(str(tmp_path / "two.wav"), paddle.zeros([2, 8]), 8000)
    with pytest.raises(ValueError, match="one channel, not 2"):
        dataset.AudioClassificationDataset([str(tmp_path / "two.wav")], [0])[0]
