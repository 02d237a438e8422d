"""Lists of operators for ``decorate``, and marks in programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from argosy.amp.lists import BLACK, WHITE
from argosy_tensorcore.dtype import as_dtype

__all__ = [
    "AutoMixedPrecisionLists", "CustomOpLists", "cast_model_to_fp16", "cast_parameters_to_fp16", "fp16_guard",
]  # fmt: skip


class AutoMixedPrecisionLists:
    """Names of operators that compute in ``dtype`` (``white_list``) and in float32 (``black_list``): those of
    :mod:`argosy.amp` with the custom ones. Custom names of operators that only Paddle has are kept.

    custom_black_varnames is kept and changes nothing. Raises ValueError for a name on both custom lists and for other
    dtypes than float16 and bfloat16.
    """

    def __init__(
        self,
        custom_white_list: Iterable[str] | None = None,
        custom_black_list: Iterable[str] | None = None,
        custom_black_varnames: Iterable[str] | None = None,
        dtype: object = "float16",
    ) -> None:
        self.amp_dtype = as_dtype(dtype).name
        if self.amp_dtype not in ("float16", "bfloat16"):
            raise ValueError(f"AutoMixedPrecisionLists(dtype={self.amp_dtype!r}): expected 'float16' or 'bfloat16'")
        white, black = set(custom_white_list or ()), set(custom_black_list or ())
        if white & black:
            raise ValueError(f"The given custom_white_list overlaps custom_black_list with {sorted(white & black)}")
        self.white_list: set[str] = (set(WHITE) | white) - black
        self.black_list: set[str] = (set(BLACK) | black) - white
        self.black_varnames = set(custom_black_varnames or ())


CustomOpLists = AutoMixedPrecisionLists


@contextmanager
def fp16_guard() -> Iterator[None]:
    """Marks operators for level O2. What they compute in is what ``amp.auto_cast`` around them says, so that the mark
    changes nothing, as in Paddle 3's programs."""
    yield


def cast_model_to_fp16(program: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: record the program under ``amp.auto_cast`` instead."""
    raise NotImplementedError("static.amp.cast_model_to_fp16: record the program under paddle.amp.auto_cast instead")


def cast_parameters_to_fp16(place: Any, program: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: parameters stay float32, and ``amp.auto_cast`` converts what operators read."""
    raise NotImplementedError("static.amp.cast_parameters_to_fp16: record under paddle.amp.auto_cast instead")
