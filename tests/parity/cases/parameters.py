"""Parameters: initialisers, reparameterisations, vectors, clipping, penalties, and how layers hold them."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, layer, script, state
from parity.inputs import tensor as t


def cases() -> Iterator[Case]:
    for dim in (0, 1, -1, None):
        yield script("normalised_weight", t(2, 3), "nn.Linear", (3, 4), dim)
        yield script("normalised_weight", t(2, 4, 5, 5), "nn.Conv2D", (4, 6, 3), dim)
    for training in (True, False):
        yield script("spectral", t(2, 3), "nn.Linear", (3, 4), training)
        yield script("spectral", t(2, 4, 5, 5), "nn.Conv2D", (4, 6, 3), training)
        yield script("spectral", t(2, 4, 3, 3), "nn.Conv2DTranspose", (4, 6, 3), training)
    for shape in ([4, 3, 3], [6, 3, 3, 2], [2, 4, 3, 3, 3]):
        yield script("initialised", "Dirac", shape)
        yield script("initialised", "Dirac", shape, groups=2)
    for size in (2, 3, 4):
        yield script("initialised", "Bilinear", [2, 3, size, size])
    for matrix in ([3, 5], [5, 3], [4, 2, 3]):
        yield script("orthogonal", matrix, 1.5)
    for search in (None, "strong_wolfe"):
        yield script("rosenbrock", [-0.5, 0.8], 1, max_iter=3, line_search_fn=search, learning_rate=0.1)
        yield script("rosenbrock", [-0.5, 0.8], 2, max_iter=5, line_search_fn=search, learning_rate=0.5, history_size=3)
    yield script("rosenbrock", [-0.5, 0.8], 3, max_iter=20, line_search_fn="strong_wolfe")
    yield script("moving_valley", 8, max_iter=2, learning_rate=0.3)
    yield script("moving_valley", 8, max_iter=3, line_search_fn="strong_wolfe")
    yield script("moving_valley", 8, max_iter=4, learning_rate=0.2, history_size=2)
    yield script("vectors", t(2, 3))
    for order in (1.0, 2.0, float("inf")):
        yield script("clipped", t(2, 3), "clip_grad_norm_", 0.7, order)
    yield script("clipped", t(2, 3), "clip_grad_norm_", 1000.0)
    yield script("clipped", t(2, 3), "clip_grad_value_", 0.5)
    yield script("regularised", t(2, 3), "L1Decay")
    yield script("regularised", t(2, 3), "L2Decay")
    for training in (True, False):
        yield script("old_batch_norm", t(2, 3, 4), training, act="relu")
        yield script("old_batch_norm", t(2, 4, 4, 3), training, data_layout="NHWC", momentum=0.7)
        yield script("old_batch_norm", t(2, 3), training, use_global_stats=True)
        yield script("old_batch_norm", t(2, 3), training, trainable_statistics=True)
    yield script("sequential", t(2, 3))
    yield script("sublayers", t(2, 3))
    yield script("synchronised")
    yield state("nn.SyncBatchNorm", num_features=3)
    for mode in ("reflect", "replicate", "circular"):
        yield layer("nn.Conv1D", t(2, 4, 7), in_channels=4, out_channels=2, kernel_size=3, padding=2, padding_mode=mode)
        yield layer("nn.Conv2D", t(2, 3, 6, 5), in_channels=3, out_channels=2, kernel_size=3, padding=[1, 2],
                    padding_mode=mode)  # fmt: skip
    yield layer("nn.Conv2D", t(2, 6, 5, 3), in_channels=3, out_channels=2, kernel_size=3, padding=1,
                padding_mode="reflect", data_format="NHWC")  # fmt: skip
    yield layer("nn.Embedding", t(2, 3, dtype="int64", low=0, high=5), num_embeddings=5, embedding_dim=4, _freeze=True)
