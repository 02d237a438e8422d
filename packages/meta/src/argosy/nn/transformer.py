"""Encoders and decoders of attention and feed-forward layers (Vaswani et al., 2017)."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from argosy.argument_checks import TensorLike
from argosy.framework.creation import to_tensor
from argosy.framework.param_attr import ParamAttr
from argosy.nn import functional as F
from argosy.nn.attention import MultiHeadAttention
from argosy.nn.common import Linear
from argosy.nn.container import LayerList
from argosy.nn.dropout import Dropout
from argosy.nn.layer import Layer
from argosy.nn.norm import LayerNorm
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip


def _convert_param_attr_to_list(param_attr: Any, n: int) -> list[Any]:
    """One attribute for each of ``n`` parts of a layer: those of a list, or copies of one, with ``_0``, ``_1`` ... at
    its name if it has one; False where no parameter is wanted.

    Raises ValueError for a list of another length.
    """
    if isinstance(param_attr, (list, tuple)):
        if len(param_attr) != n:
            raise ValueError(f"a layer of {n} parts wants {n} parameter attributes, got {len(param_attr)}")
        return [ParamAttr._to_attr(attr) for attr in param_attr]
    if param_attr is False:
        return [False] * n
    copies = [copy.copy(ParamAttr._to_attr(param_attr)) for _ in range(n)]
    for place, attr in enumerate(copies):
        attr.name = attr.name and f"{attr.name}_{place}"
    return copies


class _Block(Layer):
    """What encoder and decoder layers share: a feed-forward part, and residual connections around every part."""

    _config: dict[str, Any]

    def _build(self, config: dict[str, Any], weights: list[Any], biases: list[Any]) -> None:
        self._config = config
        width, hidden, epsilon = config["d_model"], config["dim_feedforward"], config["layer_norm_eps"]
        dropout, act_dropout = config["dropout"], config["act_dropout"]
        if min(width, config["nhead"], hidden) <= 0:
            raise ValueError(f"{type(self).__name__}: d_model, nhead and dim_feedforward must be positive")
        self.normalize_before = config["normalize_before"]
        self.linear1 = Linear(width, hidden, weights[-1], biases[-1])
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout, mode="upscale_in_train")
        self.linear2 = Linear(hidden, width, weights[-1], biases[-1])
        for place in range(1, len(weights) + 1):
            setattr(self, f"norm{place}", LayerNorm(width, epsilon=epsilon))
        for place in range(1, len(weights) + 1):
            setattr(self, f"dropout{place}", Dropout(dropout, mode="upscale_in_train"))
        self.activation: Any = getattr(F, str(config["activation"]), None)
        if self.activation is None:
            kind, given = type(self).__name__, config["activation"]
            raise ValueError(f"{kind}: activation should be the name of a function of nn.functional, got {given!r}")

    def _residual_block(self, place: int, x: Any, part: Any) -> Any:
        """``part(x)`` with dropout, residual connection and norm number ``place``. Returns also what else it gave."""
        norm, drop = getattr(self, f"norm{place}"), getattr(self, f"dropout{place}")
        result = part(norm(x) if self.normalize_before else x)
        main, *rest = result if isinstance(result, tuple) else (result,)
        out = x + drop(main)
        return (out if self.normalize_before else norm(out)), rest

    def _feed_forward(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Block):
    """Self-attention and a feed-forward part; ``normalize_before`` puts the norms in front of them."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        layer_norm_eps: float = 1e-5,
    ) -> None:
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        super().__init__()
        weights, biases = _convert_param_attr_to_list(weight_attr, 2), _convert_param_attr_to_list(bias_attr, 2)
        inner = dropout if attn_dropout is None else attn_dropout
        self.self_attn = MultiHeadAttention(d_model, nhead, inner, weight_attr=weights[0], bias_attr=biases[0])
        self._build(config, weights, biases)

    def forward(self, src: TensorLike, src_mask: TensorLike | None = None, cache: Any = None) -> Any:
        """[N, S, d_model] encoded; with ``cache`` also the longer cache."""
        out, rest = self._residual_block(1, src, lambda x: self.self_attn(x, x, x, src_mask, cache=cache))
        out, _ = self._residual_block(2, out, self._feed_forward)
        return out if cache is None else (out, rest[-1])

    def gen_cache(self, src: Any) -> Any:
        """An empty cache for step-by-step encoding."""
        return self.self_attn.gen_cache(src, type=MultiHeadAttention.Cache)


class TransformerDecoderLayer(_Block):
    """Self-attention, attention to the encoder's output (``memory``), and a feed-forward part."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        layer_norm_eps: float = 1e-5,
    ) -> None:
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        super().__init__()
        weights, biases = _convert_param_attr_to_list(weight_attr, 3), _convert_param_attr_to_list(bias_attr, 3)
        inner = dropout if attn_dropout is None else attn_dropout
        self.self_attn = MultiHeadAttention(d_model, nhead, inner, weight_attr=weights[0], bias_attr=biases[0])
        self.cross_attn = MultiHeadAttention(d_model, nhead, inner, weight_attr=weights[1], bias_attr=biases[1])
        self._build(config, weights, biases)

    def forward(
        self,
        tgt: TensorLike,
        memory: TensorLike,
        tgt_mask: TensorLike | None = None,
        memory_mask: TensorLike | None = None,
        cache: Any = None,
    ) -> Any:
        """[N, T, d_model] decoded; ``cache`` is the pair of :meth:`gen_cache`, and then comes back longer."""
        own, other = (None, None) if cache is None else cache
        out, rest = self._residual_block(1, tgt, lambda x: self.self_attn(x, x, x, tgt_mask, cache=own))
        out, _ = self._residual_block(2, out, lambda x: self.cross_attn(x, memory, memory, memory_mask, other))
        out, _ = self._residual_block(3, out, self._feed_forward)
        return out if cache is None else (out, (rest[-1], other))

    def gen_cache(self, memory: Any) -> Any:
        """An empty cache for the target and the projections of ``memory``."""
        growing = self.self_attn.gen_cache(memory, type=MultiHeadAttention.Cache)
        return growing, self.cross_attn.gen_cache(memory, memory, MultiHeadAttention.StaticCache)


def _copies(layer: Layer, count: int) -> LayerList:
    """``layer`` and further layers built like it, with parameters of their own."""
    return LayerList([layer, *(_copy_layer(layer) for _ in range(count - 1))])


def _copy_layer(layer: Layer) -> Layer:
    """Another layer of the same settings; one of the user's that keeps none is copied with its values."""
    config = layer.__dict__.get("_config")
    return copy.deepcopy(layer) if config is None else type(layer)(**config)


class TransformerEncoder(Layer):
    """``num_layers`` layers like ``encoder_layer`` one after the other, then ``norm``."""

    def __init__(self, encoder_layer: Layer, num_layers: int, norm: Layer | None = None) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src: TensorLike, src_mask: TensorLike | None = None, cache: Any = None) -> Any:
        """[N, S, d_model] encoded; with ``cache`` (one for each layer) also the longer caches."""
        out, caches = src, []
        for i, layer in enumerate(self.layers):
            if cache is None:
                out = layer(out, src_mask=src_mask)
            else:
                out, longer = layer(out, src_mask=src_mask, cache=cache[i])
                caches.append(longer)
        out = out if self.norm is None else self.norm(out)
        return out if cache is None else (out, caches)

    def gen_cache(self, src: Any) -> list[Any]:
        """An empty cache for each layer."""
        return [layer.gen_cache(src) for layer in self.layers]


class TransformerDecoder(Layer):
    """``num_layers`` layers like ``decoder_layer`` one after the other, then ``norm``."""

    def __init__(self, decoder_layer: Layer, num_layers: int, norm: Layer | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: TensorLike,
        memory: TensorLike,
        tgt_mask: TensorLike | None = None,
        memory_mask: TensorLike | None = None,
        cache: Any = None,
    ) -> Any:
        """[N, T, d_model] decoded; with ``cache`` (one for each layer) also the longer caches."""
        out, caches = tgt, []
        for i, layer in enumerate(self.layers):
            if cache is None:
                out = layer(out, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, cache=None)
            else:
                out, longer = layer(out, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, cache=cache[i])
                caches.append(longer)
        out = out if self.norm is None else self.norm(out)
        return out if cache is None else (out, caches)

    def gen_cache(self, memory: Any, do_zip: bool = False) -> list[Any]:
        """A cache for each layer; with ``do_zip`` first those of the target, then those of ``memory``."""
        caches = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*caches, strict=True)) if do_zip else caches


class Transformer(Layer):
    """An encoder and a decoder: [N, S, d_model] and [N, T, d_model] give [N, T, d_model]."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        custom_encoder: Layer | None = None,
        custom_decoder: Layer | None = None,
    ) -> None:
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*sizes, weight_attr, bias_attr), num_encoder_layers, LayerNorm(d_model)
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*sizes, weight_attr, bias_attr), num_decoder_layers, LayerNorm(d_model)
        )
        self.d_model, self.nhead = d_model, nhead

    def forward(
        self,
        src: TensorLike,
        tgt: TensorLike,
        src_mask: TensorLike | None = None,
        tgt_mask: TensorLike | None = None,
        memory_mask: TensorLike | None = None,
    ) -> Any:
        """The decoded target."""
        memory = self.encoder(src, src_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask)

    @staticmethod
    def generate_square_subsequent_mask(length: int) -> Tensor:
        """[length, length]: 0 up to the diagonal, minus infinity after it."""
        return to_tensor(np.triu(np.full((length, length), -np.inf, np.float32), 1))
