"""The parts of a transformer's encoder, each one layer with its residual connection and normalisation."""

from __future__ import annotations

from typing import Any

from argosy.api.absent import REASONS
from argosy.incubate.nn import functional as fused
from argosy.nn.attention import additive_mask
from argosy.nn.initializer import Constant
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["FusedFeedForward", "FusedMultiHeadAttention", "FusedMultiTransformer", "FusedTransformerEncoderLayer"]


class _FusedLayer(Layer):
    """What the parts share: where the normalisation stands, and that ranks are not told by rings."""

    def _check(self, sizes: dict[str, int], nranks: int, ring_id: int) -> None:
        kind = type(self).__name__
        for argument, size in sizes.items():
            if size < 1:
                raise ValueError(f"{kind}(): argument {argument!r} should be positive, got {size}")
        if nranks != 1 or ring_id != -1:
            raise NotImplementedError(f"{kind}(): nranks and ring_id; distributed.shard_tensor spreads weights")

    def _scale_and_shift(self, prefix: str, width: int, made: bool, scale_attr: Any, bias_attr: Any) -> None:
        scale = self.create_parameter([width], scale_attr, default_initializer=Constant(1.0)) if made else None
        setattr(self, f"{prefix}_scale", scale)
        setattr(self, f"{prefix}_bias", self.create_parameter([width], bias_attr, is_bias=True) if made else None)


class FusedMultiHeadAttention(_FusedLayer):
    """Self-attention of [batch, length, embed_dim] with dropout, residual connection and normalisation, in front with
    ``normalize_before``, else behind.

    qkv_weight: [3, heads, head width, embed_dim], or [embed_dim, 3 * embed_dim] with ``transpose_qkv_wb``.
    """

    qkv_weight: Any
    qkv_bias: Any
    linear_weight: Any
    linear_bias: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout_rate: float = 0.5,
        attn_dropout_rate: float = 0.5,
        kdim: int | None = None,
        vdim: int | None = None,
        normalize_before: bool = False,
        need_weights: bool = False,
        qkv_weight_attr: Any = None,
        qkv_bias_attr: Any = None,
        linear_weight_attr: Any = None,
        linear_bias_attr: Any = None,
        pre_ln_scale_attr: Any = None,
        pre_ln_bias_attr: Any = None,
        ln_scale_attr: Any = None,
        ln_bias_attr: Any = None,
        epsilon: float = 1e-5,
        nranks: int = 1,
        ring_id: int = -1,
        transpose_qkv_wb: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._check({"embed_dim": embed_dim, "num_heads": num_heads}, nranks, ring_id)
        if embed_dim % num_heads:
            raise ValueError(
                f"FusedMultiHeadAttention(): argument 'embed_dim' should be a multiple of num_heads, got {embed_dim} "
                f"and {num_heads}"
            )
        if need_weights:
            raise NotImplementedError("FusedMultiHeadAttention(): need_weights=True is not implemented, nor in Paddle")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout_rate, self.attn_dropout_rate, self._epsilon = dropout_rate, attn_dropout_rate, epsilon
        self.kdim, self.vdim, self.need_weights = kdim, vdim, need_weights
        self.normalize_before, self.transpose_qkv_wb = normalize_before, transpose_qkv_wb
        sizes = [3 * embed_dim] if transpose_qkv_wb else [3, num_heads, self.head_dim]
        shape = [embed_dim, *sizes] if transpose_qkv_wb else [*sizes, embed_dim]
        self.qkv_weight = self.create_parameter(shape, qkv_weight_attr)
        self.qkv_bias = self.create_parameter(sizes, qkv_bias_attr, is_bias=True)
        self.linear_weight = self.create_parameter([embed_dim, embed_dim], linear_weight_attr)
        self.linear_bias = self.create_parameter([embed_dim], linear_bias_attr, is_bias=True)
        self._scale_and_shift("pre_ln", embed_dim, normalize_before, pre_ln_scale_attr, pre_ln_bias_attr)
        self._scale_and_shift("ln", embed_dim, not normalize_before, ln_scale_attr, ln_bias_attr)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        attn_mask: Tensor | None = None,
        cache: Tensor | None = None,
    ) -> Any:
        """[batch, length, embed_dim]; with ``cache`` [2, batch, heads, earlier, head width] also the longer cache.
        ``key`` and ``value`` are not looked at, as in Paddle: it is self-attention."""
        return fused.fused_multi_head_attention(
            query, self.qkv_weight, self.linear_weight, self.normalize_before,
            getattr(self, "pre_ln_scale"), getattr(self, "pre_ln_bias"),  # noqa: B009  (made by name)
            getattr(self, "ln_scale"), getattr(self, "ln_bias"),  # noqa: B009
            self._epsilon, self.qkv_bias, self.linear_bias, cache, additive_mask(attn_mask, query.dtype),
            self.dropout_rate, self.attn_dropout_rate, self._epsilon, self.training,
            num_heads=self.num_heads, transpose_qkv_wb=self.transpose_qkv_wb,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, dropout_rate={self.dropout_rate}, "
            f"attn_dropout_rate={self.attn_dropout_rate}, epsilon={self._epsilon}, kdim={self.kdim}, "
            f"vdim={self.vdim}, normalize_before={self.normalize_before}, need_weights={self.need_weights}, "
            f"dtype={self._dtype}"
        )


class FusedFeedForward(_FusedLayer):
    """Two linear layers around an activation, with dropout, residual connection and normalisation, in front with
    ``normalize_before``, else behind."""

    def __init__(
        self,
        d_model: int,
        dim_feedforward: int,
        dropout_rate: float = 0.1,
        epsilon: float = 1e-5,
        activation: str = "relu",
        act_dropout_rate: float | None = None,
        normalize_before: bool = False,
        linear1_weight_attr: Any = None,
        linear1_bias_attr: Any = None,
        linear2_weight_attr: Any = None,
        linear2_bias_attr: Any = None,
        ln1_scale_attr: Any = None,
        ln1_bias_attr: Any = None,
        ln2_scale_attr: Any = None,
        ln2_bias_attr: Any = None,
        nranks: int = 1,
        ring_id: int = -1,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._check({"d_model": d_model, "dim_feedforward": dim_feedforward}, nranks, ring_id)
        self._d_model, self._dim_feedforward, self._epsilon = d_model, dim_feedforward, epsilon
        self._act_method, self._normalize_before = activation, normalize_before
        self._dropout_rate = dropout_rate
        self._act_dropout_rate = dropout_rate if act_dropout_rate is None else act_dropout_rate
        self._linear1_weight = self.create_parameter([d_model, dim_feedforward], linear1_weight_attr)
        self._linear1_bias = self.create_parameter([dim_feedforward], linear1_bias_attr, is_bias=True)
        self._linear2_weight = self.create_parameter([dim_feedforward, d_model], linear2_weight_attr)
        self._linear2_bias = self.create_parameter([d_model], linear2_bias_attr, is_bias=True)
        self._scale_and_shift("_ln1", d_model, normalize_before, ln1_scale_attr, ln1_bias_attr)
        self._scale_and_shift("_ln2", d_model, not normalize_before, ln2_scale_attr, ln2_bias_attr)

    def forward(self, src: Tensor, cache: Tensor | None = None) -> Any:
        """[..., d_model] to the same; ``cache`` is not looked at, as in Paddle."""
        names = [f"{name}_{part}" for name in ("linear1", "linear2") for part in ("weight", "bias")]
        names += [f"ln{i}_{part}" for i in (1, 2) for part in ("scale", "bias")]
        parameters: dict[str, Any] = {name: getattr(self, f"_{name}") for name in names}
        return fused.fused_feedforward(
            src, dropout1_rate=self._act_dropout_rate, dropout2_rate=self._dropout_rate, activation=self._act_method,
            ln1_epsilon=self._epsilon, ln2_epsilon=self._epsilon, pre_layer_norm=self._normalize_before,
            training=self.training, **parameters,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"d_model={self._d_model}, dim_feedforward={self._dim_feedforward}, dropout_rate={self._dropout_rate}, "
            f"epsilon={self._epsilon}, activation={self._act_method}, act_dropout_rate={self._act_dropout_rate}, "
            f"normalize_before={self._normalize_before}, dtype={self._dtype}"
        )


class FusedTransformerEncoderLayer(Layer):
    """:class:`FusedMultiHeadAttention` and :class:`FusedFeedForward`, one after the other."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout_rate: float = 0.1,
        activation: str = "relu",
        attn_dropout_rate: float | None = None,
        act_dropout_rate: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        super().__init__()
        self._config, self.normalize_before = config, normalize_before
        (w0, w1), (b0, b1) = _two(weight_attr), _two(bias_attr)
        inner = dropout_rate if attn_dropout_rate is None else attn_dropout_rate
        self.fused_attn = FusedMultiHeadAttention(
            d_model, nhead, dropout_rate, inner, normalize_before=normalize_before,
            qkv_weight_attr=w0, qkv_bias_attr=b0, linear_weight_attr=w0, linear_bias_attr=b0,
            pre_ln_scale_attr=w0, pre_ln_bias_attr=b0, ln_scale_attr=w0, ln_bias_attr=b0,
        )  # fmt: skip
        self.ffn = FusedFeedForward(
            d_model, dim_feedforward, dropout_rate, activation=activation, act_dropout_rate=act_dropout_rate,
            normalize_before=normalize_before,
            linear1_weight_attr=w1, linear1_bias_attr=b1, linear2_weight_attr=w1, linear2_bias_attr=b1,
        )  # fmt: skip

    def forward(self, src: Tensor, src_mask: Tensor | None = None, cache: Tensor | None = None) -> Any:
        """[batch, length, d_model] encoded; with ``cache`` also the longer cache."""
        found = self.fused_attn(src, attn_mask=src_mask, cache=cache)
        if cache is None:
            return self.ffn(found)
        return self.ffn(found[0]), found[1]


def _two(attr: Any) -> tuple[Any, Any]:
    """The attributes of the two parts."""
    return (attr[0], attr[1]) if isinstance(attr, (list, tuple)) else (attr, attr)


class FusedMultiTransformer:
    """A stack of decoder layers with a cache of keys and values. Raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"incubate.nn.FusedMultiTransformer is not implemented: {REASONS['serving']}")
