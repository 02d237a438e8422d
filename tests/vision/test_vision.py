"""Transforms, operators of detection and models give what the wheel's ``paddle.vision`` gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from parity.known_differences import VISION

import argosy

from .model_cases import MODELS, layout, scores
from .operation_cases import answers
from .records import load, sampled

pytest.importorskip("PIL")
RECORDS = load()
OPERATIONS = sorted(name for name in RECORDS if not name.startswith("model."))
TOLERANCE = {"f": 1e-5, "u": 0, "i": 0, "b": 0}
CHAOTIC = 2e-4
"""Of a model's answers: sums in another order, through many layers with weights that are drawn, not trained."""


@pytest.fixture(scope="module")
def ours() -> dict[str, np.ndarray]:
    return answers(argosy)


def agrees(found: np.ndarray, record: Any, tolerance: float | None = None) -> None:
    shape, dtype, elements = record
    assert list(found.shape) == shape
    assert found.dtype.str == dtype
    limit = TOLERANCE[found.dtype.kind] if tolerance is None else tolerance
    largest = float(np.abs(elements.astype(np.float64)).max(initial=0))
    assert np.abs(sampled(found).astype(np.float64) - elements).max(initial=0) <= limit * max(1.0, largest)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_gives_what_the_wheel_gives(ours: dict[str, np.ndarray], name: str) -> None:
    if name not in VISION:
        agrees(ours[name], RECORDS[name])
        return
    with pytest.raises(AssertionError):  # one that agrees is to be taken from the list
        agrees(ours[name], RECORDS[name])


def test_no_operation_was_left_out(ours: dict[str, np.ndarray]) -> None:
    assert sorted(ours) == OPERATIONS


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_the_wheels_parameters_and_answers(name: str) -> None:
    assert layout(argosy, name) == RECORDS[f"model.{name}.layout"]
    for i, found in enumerate(scores(argosy, name)):
        agrees(found, RECORDS[f"model.{name}.{i}"], CHAOTIC)


def test_known_differences_are_operations() -> None:
    assert set(VISION) <= set(OPERATIONS)


def test_trained_weights_are_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match=r"resnet18\(pretrained=True\)"):
        argosy.vision.models.resnet18(pretrained=True)


def test_features_of_vgg_are_made_of_widths():
    """As the function behind the models makes them; anything but widths and "M" is refused."""
    from argosy.vision.models.vgg import make_layers

    features = make_layers([4, "M", 8, 8, "M"], batch_norm=True)
    assert features(argosy.ones([1, 3, 8, 8])).shape == [1, 8, 2, 2]
    assert [type(layer).__name__ for layer in features][:4] == ["Conv2D", "BatchNorm2D", "ReLU", "MaxPool2D"]
    with pytest.raises(ValueError, match=r"make_layers\(\): cfg .* got 'N'"):
        make_layers(["N"])


def test_kinds_of_pictures_by_the_names_that_users_transforms_know():
    from argosy.vision.transforms import functional as F

    array = np.zeros((2, 2, 3), np.uint8)
    assert [F._is_numpy_image(array), F._is_pil_image(array), F._is_tensor_image(array)] == [True, False, False]
    assert F._is_tensor_image(argosy.ones([3, 2, 2]))
