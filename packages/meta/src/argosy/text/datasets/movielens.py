"""A million ratings of films (Harper and Konstan, 2015), out of ``ml-1m.zip``."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from argosy.io.dataset import Dataset
from argosy.vision.datasets.files import LIMIT, find_file, mode_of, report_damage

__all__ = ["MovieInfo", "Movielens", "UserInfo"]

_AGES = (1, 18, 25, 35, 45, 50, 56)
_TITLE = re.compile(r"(.*)\(\d+\)")


@dataclass(frozen=True)
class MovieInfo:
    """A film: its number, its categories, its title without the year."""

    index: int
    categories: list[str]
    title: str

    def value(self, categories_dict: dict[str, int], movie_title_dict: dict[str, int]) -> list[list[int]]:
        """Its number, and the numbers of its categories and of the words of its title."""
        words = [movie_title_dict[word.lower()] for word in self.title.split()]
        return [[self.index], [categories_dict[category] for category in self.categories], words]


@dataclass(frozen=True)
class UserInfo:
    """Somebody who rates: number, sex, which of seven ages, and work."""

    index: int
    is_male: bool
    age: int
    job_id: int

    def value(self) -> list[list[int]]:
        """Number, 0 for men and 1 for women, age and work."""
        return [[self.index], [int(not self.is_male)], [self.age], [self.job_id]]


class Movielens(Dataset):
    """Eight arrays: the user's number, sex, age and work ``[1]``, the film's number ``[1]``, the numbers of its
    categories and of the words of its title, and the rating ``[1]``, from -3 to 5 (twice the stars, less 5).

    data_file: the archive as it is published; mode: "train" or "test"; test_ratio: the share of ratings that the test
    draws; rand_seed: where the draws begin (a generator of its own: numpy's is left alone); download: taken as Paddle
    takes it, though nothing is. Words and categories are numbered in alphabetical order (Paddle's order changes from
    process to process). Raises FileNotFoundError where the archive is not there, ValueError where it lacks its tables
    or a line is not one of theirs.
    """

    def __init__(
        self,
        data_file: str | None = None,
        mode: str = "train",
        test_ratio: float = 0.1,
        rand_seed: int = 0,
        download: bool = True,
    ) -> None:
        self.mode = mode_of("Movielens", mode, ("train", "test"))
        self.data_file = str(find_file(data_file, "Movielens", "sentiment", "movielens%2Fml-1m.zip", "data_file"))
        self.test_ratio, self.rand_seed = test_ratio, rand_seed
        with report_damage(self.data_file), zipfile.ZipFile(self.data_file) as package:
            films = [_film(*row) for row in _rows(package, "movies", 3)]
            users = [_user(*row[:4]) for row in _rows(package, "users", 5)]
            ratings = list(_rows(package, "ratings", 4))
        self.movie_info = {film.index: film for film in films}
        self.user_info = {user.index: user for user in users}
        self.movie_title_dict = _numbers({word.lower() for film in films for word in film.title.split()})
        self.categories_dict = _numbers({category for film in films for category in film.categories})
        draws = np.random.RandomState(rand_seed).random_sample(len(ratings)) < test_ratio
        chosen = np.flatnonzero(draws == (self.mode == "test"))
        self.data = [self._record(*ratings[i][:3]) for i in chosen]

    def _record(self, user: str, film: str, stars: str) -> list[list[int] | list[float]]:
        values = self.movie_info[int(film)].value(self.categories_dict, self.movie_title_dict)
        return [*self.user_info[int(user)].value(), *values, [float(stars) * 2 - 5.0]]

    def __getitem__(self, idx: int) -> tuple[np.ndarray, ...]:
        return tuple(np.array(part) for part in self.data[idx])

    def __len__(self) -> int:
        return len(self.data)


def _numbers(words: set[str]) -> dict[str, int]:
    return {word: i for i, word in enumerate(sorted(words))}


def _film(index: str, title: str, categories: str) -> MovieInfo:
    match = _TITLE.fullmatch(title)
    if match is None:
        raise ValueError(f"Movielens: a title should end with its year in brackets, got {title!r:.80}")
    return MovieInfo(int(index), categories.split("|"), match.group(1))


def _user(index: str, sex: str, age: str, work: str) -> UserInfo:
    return UserInfo(int(index), sex == "M", _AGES.index(int(age)), int(work))


def _rows(package: zipfile.ZipFile, table: str, columns: int) -> Iterator[list[str]]:
    name = f"ml-1m/{table}.dat"
    if name not in package.namelist():
        raise ValueError(f"Movielens: {package.filename} holds no {name}")
    if package.getinfo(name).file_size > LIMIT:
        raise ValueError(f"Movielens: {name} would have {package.getinfo(name).file_size} bytes, more than {LIMIT}")
    for line in package.read(name).decode("latin-1").splitlines():
        row = line.strip().split("::")
        if len(row) != columns:
            raise ValueError(f"Movielens: lines of {name} should have {columns} columns, got {line!r:.80}")
        yield row
