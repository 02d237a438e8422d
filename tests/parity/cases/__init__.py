"""The cases by family: each module has ``cases()``, which yields them."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from parity.case import Case, unique

__all__ = ["FAMILIES", "UNCOVERED", "cases_of"]

FAMILIES = (
    "elementary",
    "forms",
    "compat",
    "activation",
    "arithmetic",
    "comparison",
    "creation",
    "reduction",
    "manipulation",
    "indexing",
    "linalg",
    "nn",
    "convolution",
    "geometry",
    "normalization",
    "losses",
    "fourier",
    "modules",
    "vision",
    "random",
    "narrow",
    "methods",
    "further",
    "layers",
    "optimizers",
    "rare",
    "recurrent",
    "parameters",
    "alignment",
    "sampling",
    "members",
    "settings",
    "shown",
    "distributions",
    "probability",
    "signal",
    "geometric",
    "sparse",
    "text",
    "audio",
    "fused",
)

UNCOVERED = {
    **dict.fromkeys(
        ("llm_int8_linear", "weight_dequantize", "weight_only_linear", "weight_quantize"),
        "the wheel has no kernel of it for CPUs",
    ),
    **dict.fromkeys(("k0", "k0e", "k1", "k1e", "zeta"), "the wheel has no such function; tests hold it against mpmath"),
    "gather_mm": "the wheel has no such function; tests hold it against products one by one",
    "empty": "its contents are whatever the memory held",
    "empty_like": "its contents are whatever the memory held",
    "fft_c2c": "the wheel shows it through paddle.fft",
    "fft_c2r": "the wheel shows it through paddle.fft",
    "fft_r2c": "the wheel shows it through paddle.fft",
    "ctc_paths": "the wheel shows it as nn.functional.ctc_loss",
    "fractional_windows": "the wheel shows it as nn.functional.fractional_max_pool2d",
    "rnnt_paths": "the wheel shows it as nn.functional.rnnt_loss",
    "unpool": "the wheel shows it as nn.functional.max_unpool2d",
    "gru": "the wheel shows it as nn.GRU",
    "lstm": "the wheel shows it as nn.LSTM",
    "simple_rnn": "the wheel shows it as nn.SimpleRNN",
    "im2col": "the wheel shows it as nn.functional.unfold",
    "least_squares": "the wheel shows it as linalg.lstsq",
    "lu_factor": "the wheel shows it as linalg.lu",
    "permutation_of": "the wheel shows it as linalg.lu_unpack",
    "attention_with_dropout": "the wheel shows it as nn.functional.scaled_dot_product_attention",
    "overwritten_view": "what writing through a view is in a program; tests hold it against eager execution",
    "sum_pool2d": "norms of windows are made of it: nn.functional.lp_pool2d",
    "paged_attention": "the wheel has no such operator on CPU",
}
"""Operators without cases, each with the reason."""


@cache
def cases_of(family: str) -> list[Case]:
    """The cases of a family, in order."""
    return unique(import_module(f"parity.cases.{family}").cases())
