"""Classify images from few examples, with augmentation: 200 handwritten digits (scikit-learn's) to learn from.

python examples/scripts/images.py [--steps 800]

A network that sees each digit moved and turned at random learns what a digit is, not what these 200 are. The
same network is trained with and without, and both are tested on 1,500 others.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from common import confusion, curve, draw, options, steps, tiles
from sklearn.datasets import load_digits

import argosy as paddle
import argosy.nn.functional as F
from argosy import nn
from argosy.vision import transforms

TRAINING = 200


class Digits(paddle.io.Dataset):
    """Images [1, 16, 16] between 0 and 1 with their labels; ``transform`` gets arrays [16, 16, 1]."""

    def __init__(self, part: slice, transform: transforms.Compose) -> None:
        images, labels = load_digits(return_X_y=True)
        images = np.kron(images.reshape(-1, 8, 8)[part], np.ones((2, 2))) / 16 * 255
        self.images = images.astype("uint8")[..., None]
        self.labels = labels[part].astype("int64")
        self.transform = transform

    def __getitem__(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        return self.transform(self.images[i]), self.labels[i]

    def __len__(self) -> int:
        return len(self.images)


def to_array(image: np.ndarray) -> np.ndarray:
    """[16, 16, 1] of bytes -> [1, 16, 16] between 0 and 1."""
    return (np.asarray(image, "float32").reshape(16, 16) / 255)[None]


PLAIN = transforms.Compose([to_array])
AUGMENTED = transforms.Compose([
    transforms.RandomRotation(10),
    transforms.Pad(1),
    transforms.RandomCrop(16),
    to_array,
])  # fmt: skip


def network() -> nn.Layer:
    """Three convolutions and a linear classifier."""
    layers: list[nn.Layer] = []
    for inside, outside in ((1, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2D(inside, outside, 3, padding=1), nn.BatchNorm2D(outside), nn.ReLU(), nn.MaxPool2D(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.2), nn.Linear(256, 10))


def train(transform: transforms.Compose, total: int) -> tuple[nn.Layer, list[float]]:
    """A trained network and its losses."""
    paddle.seed(0)
    np.random.seed(0)
    random.seed(0)  # transforms draw from it
    model = network()
    schedule = paddle.optimizer.lr.CosineAnnealingDecay(3e-3, T_max=total)
    optimizer = paddle.optimizer.AdamW(schedule, parameters=model.parameters(), weight_decay=0.01)

    @paddle.jit.to_static(full_graph=True)
    def step(x: paddle.Tensor, y: paddle.Tensor) -> paddle.Tensor:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    loader = paddle.io.DataLoader(Digits(slice(0, TRAINING), transform), batch_size=40, shuffle=True, drop_last=True)
    batches = iter(loader)
    losses = []
    for _ in steps(total):
        batch = next(batches, None)
        if batch is None:
            batches = iter(loader)
            batch = next(batches)
        losses.append(float(step(*batch)))
        schedule.step()
    return model, losses


def predict(model: nn.Layer) -> tuple[np.ndarray, np.ndarray]:
    """Classes found for the images that were not learned from, and the true ones."""
    model.eval()
    others = Digits(slice(TRAINING, TRAINING + 1500), PLAIN)
    images = paddle.to_tensor(np.stack([to_array(image) for image in others.images]))
    with paddle.no_grad():
        return model(images).argmax(-1).numpy(), others.labels


def main(total: int = 800, plots: str = "") -> tuple[float, float]:
    """Train both ways; gives the accuracies without and with augmentation."""
    plain, _ = train(PLAIN, total)
    augmented, losses = train(AUGMENTED, total)
    found, truth = predict(augmented)
    accuracies = float((predict(plain)[0] == truth).mean()), float((found == truth).mean())
    print(f"accuracy on 1500 others: {accuracies[0]:.3f} from {TRAINING} images, {accuracies[1]:.3f} augmented")

    def paint(samples: Any, loss: Any, table: Any) -> None:
        shown = Digits(slice(0, 4), AUGMENTED)
        samples.imshow(tiles(np.stack([shown[i // 6][0][0] for i in range(24)]), 6), cmap="gray_r")
        samples.set(title="four digits, each six times augmented", xticks=[], yticks=[])
        curve(loss, losses, "loss, augmented", log=True)
        confusion(table, truth, found, range(10))

    draw("images", plots, 3, paint)
    return accuracies


if __name__ == "__main__":
    given = options(__doc__, steps=800)
    main(given.steps, given.plots)
