"""Classify handwritten digits (8 x 8, scikit-learn's) with a small convolutional network and ``Model.fit``.

python examples/scripts/digits.py [--epochs 5]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import confusion, curve, draw, fixed_weights, options, tiles
from sklearn.datasets import load_digits

import argosy as paddle
from argosy import nn


class Digits(paddle.io.Dataset):
    """Images [1, 8, 8] between 0 and 1, with labels [1]."""

    def __init__(self, part: slice) -> None:
        images, labels = load_digits(return_X_y=True)
        self.images = (images.reshape(-1, 1, 8, 8)[part] / 16).astype("float32")
        self.labels = labels[part, None].astype("int64")

    def __getitem__(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        return self.images[i], self.labels[i]

    def __len__(self) -> int:
        return len(self.images)


def network() -> nn.Layer:
    """Two convolutions and a linear classifier."""
    return nn.Sequential(
        nn.Conv2D(1, 16, 3, padding=1), nn.BatchNorm2D(16), nn.ReLU(), nn.MaxPool2D(2),
        nn.Conv2D(16, 32, 3, padding=1), nn.BatchNorm2D(32), nn.ReLU(), nn.AdaptiveAvgPool2D(2),
        nn.Flatten(), nn.Linear(128, 10),
    )  # fmt: skip


class Losses(paddle.callbacks.Callback):
    """Keeps the loss of every batch."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []

    def on_train_batch_end(self, step: int, logs: dict[str, Any] | None = None) -> None:
        assert logs is not None
        self.values.append(float(np.ravel(logs["loss"])[0]))


def main(count: int | None = None, epochs: int = 5, plots: str = "") -> list[float]:
    """Train; with ``count``, for that many batches. Gives the losses."""
    net = network()
    fixed_weights(net)
    model = paddle.Model(net)
    schedule = paddle.optimizer.lr.CosineAnnealingDecay(0.01, T_max=100)
    optimizer = paddle.optimizer.Momentum(schedule, parameters=net.parameters(), weight_decay=1e-4)
    model.prepare(optimizer, nn.CrossEntropyLoss(), paddle.metric.Accuracy())
    losses = Losses()
    model.fit(
        Digits(slice(0, 1500)), batch_size=50, epochs=epochs if count is None else 1, shuffle=count is None,
        num_iters=count, verbose=1 if count is None else 0, callbacks=[losses],
    )  # fmt: skip
    if count is None:
        others = Digits(slice(1500, None))
        print(model.evaluate(others, batch_size=50, verbose=0))
        found = net(paddle.to_tensor(others.images)).argmax(-1).numpy()

        def paint(images: Any, loss: Any, table: Any) -> None:
            wrong = np.argsort(found == others.labels[:, 0], kind="stable")[:24]
            images.imshow(tiles(others.images[wrong, 0], 6), cmap="gray_r")
            images.set(title="new digits, those taken for others first", xticks=[], yticks=[])
            curve(loss, losses.values, log=True)
            confusion(table, others.labels[:, 0], found, range(10))

        draw("digits", plots, 3, paint)
    return losses.values


if __name__ == "__main__":
    given = options(__doc__, epochs=5)
    main(epochs=given.epochs, plots=given.plots)
