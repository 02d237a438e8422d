"""Features of token ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_infer.onnx.registry import onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of, tensor_of


@onnx_operator("TfIdfVectorizer")
def tf_idf_vectorizer(
    x: Any,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] | None = None,
    pool_strings: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
) -> Any:
    """How often each n-gram of the pool is in rows of ids, with up to ``max_skip_count`` ids left out between two."""
    if pool_int64s is None:
        raise NotImplementedError("TfIdfVectorizer of strings")
    size = max(ngram_indexes) + 1
    rows = phi.reshape(x, [1, -1]) if len(shape_of(x)) == 1 else x
    columns: list[Any] = [phi.full([shape_of(rows)[0]], 0.0, "float32")] * size
    for gram, column in zip(_grams(pool_int64s, ngram_counts), ngram_indexes, strict=True):
        if min_gram_length <= len(gram) <= max_gram_length:
            columns[column] = _count(rows, gram, max_skip_count if len(gram) > 1 else 0)
    found = phi.stack(columns, 1)
    factors = np.ones(size, np.float32)
    if weights is not None and mode != "TF":
        factors[list(ngram_indexes)] = weights
    if mode == "IDF":
        found = prim.minimum(found, 1.0)
    found = prim.mul(found, tensor_of(factors))
    return phi.squeeze(found, 0) if len(shape_of(x)) == 1 else found


def _grams(pool: Sequence[int], starts: Sequence[int]) -> list[tuple[int, ...]]:
    """The n-grams of a pool that has those of one id first, each length from its start on."""
    grams = []
    for n, (start, end) in enumerate(zip(starts, [*starts[1:], len(pool)], strict=True), 1):
        grams += [tuple(pool[i : i + n]) for i in range(start, end, n)]
    return grams


def _count(rows: Any, gram: tuple[int, ...], skips: int) -> Any:
    length, total = shape_of(rows)[1], None
    for step in range(1, skips + 2):
        windows = length - (len(gram) - 1) * step
        if windows <= 0:
            break
        parts = [
            prim.eq(phi.slice(rows, [1], [i * step], [i * step + windows]), int(each)) for i, each in enumerate(gram)
        ]
        here = parts[0]
        for part in parts[1:]:
            here = prim.logical_and(here, part)
        count = prim.reduce_sum(prim.cast(here, dtype="float32"), axes=(1,))
        total = count if total is None else prim.add(total, count)
    return phi.full([shape_of(rows)[0]], 0.0, "float32") if total is None else total
