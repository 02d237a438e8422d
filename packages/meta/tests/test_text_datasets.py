"""Data sets of text from archives made here; the values are those that Paddle's give for the same files."""

from __future__ import annotations

import io
import tarfile

import numpy as np
import pytest

import argosy as paddle
from argosy.vision.datasets import files

text = paddle.text


def _archive(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content.encode())
            archive.addfile(info, io.BytesIO(content.encode()))
    return str(path)


@pytest.fixture
def reviews(tmp_path):
    return _archive(
        tmp_path / "aclImdb_v1.tar.gz",
        {
            "aclImdb/README": "good good good",
            "aclImdb/train/neg/0_1.txt": "Bad, bad film!\n",
            "aclImdb/train/pos/0_9.txt": "good film, good.\n",
            "aclImdb/test/pos/0_8.txt": "good bad rare\n",
        },
    )


@pytest.fixture
def treebank(tmp_path):
    return _archive(
        tmp_path / "simple-examples.tgz",
        {
            "./simple-examples/data/ptb.train.txt": " a b a \n b a c \n",
            "./simple-examples/data/ptb.valid.txt": " a <unk> \n",
            "./simple-examples/data/ptb.test.txt": " c a b \n a \n",
        },
    )


def test_reviews_are_numbers_of_frequent_words(reviews):
    """Words of both parts are counted without punctuation; praise comes first, label 0."""
    train, test = text.Imdb(reviews, cutoff=1), text.Imdb(reviews, mode="TEST", cutoff=1)
    assert train.word_idx == {b"bad": 0, b"good": 1, b"film": 2, "<unk>": 3}
    assert [(doc.tolist(), label.tolist()) for doc, label in train] == [([1, 2, 1], [0]), ([0, 0, 2], [1])]
    assert [(doc.tolist(), label.tolist()) for doc, label in test] == [([1, 0, 3], [0])]
    assert train[0][0].dtype == train[0][1].dtype == np.int64


def test_the_treebank_gives_ngrams_and_lines(treebank):
    """Every line begins and ends with a mark; a line is paired with itself one word on, unless it is too long."""
    ngrams = text.Imikolov(treebank, "NGRAM", 3, min_word_freq=1)
    assert ngrams.word_idx == {b"a": 0, "<e>": 1, "<s>": 2, b"b": 3, "<unk>": 4}
    assert [[int(n) for n in ngrams[i]] for i in range(3)] == [[2, 0, 3], [0, 3, 0], [3, 0, 1]]
    assert len(ngrams) == 6
    lines = text.Imikolov(treebank, "SEQ", mode="test", min_word_freq=1)
    assert [[part.tolist() for part in line] for line in lines] == [[[2, 4, 0, 3], [4, 0, 3, 1]], [[2, 0], [0, 1]]]
    assert len(text.Imikolov(treebank, "SEQ", 2, "test", 1)) == 1


def test_features_of_houses_are_scaled_over_both_parts(tmp_path):
    """Centred, and divided by the range; the price stays."""
    table = np.random.default_rng(0).standard_normal((10, 14))
    path = tmp_path / "housing.data"
    np.savetxt(path, table)
    train, test = text.UCIHousing(str(path)), text.UCIHousing(str(path), mode="test")
    assert (len(train), len(test)) == (8, 2)
    features, price = test[1]
    expected = (table[9] - table.mean(0)) / (table.max(0) - table.min(0))
    np.testing.assert_allclose(features, expected[:13], rtol=1e-6)
    np.testing.assert_allclose(price, table[9, 13:], rtol=1e-6)
    assert features.dtype == price.dtype == np.float32


def test_batches_come_from_a_loader(reviews):
    """A worker process reads the same samples."""
    data = text.datasets.Imdb(reviews, cutoff=1)
    for workers in (0, 1):
        loader = paddle.io.DataLoader(data, batch_size=2, num_workers=workers)
        assert [[part.tolist() for part in batch] for batch in loader] == [[[[1, 2, 1], [0, 0, 2]], [[0], [1]]]]


def test_what_is_wrong_is_told(reviews, treebank, tmp_path, monkeypatch):
    """Files that are not there, unknown kinds, archives of something else, and members that are too large."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for make, error, told in (
        (lambda: text.Imdb(), FileNotFoundError, "downloads nothing"),
        (lambda: text.Imdb(str(tmp_path / "none")), FileNotFoundError, "data_file"),
        (lambda: text.Imdb(reviews, mode="valid"), ValueError, "'valid'"),
        (lambda: text.Imdb(treebank), ValueError, "no reviews"),
        (lambda: text.Imikolov(treebank), ValueError, "window_size"),
        (lambda: text.Imikolov(treebank, "WORDS", 2), ValueError, "'WORDS'"),
        (lambda: text.Imikolov(reviews, "SEQ"), ValueError, "ptb."),
        (lambda: text.UCIHousing(reviews), ValueError, "14 columns"),
    ):
        with pytest.raises(error, match=told):
            make()
    monkeypatch.setattr("argosy.text.datasets.words.LIMIT", 4)
    assert files.LIMIT > 4
    with pytest.raises(ValueError, match="more than 4"):
        text.Imdb(reviews)
