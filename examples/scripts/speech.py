"""Tell spoken commands apart: a convolutional network on mel spectrograms of synthetic speech.

python examples/scripts/speech.py [--steps 300]

Each command is a row of vowels (two resonances of a buzzing voice) and hisses, spoken by voices of different pitch,
speed and loudness in noise. The words are made by this script, so that nothing has to be downloaded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import confusion, curve, draw, options, steps

import argosy as paddle
import argosy.nn.functional as F
from argosy import nn
from argosy.audio import features

RATE, SAMPLES = 8000, 6400
VOWELS = {"a": (800, 1200), "e": (500, 1900), "i": (300, 2300), "o": (450, 850), "u": (320, 700)}
WORDS = {"yes": "ies", "no": "no", "up": "a ", "down": "dau", "left": "lef", "right": "rai", "on": "o", "off": "of"}
QUIET = {"n": (280, 1300), "l": (350, 1100), "r": (400, 1300), "d": (300, 1600)}


def speak(word: str, rng: np.random.Generator) -> np.ndarray:
    """The word as samples [SAMPLES], somewhere in noise."""
    pitch, speed = rng.uniform(90, 240), rng.uniform(0.8, 1.25)
    accent = rng.uniform(0.92, 1.08)  # how long the speaker's throat is
    parts = [_sound(letter, pitch, accent, int(RATE * rng.uniform(0.10, 0.16) / speed), rng) for letter in WORDS[word]]
    wave = np.concatenate(parts)[:SAMPLES]
    start = rng.integers(0, SAMPLES - len(wave) + 1)
    heard = rng.uniform(0.01, 0.06) * rng.standard_normal(SAMPLES)
    heard[start : start + len(wave)] += rng.uniform(0.4, 1.0) * wave
    return heard.astype("float32")


def _sound(letter: str, pitch: float, accent: float, length: int, rng: np.random.Generator) -> np.ndarray:
    time = np.arange(length) / RATE
    envelope = np.minimum(1, np.minimum(np.arange(length), np.arange(length)[::-1]) / 160)
    if letter in "sf":
        hiss = rng.standard_normal(length)
        return 0.25 * envelope * (np.diff(hiss, prepend=0) if letter == "s" else hiss)
    if letter == " ":
        return np.zeros(length)
    resonances = np.array(VOWELS.get(letter) or QUIET[letter]) * accent
    tones = np.arange(1, int(3500 / pitch)) * pitch * (1 + 0.01 * np.sin(2 * np.pi * 5 * time))[:, None]
    gains = sum(np.exp(-(((tones[0] - f) / (80 + 0.06 * f)) ** 2)) for f in resonances) + 0.02
    voice = (gains * np.sin(2 * np.pi * np.cumsum(tones, 0) / RATE)).sum(1)
    sound: np.ndarray = envelope * voice / np.abs(voice).max() * (0.4 if letter in QUIET else 1.0)
    return sound


def corpus(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Log-mel spectrograms [count, 1, mels, frames] and the numbers of their words [count]."""
    labels = rng.integers(0, len(WORDS), count)
    names = list(WORDS)
    waves = paddle.to_tensor(np.stack([speak(names[i], rng) for i in labels]))
    spectrogram = features.LogMelSpectrogram(sr=RATE, n_fft=256, hop_length=128, n_mels=32, f_min=50.0)
    with paddle.no_grad():
        found = spectrogram(waves).numpy()
    return ((found - found.mean()) / found.std())[:, None].astype("float32"), labels.astype("int64")


def network() -> nn.Layer:
    """Three convolutions, then the mean over time and tones."""
    layers: list[nn.Layer] = []
    for inside, outside in ((1, 16), (16, 32), (32, 48)):
        layers += [nn.Conv2D(inside, outside, 3, padding=1), nn.BatchNorm2D(outside), nn.ReLU(), nn.MaxPool2D(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2D([4, 3]), nn.Flatten(), nn.Linear(48 * 12, len(WORDS)))


def main(total: int = 300, plots: str = "", count: int = 1200) -> float:
    """Train on ``count`` utterances; gives the accuracy on 400 others."""
    paddle.seed(0)
    rng = np.random.default_rng(0)
    x, y = corpus(count, rng)
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

    losses = []
    for _ in steps(total):
        chosen = rng.integers(0, count, 32)
        losses.append(float(step(paddle.to_tensor(x[chosen]), paddle.to_tensor(y[chosen]))))
        schedule.step()
    model.eval()
    others, truth = corpus(400, rng)
    with paddle.no_grad():
        found = model(paddle.to_tensor(others)).argmax(-1).numpy()
    accuracy = float((found == truth).mean())
    print(f"loss {np.mean(losses[-20:]):.3f}; accuracy on 400 new utterances of {len(WORDS)} words: {accuracy:.3f}")

    def paint(sounds: Any, loss: Any, table: Any) -> None:
        first = [int(np.nonzero(y == i)[0][0]) for i in range(4)]
        sounds.imshow(np.concatenate([x[i, 0] for i in first], 1), origin="lower", aspect="auto", cmap="magma")
        sounds.set(title="   ".join(list(WORDS)[:4]), xlabel="frame", ylabel="mel band")
        curve(loss, losses, log=True)
        confusion(table, truth, found, list(WORDS))

    draw("speech", plots, 3, paint)
    return accuracy


if __name__ == "__main__":
    given = options(__doc__, steps=300)
    main(given.steps, given.plots)
