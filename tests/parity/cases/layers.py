"""Layers, losses and initialisers."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, layer, state
from parity.inputs import given
from parity.inputs import tensor as t

ACTIVATIONS = (
    "ELU", "GELU", "Hardswish", "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "ReLU", "ReLU6", "Sigmoid", "Silu",
    "Softmax", "Softplus", "Softsign", "Swish", "Tanh",
)  # fmt: skip
ACTIVATION_ARGUMENTS = (
    ("ELU", {"alpha": 0.5}), ("GELU", {"approximate": True}), ("LeakyReLU", {"negative_slope": 0.3}),
    ("LogSoftmax", {"axis": 0}), ("Softmax", {"axis": 1}), ("Softplus", {"beta": 2, "threshold": 5}),
)  # fmt: skip


def cases() -> Iterator[Case]:
    for name in ACTIVATIONS:
        yield layer(f"nn.{name}", t(2, 3, low=-4, high=4))
    for name, kwargs in ACTIVATION_ARGUMENTS:
        yield layer(f"nn.{name}", t(2, 3, 2), **kwargs)
    yield from _common()
    yield from _norms()
    yield from _losses()
    yield from _states()


def _states() -> Iterator[Case]:
    yield state("nn.Linear", in_features=3, out_features=4)
    yield state("nn.Linear", in_features=3, out_features=4, bias_attr=False)
    yield state("nn.Embedding", num_embeddings=5, embedding_dim=4)
    yield state("nn.LayerNorm", normalized_shape=[3, 4])
    yield state("nn.Dropout", p=0.1)
    yield state("nn.BatchNorm1D", num_features=3)
    yield state("nn.BatchNorm2D", num_features=3)
    yield state("nn.GroupNorm", num_groups=2, num_channels=4)
    yield state("nn.InstanceNorm2D", num_features=3)
    yield state("nn.Conv1D", in_channels=4, out_channels=6, kernel_size=3)
    yield state("nn.Conv2D", in_channels=4, out_channels=6, kernel_size=3, groups=2)
    yield state("nn.Conv2DTranspose", in_channels=4, out_channels=6, kernel_size=3)
    yield state("nn.MultiHeadAttention", embed_dim=8, num_heads=2)
    yield state("nn.TransformerEncoderLayer", d_model=8, nhead=2, dim_feedforward=16)
    yield state("nn.LSTM", input_size=3, hidden_size=4)
    yield state("nn.GRU", input_size=3, hidden_size=4)
    yield state("nn.PReLU", num_parameters=3)
    yield layer("nn.BatchNorm1D", t(4, 3), num_features=3)
    yield layer("nn.BatchNorm2D", t(2, 3, 4, 4), num_features=3)
    yield layer("nn.BatchNorm2D", t(2, 3, 4, 4), training=False, num_features=3)
    yield layer("nn.GroupNorm", t(2, 4, 3, 3), num_groups=2, num_channels=4)
    yield layer("nn.InstanceNorm2D", t(2, 3, 4, 4), num_features=3)
    yield layer("nn.Conv1D", t(2, 4, 7), in_channels=4, out_channels=6, kernel_size=3, padding=1)
    yield layer("nn.Conv2D", t(2, 4, 6, 5), in_channels=4, out_channels=6, kernel_size=3, stride=2, groups=2)
    yield layer("nn.Conv2DTranspose", t(2, 4, 3, 3), in_channels=4, out_channels=6, kernel_size=3, stride=2)
    yield layer("nn.MaxPool2D", t(2, 3, 6, 6), kernel_size=2)
    yield layer("nn.AvgPool2D", t(2, 3, 6, 6), kernel_size=3, stride=2, padding=1)
    yield layer("nn.AdaptiveAvgPool2D", t(2, 3, 6, 6), output_size=2)
    yield layer("nn.MultiHeadAttention", t(2, 3, 8), training=False, embed_dim=8, num_heads=2)
    yield layer("nn.LSTM", t(2, 3, 3), input_size=3, hidden_size=4)
    yield layer("nn.GRU", t(2, 3, 3), input_size=3, hidden_size=4)
    yield layer("nn.PReLU", t(2, 3, 4), num_parameters=3)
    yield layer("nn.KLDivLoss", t(4, 3), t(4, 3, low=0.1, high=1, grad=False))
    yield layer("nn.SmoothL1Loss", t(4, 3), t(4, 3))
    yield layer("nn.BCELoss", t(4, 3, low=0.1, high=0.9), t(4, 3, low=0, high=1, grad=False))


def _common() -> Iterator[Case]:
    yield layer("nn.Linear", t(2, 3), in_features=3, out_features=4)
    yield layer("nn.Linear", t(2, 5, 3), in_features=3, out_features=4)
    yield layer("nn.Linear", t(2, 3), in_features=3, out_features=4, bias_attr=False)
    yield layer("nn.Embedding", t(2, 3, dtype="int64", low=0, high=5), num_embeddings=5, embedding_dim=4)
    yield layer("nn.Embedding", given([0, 2, 2, 4], "int64"), num_embeddings=5, embedding_dim=4, padding_idx=2)
    yield layer("nn.Dropout", t(2, 3), training=False, p=0.4)
    yield layer("nn.Dropout", t(2, 3), p=0.0)
    yield layer("nn.Dropout", t(2, 3), p=1.0)
    yield layer("nn.Dropout", t(2, 3), training=False, p=0.4, mode="downscale_in_infer")
    yield layer("nn.Flatten", t(2, 3, 4))
    yield layer("nn.Flatten", t(2, 3, 4), start_axis=0, stop_axis=1)
    yield layer("nn.Identity", t(2, 3))


def _norms() -> Iterator[Case]:
    for shape in (4, [4], [3, 4]):
        yield layer("nn.LayerNorm", t(2, 3, 4), normalized_shape=shape)
        yield layer("nn.RMSNorm", t(2, 3, 4), normalized_shape=shape)
    yield layer("nn.LayerNorm", t(2, 4), normalized_shape=4, epsilon=1e-3, weight_attr=False)
    yield layer("nn.LayerNorm", t(2, 4), normalized_shape=4, bias_attr=False)


def _losses() -> Iterator[Case]:
    labels = t(4, dtype="int64", low=0, high=3)
    for reduction in ("mean", "sum", "none"):
        yield layer("nn.CrossEntropyLoss", t(4, 3), labels, reduction=reduction)
        yield layer("nn.MSELoss", t(4, 3), t(4, 3), reduction=reduction)
        yield layer("nn.L1Loss", t(4, 3), t(4, 3), reduction=reduction)
        yield layer("nn.NLLLoss", t(4, 3, low=-3, high=-0.1), labels, reduction=reduction)
        logits, targets = t(4, 3), t(4, 3, low=0, high=1, grad=False)
        yield layer("nn.BCEWithLogitsLoss", logits, targets, reduction=reduction)
    yield layer("nn.CrossEntropyLoss", t(4, 3), given([0, 2, -100, 1], "int64"))
    yield layer("nn.CrossEntropyLoss", t(4, 3), given([0, 2, 1, 1], "int64"), ignore_index=1)
    yield layer("nn.CrossEntropyLoss", t(4, 3), labels, label_smoothing=0.1)
    yield layer("nn.CrossEntropyLoss", t(4, 3), labels, weight=t(3, low=0.1, high=1, grad=False))
    yield layer("nn.CrossEntropyLoss", t(2, 3), given([[0.2, 0.3, 0.5], [0.1, 0.9, 0.0]], grad=False), soft_label=True)
    yield layer("nn.CrossEntropyLoss", t(4, 3, low=0.1, high=1), labels, use_softmax=False)
    yield layer("nn.CrossEntropyLoss", t(2, 3, 4), t(2, 4, dtype="int64", low=0, high=3), axis=1)
    yield layer("nn.CrossEntropyLoss", t(2, 4, 3), t(2, 4, dtype="int64", low=0, high=3))
    yield layer("nn.CrossEntropyLoss", t(4, 3), t(4, 1, dtype="int64", low=0, high=3))
    yield layer("nn.CrossEntropyLoss", t(4, 3), t(4, 1, dtype="int64", low=0, high=3), reduction="none")
    yield layer("nn.NLLLoss", t(4, 3), labels, weight=t(3, low=0.1, high=1, grad=False))
    yield layer("nn.NLLLoss", t(4, 3), given([0, 2, 1, 1], "int64"), ignore_index=1)
    yield layer("nn.NLLLoss", t(2, 3, 4, 2), t(2, 4, 2, dtype="int64", low=0, high=3))
    yield layer("nn.BCEWithLogitsLoss", logits, targets, weight=t(3, low=0.1, high=1, grad=False))
    yield layer("nn.BCEWithLogitsLoss", logits, targets, pos_weight=t(3, low=0.1, high=2, grad=False))
