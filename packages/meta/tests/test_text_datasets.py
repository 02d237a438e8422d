"""Data sets of text from archives made here; the values are those that Paddle's give for the same files."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

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


_ROLES = "The DT - (A1*\nfilm NN - *)\nends VBZ end (V*)\n. . - *\n\n"


@pytest.fixture
def roles(tmp_path):
    """A sentence with one predicate, and lists of words, predicates and roles."""
    words = "".join(line.split()[0] + "\n" if line else "\n" for line in _ROLES.split("\n")[:-1])
    props = "".join(" ".join(line.split()[2:]) + "\n" for line in _ROLES.split("\n")[:-1])
    path = tmp_path / "conll05st-tests.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for kind, content in (("words", words), ("props", props)):
            packed = gzip.compress(content.encode())
            info = tarfile.TarInfo(f"conll05st-release/test.wsj/{kind}/test.wsj.{kind}.gz")
            info.size = len(packed)
            archive.addfile(info, io.BytesIO(packed))
    lists = {
        "words": "<unk>\nbos\neos\nThe\nfilm\nends\n",
        "verbs": "go\nend\n",
        "roles": "B-V\nB-A1\nI-A1\n",
        "emb": "",
    }
    for name, content in lists.items():
        (tmp_path / name).write_text(content)
    return [str(path), *(str(tmp_path / name) for name in lists)]


def test_roles_of_a_predicate(roles):
    """Nine columns a sentence; the values are the wheel's but for the order of the roles."""
    data = text.Conll05st(*roles)
    assert (len(data), data.get_embedding()) == (1, roles[-1])
    assert data.get_dict()[2] == {"B-A1": 0, "I-A1": 1, "B-V": 2, "I-V": 3, "O": 4}
    assert [part.tolist() for part in data[0]] == [
        [3, 4, 5, 0], [3] * 4, [4] * 4, [5] * 4, [0] * 4, [2] * 4, [1] * 4, [1] * 4, [0, 1, 2, 4],
    ]  # fmt: skip


@pytest.fixture
def ratings(tmp_path):
    tables = {
        "movies": "1::Toy Story (1995)::Animation|Comedy\n7::Sabrina (1995)::Comedy\n",
        "users": "1::F::1::10::48067\n2::M::56::16::70072\n",
        "ratings": "".join(f"{1 + i % 2}::{(1, 7)[i % 3 == 0]}::{1 + i % 5}::97830{i}\n" for i in range(12)),
    }
    path = tmp_path / "ml-1m.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in tables.items():
            archive.writestr(f"ml-1m/{name}.dat", content)
    return str(path)


def test_ratings_are_drawn_for_the_test(ratings):
    """Every rating is in one of both parts, drawn as numpy's generator draws from the seed, which is left alone."""
    np.random.seed(5)
    before = np.random.get_state()[1].tolist()
    train, test = (text.Movielens(ratings, mode, test_ratio=0.5) for mode in ("train", "test"))
    assert np.random.get_state()[1].tolist() == before
    assert (len(train), len(test)) == (9, 3)  # the wheel's numbers for this seed
    assert [part.tolist() for part in test[0]] == [[1], [1], [0], [10], [1], [0, 1], [2, 1], [5.0]]
    assert str(train.movie_info[7]) == "MovieInfo(index=7, categories=['Comedy'], title='Sabrina ')"


def test_translations_by_numbers_of_words(tmp_path):
    """The lists of the archive (2014), and the most frequent words of the training part (2016)."""
    marks = "<s>\n<e>\n<unk>\n"
    members = {
        "w/src.dict": marks + "a\nb\nc\n",
        "w/trg.dict": marks + "x\ny\n",
        "w/train/train": "a b c\tx y\nalone\n",
    }
    path = _archive(tmp_path / "wmt14.tgz", {**members, "w/gen/gen": "b\ty " + "x " * 80})
    pairs = text.WMT14(path, dict_size=5)
    assert [[part.tolist() for part in pair] for pair in pairs] == [[[0, 3, 4, 2, 1], [0, 3, 4], [3, 4, 1]]]
    assert pairs.get_dict(reverse=True)[1] == {0: "<s>", 1: "<e>", 2: "<unk>", 3: "x", 4: "y"}
    assert len(text.WMT14(path, "gen", 5)) == 0
    path = _archive(tmp_path / "wmt16.tar.gz", {"wmt16/train": "a b a\tx y\nc\ty\n", "wmt16/val": "a c\tx y\n"})
    pairs = text.WMT16(path, "val", 4, 5, "en")
    assert [[part.tolist() for part in pair] for pair in pairs] == [[[0, 3, 2, 1], [0, 4, 3], [4, 3, 1]]]
    turned = text.WMT16(path, "val", 5, 4, "de")
    assert (turned.get_dict("en"), turned.get_dict("de", True)[3]) == (pairs.get_dict("en"), "y")
    with pytest.raises(ValueError, match="trg_dict_size"):
        text.WMT16(path, src_dict_size=3)
    with pytest.raises(ValueError, match="holds no wmt16/test"):
        text.WMT16(path, "test", 3, 3)
    with pytest.raises(ValueError, match=r"holds no (src|trg)\.dict"):
        text.WMT14(path, dict_size=5)
