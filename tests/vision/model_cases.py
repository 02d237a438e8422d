"""Models with weights drawn from a fixed seed: the same call in any framework with Paddle's names."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

MODELS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "LeNet": ({}, (2, 1, 28, 28)),
    "alexnet": ({"num_classes": 0}, (1, 3, 224, 224)),
    "vgg11": ({"num_classes": 0, "batch_norm": True}, (1, 3, 64, 64)),
    "vgg13": ({"num_classes": 0, "with_pool": False}, (1, 3, 64, 64)),
    "resnet18": ({}, (2, 3, 64, 64)),
    "resnet50": ({"num_classes": 10}, (1, 3, 64, 64)),
    "resnext50_32x4d": ({"num_classes": 10}, (1, 3, 64, 64)),
    "mobilenet_v1": ({"scale": 0.5}, (1, 3, 64, 64)),
    "mobilenet_v2": ({"scale": 0.35}, (1, 3, 64, 64)),
    "mobilenet_v3_small": ({}, (1, 3, 64, 64)),
    "mobilenet_v3_large": ({"scale": 0.5}, (1, 3, 64, 64)),
    "densenet121": ({"num_classes": 10}, (1, 3, 64, 64)),
    "squeezenet1_0": ({"num_classes": 10}, (1, 3, 96, 96)),
    "squeezenet1_1": ({"num_classes": 10}, (1, 3, 96, 96)),
    "googlenet": ({"num_classes": 10}, (1, 3, 224, 224)),
    "inception_v3": ({"num_classes": 10}, (1, 3, 96, 96)),
    "shufflenet_v2_x0_25": ({}, (1, 3, 64, 64)),
    "shufflenet_v2_swish": ({"num_classes": 10}, (1, 3, 64, 64)),
}


def weights(state: dict[str, Any]) -> dict[str, np.ndarray]:
    """Values for the entries of a state dict, which depend on names and shapes only."""
    made = {}
    for name, entry in state.items():
        shape = tuple(entry.shape)
        drawn = np.random.default_rng(zlib.crc32(name.encode())).random(shape, np.float32)
        if len(shape) > 1:
            inputs = shape[0] if len(shape) == 2 else int(np.prod(shape[1:]))
            made[name] = (drawn - np.float32(0.5)) * np.float32(np.sqrt(24 / inputs))
        else:
            made[name] = drawn + np.float32(0.5 if name.endswith(("variance", "weight")) else -0.5)
    return made


def scores(paddle: Any, name: str) -> list[np.ndarray]:
    """What the model ``name`` answers in evaluation."""
    options, shape = MODELS[name]
    model = getattr(paddle.vision.models, name)(**options)
    model.set_state_dict({k: paddle.to_tensor(v) for k, v in weights(model.state_dict()).items()})
    model.eval()
    with paddle.no_grad():
        x = np.random.default_rng(0).random(shape, np.float32)
        answers = model(paddle.to_tensor(x))
    return [a.numpy() for a in (answers if isinstance(answers, (list, tuple)) else [answers])]


def layout(paddle: Any, name: str) -> str:
    """A number for the names and shapes of all parameters and statistics, in their order."""
    options = {"num_classes": 0} if name.startswith("vgg") else {}
    entries = getattr(paddle.vision.models, name)(**options).state_dict().items()
    text = ";".join(f"{key}{[int(n) for n in value.shape]}" for key, value in entries)
    return f"{len(text)}-{zlib.crc32(text.encode()):08x}"
