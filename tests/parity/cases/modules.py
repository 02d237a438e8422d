"""Layers and losses beyond the common ones: shrinkage, padding, windows, channel norms, transposed convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parity.case import Case, call, layer, state
from parity.inputs import given
from parity.inputs import tensor as t

F = "nn.functional."

ACTIVATIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("CELU", {"alpha": 0.5}), ("GLU", {"axis": 1}), ("Hardshrink", {"threshold": 0.8}), ("Hardsigmoid", {}),
    ("Hardtanh", {"min": -0.5, "max": 2.0}), ("Maxout", {"groups": 2}), ("SELU", {}), ("Softmax2D", {}),
    ("Softshrink", {"threshold": 0.7}), ("Tanhshrink", {}), ("ThresholdedReLU", {"threshold": 0.5, "value": 0.1}),
)  # fmt: skip


def cases() -> Iterator[Case]:
    for name, kwargs in ACTIVATIONS:
        yield layer(f"nn.{name}", t(2, 4, 3, 2, low=-3, high=3), **kwargs)
    yield layer("nn.RReLU", t(2, 4, low=-3, high=3), training=False, lower=0.1, upper=0.3)
    yield from _noise()
    yield from _padding()
    yield from _windows()
    yield from _geometry()
    yield from _norms()
    yield from _transposed()
    yield from _losses()
    yield from _recurrent()
    yield from _attention()


def _recurrent() -> Iterator[Case]:
    sizes: dict[str, Any] = {"input_size": 3, "hidden_size": 4}
    for name in ("SimpleRNNCell", "GRUCell"):
        yield layer(f"nn.{name}", t(2, 3), t(2, 4), **sizes)
        yield layer(f"nn.{name}", t(2, 3), **sizes, bias_ih_attr=False)
        yield state(f"nn.{name}", **sizes)
    yield layer("nn.SimpleRNNCell", t(2, 3), t(2, 4), **sizes, activation="relu")
    yield layer("nn.LSTMCell", t(2, 3), (t(2, 4), t(2, 4)), **sizes)
    yield layer("nn.LSTMCell", t(2, 3), (t(2, 2), t(2, 4)), **sizes, proj_size=2)
    yield state("nn.LSTMCell", **sizes, proj_size=2)


def _attention() -> Iterator[Case]:
    keep = given([[True, False, False], [True, True, False], [True, True, True]], "bool")
    sizes: dict[str, Any] = {"embed_dim": 8, "num_heads": 2}
    yield layer("nn.MultiHeadAttention", t(2, 3, 8), t(2, 4, 6), t(2, 4, 5), **sizes, kdim=6, vdim=5, need_weights=True)
    yield layer("nn.MultiHeadAttention", t(2, 3, 8), t(2, 3, 8), t(2, 3, 8), keep, **sizes)
    block: dict[str, Any] = {"d_model": 8, "nhead": 2, "dim_feedforward": 16, "dropout": 0.0}
    for before in (False, True):
        yield layer("nn.TransformerEncoderLayer", t(2, 3, 8), keep, **block, normalize_before=before)
        yield layer("nn.TransformerDecoderLayer", t(2, 3, 8), t(2, 4, 8), **block, normalize_before=before)
    stack = {"num_encoder_layers": 2, "num_decoder_layers": 1}
    yield layer("nn.Transformer", t(2, 4, 8), t(2, 3, 8), None, keep, **block, **stack)
    yield state("nn.Transformer", **block, **stack, normalize_before=True)


def _noise() -> Iterator[Case]:
    for name in ("Dropout2D", "AlphaDropout", "FeatureAlphaDropout"):
        yield layer(f"nn.{name}", t(2, 3, 2, 2), training=False, p=0.4)
        yield layer(f"nn.{name}", t(2, 3, 2, 2), p=0.0)
    yield layer("nn.Dropout3D", t(2, 3, 2, 2, 2), training=False, p=0.4)


def _padding() -> Iterator[Case]:
    inputs = {1: t(2, 3, 5), 2: t(2, 3, 4, 5), 3: t(1, 2, 3, 4, 5)}
    paddings = {1: [1, 2], 2: [1, 2, 0, 3], 3: [1, 2, 0, 1, 2, 1]}
    for rank, x in inputs.items():
        for kind in ("Zero", "Replication", "Reflection", "Circular"):
            yield layer(f"nn.{kind}Pad{rank}D", x, padding=1)
        yield layer(f"nn.ConstantPad{rank}D", x, padding=paddings[rank], value=0.5)
        yield layer(f"nn.Pad{rank}D", x, padding=paddings[rank], mode="replicate")


def _windows() -> Iterator[Case]:
    yield layer("nn.MaxPool1D", t(2, 3, 8), kernel_size=3, stride=2, padding=1)
    yield layer("nn.MaxPool1D", t(2, 3, 8), kernel_size=2, return_mask=True)
    yield layer("nn.MaxPool3D", t(2, 2, 4, 4, 6), kernel_size=2)
    yield layer("nn.AvgPool1D", t(2, 3, 8), kernel_size=3, stride=2, padding=1)
    yield layer("nn.AvgPool1D", t(2, 3, 8), kernel_size=3, padding=1, exclusive=False)
    yield layer("nn.AvgPool3D", t(2, 2, 4, 4, 6), kernel_size=2, stride=2)
    yield layer("nn.AdaptiveAvgPool1D", t(2, 3, 7), output_size=3)
    yield layer("nn.AdaptiveAvgPool3D", t(2, 2, 4, 5, 6), output_size=[2, None, 3])
    yield layer("nn.AdaptiveMaxPool1D", t(2, 3, 7), output_size=3)
    yield layer("nn.AdaptiveMaxPool2D", t(2, 3, 7, 5), output_size=[3, 2], return_mask=True)
    yield layer("nn.AdaptiveMaxPool3D", t(2, 2, 4, 5, 6), output_size=2)
    yield layer("nn.LPPool1D", t(2, 3, 8, low=0.1), norm_type=3, kernel_size=3, stride=2)
    yield layer("nn.LPPool2D", t(2, 3, 6, 7, low=0.1), norm_type=2, kernel_size=[3, 2])


def _geometry() -> Iterator[Case]:
    yield layer("nn.Upsample", t(2, 3, 4, 4), scale_factor=2)
    yield layer("nn.Upsample", t(2, 3, 4, 4), size=[6, 7], mode="bilinear", align_corners=True)
    yield layer("nn.UpsamplingNearest2D", t(2, 3, 4, 4), size=[8, 8])
    yield layer("nn.UpsamplingBilinear2D", t(2, 3, 4, 4), scale_factor=2)
    yield layer("nn.PixelShuffle", t(2, 8, 3, 3), upscale_factor=2)
    yield layer("nn.PixelUnshuffle", t(2, 2, 4, 6), downscale_factor=2)
    yield layer("nn.ChannelShuffle", t(2, 6, 3, 3), groups=3)
    yield layer("nn.Unfold", t(2, 3, 6, 7), kernel_sizes=[3, 2], strides=2, paddings=1)
    yield layer("nn.Fold", t(2, 12, 9), output_sizes=[4, 4], kernel_sizes=2)
    yield layer("nn.Fold", t(2, 18, 16), output_sizes=[8, 7], kernel_sizes=3, strides=2, paddings=1)
    yield layer("nn.Fold", t(2, 8, 12), output_sizes=[5, 6], kernel_sizes=2, dilations=[2, 3], paddings=[1, 0, 0, 1])
    yield layer("nn.Unflatten", t(2, 12, 3), axis=1, shape=[3, 4])
    yield layer("nn.CosineSimilarity", t(3, 4), t(3, 4), axis=0)
    yield layer("nn.PairwiseDistance", t(3, 4), t(3, 4), p=1.5, keepdim=True)
    yield layer("nn.Bilinear", t(3, 4), t(3, 5), in1_features=4, in2_features=5, out_features=2)
    yield state("nn.Bilinear", in1_features=4, in2_features=5, out_features=2)


def _norms() -> Iterator[Case]:
    yield layer("nn.GroupNorm", t(2, 6, 3, 3), num_groups=3, num_channels=6, epsilon=1e-3)
    yield layer("nn.InstanceNorm1D", t(2, 3, 5), num_features=3)
    yield layer("nn.InstanceNorm2D", t(2, 3, 4, 4), num_features=3, weight_attr=False, bias_attr=False)
    yield layer("nn.InstanceNorm3D", t(2, 3, 2, 3, 4), num_features=3)
    yield layer("nn.LocalResponseNorm", t(2, 5, 3, 3), size=3, alpha=0.1)
    yield layer("nn.LocalResponseNorm", t(2, 5, 3), size=4, alpha=0.1, data_format="NCL")
    yield state("nn.SpectralNorm", weight_shape=[3, 4, 2], dim=1)


def _transposed() -> Iterator[Case]:
    sizes: dict[str, Any] = {"in_channels": 4, "out_channels": 6, "kernel_size": 3}
    yield layer("nn.Conv1DTranspose", t(2, 4, 5), **sizes, stride=2, padding=1, output_padding=1)
    yield layer("nn.Conv1DTranspose", t(2, 4, 5), **sizes, groups=2, dilation=2)
    yield layer("nn.Conv2DTranspose", t(2, 4, 3, 4), **sizes, stride=2, padding=1, output_padding=1, groups=2)
    yield layer("nn.Conv3DTranspose", t(1, 4, 2, 3, 2), **sizes, bias_attr=False)
    yield state("nn.Conv1DTranspose", **sizes, groups=2)


def _losses() -> Iterator[Case]:
    signs = given([[1, -1, 1], [-1, -1, 1]], "float32", grad=False)
    for reduction in ("mean", "sum", "none"):
        yield layer("nn.HingeEmbeddingLoss", t(2, 3), signs, reduction=reduction)
        yield layer("nn.SoftMarginLoss", t(2, 3), signs, reduction=reduction)
        yield layer("nn.MarginRankingLoss", t(2, 3), t(2, 3), signs, margin=0.3, reduction=reduction)
        yield layer("nn.TripletMarginLoss", t(4, 3), t(4, 3), t(4, 3), reduction=reduction)
        yield layer("nn.MultiLabelSoftMarginLoss", t(2, 3), t(2, 3, low=0, high=1, grad=False), reduction=reduction)
        yield layer("nn.PoissonNLLLoss", t(2, 3), t(2, 3, low=0, high=4, grad=False), reduction=reduction)
    yield layer("nn.SmoothL1Loss", t(4, 3, low=-3, high=3), t(4, 3), delta=0.5, is_huber=False)
    yield layer("nn.KLDivLoss", t(4, 3), t(4, 3, grad=False), reduction="batchmean", log_target=True)
    yield layer("nn.BCELoss", t(4, 3, low=0.1, high=0.9), t(4, 3, low=0, high=1, grad=False), reduction="sum")
    yield layer("nn.TripletMarginLoss", t(4, 3), t(4, 3), t(4, 3), margin=0.5, p=1.5, swap=True)
    yield layer("nn.TripletMarginWithDistanceLoss", t(4, 3), t(4, 3), t(4, 3), swap=True)
    yield layer("nn.CosineEmbeddingLoss", t(3, 4), t(3, 4), given([1, -1, -1], "int64"), margin=0.1)
    yield layer("nn.PoissonNLLLoss", t(2, 3, low=0.1, high=2), t(2, 3, low=0.5, high=4, grad=False), log_input=False)
    yield layer("nn.PoissonNLLLoss", t(2, 3), t(2, 3, low=0.5, high=4, grad=False), full=True)
    yield layer("nn.GaussianNLLLoss", t(4, 3), t(4, 3), t(4, 3, low=0.1, high=2), full=True)
    yield layer("nn.GaussianNLLLoss", t(4, 3), t(4, 3), t(4, 1, low=0.1, high=2))
    yield layer("nn.MultiMarginLoss", t(4, 3), t(4, dtype="int64", low=0, high=3))
    weights = t(3, low=0.1, high=1, grad=False)
    yield layer("nn.MultiMarginLoss", t(4, 3), t(4, dtype="int64", low=0, high=3), p=2, margin=0.5, weight=weights)
    yield layer("nn.MultiLabelMarginLoss", t(2, 4), given([[2, 0, -1, 1], [1, -1, -1, -1]], "int64"))
    yield call(F + "dice_loss", t(4, 3, low=0.1, high=1), t(4, 1, dtype="int64", low=0, high=3))
    yield call(F + "npair_loss", t(4, 3), t(4, 3), given([0, 1, 0, 2], "float32", grad=False))
