"""Functions and classes around the operators (transforms, detection, samplers, distributions, derivatives, states)
called with one argument spoiled: refused in words for users, or computed. ``test_bad_calls`` has the operators."""

import inspect
import warnings
from functools import partial

import numpy as np
import pytest
from test_bad_calls import complaint

import argosy as paddle

T, D, U = paddle.vision.transforms, paddle.distribution, paddle.nn.utils
detection = paddle.vision.ops
PICTURE = np.arange(6 * 5 * 3, dtype=np.uint8).reshape(6, 5, 3)
WRONG = (None, "text", object(), [], [None, None], {}, -7, 1.5, float("nan"), 10**30, lambda: 0)


def tensor(*shape):
    return paddle.to_tensor(np.linspace(0.1, 0.9, int(np.prod(shape)), dtype=np.float32).reshape(shape))


def boxes(n):
    return paddle.to_tensor(np.array([[i, i, i + 2, i + 3] for i in range(n)], np.float32))


def moving(x):
    x.stop_gradient = False
    return x


def squared():
    x = moving(tensor(1))
    return {"ys": (x * x).sum(), "xs": x}


def scaled():
    return paddle.amp.AmpScaler()


def decoder():
    cell = paddle.nn.GRUCell(4, 4)
    return paddle.nn.BeamSearchDecoder(cell, 0, 1, 2, paddle.nn.Embedding(4, 4), paddle.nn.Linear(4, 4))


CALLS = {
    "resize": (T.resize, lambda: {"img": PICTURE, "size": 4, "interpolation": "nearest"}),
    "pad": (T.pad, lambda: {"img": PICTURE, "padding": 1, "fill": 0, "padding_mode": "constant"}),
    "crop": (T.crop, lambda: {"img": PICTURE, "top": 1, "left": 1, "height": 2, "width": 2}),
    "center_crop": (T.center_crop, lambda: {"img": PICTURE, "output_size": 3}),
    "rotate": (T.rotate, lambda: {"img": PICTURE, "angle": 30.0, "center": [2, 2], "fill": 0}),
    "affine": (T.affine, lambda: {
        "img": PICTURE, "angle": 3.0, "translate": [1, 1], "scale": 1.5, "shear": [1.0, 2.0],
    }),
    "adjust_hue": (T.adjust_hue, lambda: {"img": PICTURE, "hue_factor": 0.2}),
    "normalize": (T.normalize, lambda: {"img": PICTURE, "mean": [1.0] * 3, "std": [2.0] * 3, "data_format": "HWC"}),
    "erase": (T.erase, lambda: {"img": PICTURE, "i": 1, "j": 1, "h": 2, "w": 2, "v": 0}),
    "Resize": (T.Resize, lambda: {"size": 4, "interpolation": "nearest", "keys": None}),
    "Pad": (T.Pad, lambda: {"padding": 1, "fill": 0, "padding_mode": "constant"}),
    "ColorJitter": (T.ColorJitter, lambda: {"brightness": 0.2, "contrast": 0.2, "saturation": 0.2, "hue": 0.1}),
    "RandomAffine": (T.RandomAffine, lambda: {"degrees": 3, "translate": [0.1, 0.1], "scale": [0.5, 1.0], "shear": 3}),
    "RandomErasing": (T.RandomErasing, lambda: {"prob": 0.5, "scale": [0.1, 0.2], "ratio": [0.3, 3.3], "value": 0}),
    "RandomResizedCrop": (T.RandomResizedCrop, lambda: {"size": 3, "scale": [0.1, 1.0], "ratio": [0.5, 2.0]}),
    "nms": (detection.nms, lambda: {"boxes": boxes(4), "iou_threshold": 0.3, "scores": tensor(4), "top_k": 2}),
    "box_coder": (detection.box_coder, lambda: {
        "prior_box": boxes(4), "prior_box_var": [0.1, 0.1, 0.2, 0.2], "target_box": boxes(4), "axis": 0,
    }),
    "prior_box": (detection.prior_box, lambda: {
        "input": tensor(1, 2, 3, 3), "image": tensor(1, 3, 9, 9), "min_sizes": [4.0], "aspect_ratios": [1.0],
        "clip": True,
    }),
    "roi_align": (detection.roi_align, lambda: {
        "x": tensor(1, 2, 5, 5), "boxes": boxes(2), "boxes_num": paddle.to_tensor([2], dtype="int32"), "output_size": 2,
    }),
    "deform_conv2d": (detection.deform_conv2d, lambda: {
        "x": tensor(1, 2, 5, 5), "offset": tensor(1, 18, 3, 3), "weight": tensor(2, 2, 3, 3), "stride": 1, "padding": 0,
    }),
    "matrix_nms": (detection.matrix_nms, lambda: {
        "bboxes": boxes(3).unsqueeze(0), "scores": tensor(1, 2, 3), "score_threshold": 0.1, "post_threshold": 0.0,
        "nms_top_k": 2, "keep_top_k": 2,
    }),
    "Normal": (D.Normal, lambda: {"loc": 0.0, "scale": 1.0}),
    "Normal.sample": (lambda shape: D.Normal(0.0, 1.0).sample(shape), lambda: {"shape": [2]}),
    "Independent": (D.Independent, lambda: {"base": D.Normal(tensor(2), tensor(2)), "reinterpreted_batch_rank": 1}),
    "RandomSampler": (paddle.io.RandomSampler, lambda: {"data_source": [1, 2], "replacement": True, "num_samples": 2}),
    "BatchSampler": (paddle.io.BatchSampler, lambda: {"dataset": [1, 2, 3], "shuffle": False, "batch_size": 2}),
    "clip_grad_norm_": (U.clip_grad_norm_, lambda: {
        "parameters": [moving(tensor(2))], "max_norm": 1.0, "norm_type": 2.0,
    }),
    "weight_norm": (U.weight_norm, lambda: {"layer": paddle.nn.Linear(2, 2), "name": "weight", "dim": 0}),
    "set_incr_ratio": (lambda ratio: scaled().set_incr_ratio(ratio), lambda: {"ratio": 2.0}),
    "load_state_dict": (lambda state: paddle.nn.Linear(1, 1).load_state_dict(state), lambda: {"state": {}}),
    "dynamic_decode": (partial(paddle.nn.dynamic_decode, max_step_num=3), lambda: {
        "decoder": decoder(), "inits": decoder().cell.get_initial_states(tensor(2, 4)),
    }),
    "Assign": (paddle.nn.initializer.Assign, lambda: {"value": [1.0, 2.0]}),
    "seed": (paddle.seed, lambda: {"seed": 3}),
    "hessian": (paddle.autograd.hessian, squared),
    "grad": (paddle.grad, lambda: dict(zip(("outputs", "inputs"), squared().values(), strict=True))),
    "InputSpec": (paddle.static.InputSpec, lambda: {"shape": [None, 2], "dtype": "float32"}),
    "Model": (paddle.Model, lambda: {"network": paddle.nn.Linear(2, 2), "inputs": None, "labels": None}),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_what_is_refused_is_refused_in_words_for_users(name):
    function, make = CALLS[name]
    bad = []
    for argument in make():
        for wrong in WRONG:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    function(**{**make(), argument: wrong})
                except Exception as error:  # noqa: BLE001 (which is the question)
                    bad += [f"{argument}={wrong!r}: {said}"] if (said := complaint(error)) else []
    assert bad == []


LOSSES = {
    "MSELoss", "L1Loss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "SmoothL1Loss", "SoftMarginLoss",
    "MarginRankingLoss", "HingeEmbeddingLoss", "CosineEmbeddingLoss", "TripletMarginLoss", "GaussianNLLLoss",
    "PoissonNLLLoss", "MultiMarginLoss", "MultiLabelSoftMarginLoss", "MultiLabelMarginLoss",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_losses_refuse_unknown_reductions_when_they_are_made(name):
    make = getattr(paddle.nn, name)
    assert "reduction" in inspect.signature(make).parameters
    with pytest.raises(ValueError, match=r"'reduction' should be one of mean, sum, none.*got 'average'"):
        make(reduction="average")


@pytest.mark.parametrize(
    "name",
    [
        "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "smooth_l1_loss", "soft_margin_loss",
        "log_loss", "sigmoid_focal_loss", "poisson_nll_loss",
    ],
)  # fmt: skip
def test_losses_do_not_broadcast_labels(name):
    """[N, 1] and [N] would be [N, N]."""
    with pytest.raises(
        ValueError, match=r"argument 'label' should be of the shape of '(input|logit)', \[4, 1\], got \[4\]"
    ):
        getattr(paddle.nn.functional, name)(tensor(4, 1), tensor(4))
