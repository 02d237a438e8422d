"""What layers say about their settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parity.case import Case, script

LAYERS: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
    *((f"AdaptiveAvgPool{n}D", (3,), {}) for n in (1, 2, 3)),
    *((f"AdaptiveMaxPool{n}D", (3,), {"return_mask": True}) for n in (1, 2, 3)),
    *((f"{kind}Pool{n}D", (3,), {"stride": 2, "padding": 1}) for kind in ("Avg", "Max") for n in (1, 2, 3)),
    *((f"MaxUnPool{n}D", (2,), {}) for n in (1, 2, 3)),
    *((f"FractionalMaxPool{n}D", (2,), {"kernel_size": 2}) for n in (2, 3)),
    *((f"LPPool{n}D", (2, 3), {}) for n in (1, 2)),
    *((f"Conv{n}D", (3, 5, 3), {}) for n in (1, 2, 3)),
    ("Conv2D", (4, 6, [3, 1]), {"stride": 2, "padding": 1, "dilation": 2, "groups": 2, "padding_mode": "reflect"}),
    ("Conv2D", (4, 6, 3), {"padding": "same", "data_format": "NHWC"}),
    *((f"Conv{n}DTranspose", (3, 5, 3), {}) for n in (1, 2, 3)),
    ("Conv2DTranspose", (4, 6, 3), {"stride": 2, "output_padding": 1, "groups": 2}),
    ("Dropout", (0.3,), {}), ("Dropout2D", (0.3,), {}), ("Dropout3D", (0.3,), {}), ("AlphaDropout", (0.3,), {}),
    ("FeatureAlphaDropout", (0.3,), {}), ("Dropout", (0.3,), {"axis": 1, "mode": "downscale_in_infer"}),
    ("Linear", (2, 3), {}), ("Linear", (2, 3), {"bias_attr": False}), ("Bilinear", (2, 3, 4), {}), ("Identity", (), {}),
    ("Embedding", (5, 3), {}), ("Embedding", (5, 3), {"padding_idx": 2, "sparse": False}), ("Flatten", (1, 2), {}),
    ("Unflatten", (1, [2, 3]), {}), ("CosineSimilarity", (0, 1e-6), {}), ("PairwiseDistance", (1.5,), {}),
    ("PairwiseDistance", (2.0, 1e-3, True), {}), ("ChannelShuffle", (3,), {}), ("PixelShuffle", (2,), {}),
    ("PixelUnshuffle", (2,), {}), ("Fold", ([4, 4], 2), {}), ("Unfold", ([3, 2],), {"strides": 2}),
    ("Upsample", ([6, 7],), {"mode": "bilinear"}), ("Upsample", (), {"scale_factor": 2.0}),
    ("UpsamplingNearest2D", ([6, 7],), {}), ("UpsamplingBilinear2D", (), {"scale_factor": [2.0, 3.0]}),
    *((f"BatchNorm{n}D", (3,), {}) for n in (1, 2, 3)), ("BatchNorm2D", (3, 0.8, 1e-3), {"data_format": "NHWC"}),
    *((f"InstanceNorm{n}D", (3,), {}) for n in (1, 2, 3)), ("GroupNorm", (3, 6), {}), ("LayerNorm", ([3, 4],), {}),
    ("LayerNorm", (4,), {"epsilon": 1e-3}), ("LocalResponseNorm", (5,), {}), ("SyncBatchNorm", (3,), {}),
    ("SpectralNorm", ([3, 4],), {}), ("CELU", (0.5,), {}), ("ELU", (0.5,), {}), ("GELU", (), {}), ("GELU", (True,), {}),
    ("GLU", (1,), {}), ("Hardshrink", (0.3,), {}), ("Hardsigmoid", (), {}), ("Hardswish", (), {}),
    ("Hardtanh", (-0.5, 2.0), {}), ("LeakyReLU", (0.2,), {}), ("LogSigmoid", (), {}), ("LogSoftmax", (1,), {}),
    ("Maxout", (2,), {}), ("Mish", (), {}), ("PReLU", (3, 0.3), {}), ("RReLU", (0.1, 0.3), {}), ("ReLU", (), {}),
    ("ReLU6", (), {}), ("SELU", (), {}), ("Sigmoid", (), {}), ("Silu", (), {}), ("Softmax", (1,), {}),
    ("Softmax2D", (), {}), ("Softplus", (2, 15), {}), ("Softshrink", (0.3,), {}), ("Softsign", (), {}),
    ("Swish", (), {}), ("Tanh", (), {}), ("Tanhshrink", (), {}), ("ThresholdedReLU", (0.5, 0.1), {}),
    ("Pad1D", ([1, 2],), {"mode": "reflect"}), ("Pad2D", (1,), {"value": 0.5}), ("ZeroPad2D", (1,), {}),
    ("Pad3D", (1,), {}), ("SimpleRNNCell", (3, 4), {}), ("SimpleRNNCell", (3, 4), {"activation": "relu"}),
    ("GRUCell", (3, 4), {}), ("LSTMCell", (3, 4), {}), ("LSTMCell", (3, 4), {"proj_size": 2}),
    ("SimpleRNN", (3, 4, 2), {}), ("GRU", (3, 4), {"time_major": True}),
    ("LSTM", (3, 4), {"direction": "bidirect", "dropout": 0.3}), ("Layer", (), {}), ("Sequential", (), {}),
)  # fmt: skip


def cases() -> Iterator[Case]:
    for name, args, kwargs in LAYERS:
        yield script("shown", name, *args, **kwargs)
