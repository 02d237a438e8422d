"""Transforms of arrays and tensors agree with those of pictures; random ones keep within their bounds."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.vision import transforms as T

from .operation_cases import picture

Image = pytest.importorskip("PIL.Image")


@pytest.mark.parametrize(
    "transform",
    [
        lambda img: T.pad(img, (1, 2, 3, 4), (7, 8, 9)),
        lambda img: T.pad(img, 2, padding_mode="reflect"),
        lambda img: T.center_crop(img, 9),
        lambda img: T.affine(img, 30, [2, -3], 0.9, [5, 10], fill=(1, 2, 3)),
        lambda img: T.rotate(img, 33),
        lambda img: T.rotate(img, 33, expand=True),
        lambda img: T.perspective(img, [[0, 0], [29, 0], [29, 20], [0, 20]], [[2, 3], [27, 1], [25, 18], [4, 19]]),
        T.vflip,
    ],
)
def test_arrays_and_pictures_agree(transform: Any) -> None:
    expected = np.asarray(transform(Image.fromarray(picture())))
    found = transform(picture())
    assert found.shape == expected.shape
    assert (found != expected).any(-1).mean() < 0.01  # a pixel on an edge between two may fall on either side
    tensor = transform(argosy.to_tensor(picture().transpose(2, 0, 1)))
    np.testing.assert_array_equal(tensor.numpy().transpose(1, 2, 0), found)


@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation", "hue"])
def test_colours_of_arrays_and_pictures_are_near(name: str) -> None:
    from argosy.vision.transforms import functional

    adjust = getattr(functional, f"adjust_{name}")
    expected = np.asarray(adjust(Image.fromarray(picture()), 0.3)).astype(int)
    assert np.abs(adjust(picture(), 0.3).astype(int) - expected).max() <= (12 if name == "hue" else 2)


def test_random_transforms_follow_the_seed_and_keep_their_size() -> None:
    steps = T.Compose(
        [
            T.RandomResizedCrop(16), T.RandomCrop(12, padding=2), T.RandomHorizontalFlip(), T.RandomVerticalFlip(),
            T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandomRotation(20), T.RandomAffine(10, (0.1, 0.1), (0.8, 1.2), 5),
            T.RandomPerspective(1.0), T.ToTensor(), T.RandomErasing(1.0, value=0.5),
        ]
    )  # fmt: skip
    drawn = []
    for seed in (1, 1, 2):
        random.seed(seed)
        drawn.append(steps(Image.fromarray(picture())).numpy())
    assert drawn[0].shape == (3, 12, 12)
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()


def test_keys_say_what_is_transformed() -> None:
    class Both(T.BaseTransform):
        def _apply_image(self, image: Any) -> Any:
            return image + 1

        def _apply_mask(self, mask: Any) -> Any:
            return mask * 2

    assert Both(keys=("image", "mask"))((1, 2, "name")) == (2, 4, "name")
    with pytest.raises(NotImplementedError, match="_apply_points"):
        Both(keys=("points",))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: T.Pad((1, 2, 3)), "padding should be"),
        (lambda: T.RandomHorizontalFlip(1.5), "prob should be"),
        (lambda: T.adjust_hue(picture(), 0.7), "hue_factor"),
        (lambda: T.resize(picture(), (0, 3)), "size should be positive"),
        (lambda: T.RandomCrop(100)(picture()), "larger than the picture"),
        (lambda: T.resize(picture(), 5, "cosine"), "interpolation"),
        (lambda: T.BrightnessTransform(-1), "brightness should not be negative"),
        (lambda: T.resize(picture(), "a"), "size should be a number or a pair"),
        (lambda: T.Normalize([0.0, 0.0], [1.0, 1.0])(np.zeros((3, 4, 4))), "mean should hold a number for each of 3"),
    ],
)
def test_wrong_arguments_are_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_no_picture_is_refused() -> None:
    with pytest.raises(TypeError, match="img should be a picture"):
        T.hflip("picture.png")
