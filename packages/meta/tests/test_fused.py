"""``incubate.nn``: what Paddle has as kernels for GPUs is what its parts give, eagerly and captured."""

from __future__ import annotations

import numpy as np
import pytest

import argosy as paddle
from argosy.api import targets
from argosy.incubate.nn import functional as fused
from argosy.nn import functional as F

ABSENT = [n for n, target in targets("argosy.incubate.nn.functional").items() if target.startswith("absent")]

incubate = paddle.incubate


def drawn(*shape):
    return paddle.to_tensor(np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32"))


def close(found, wanted, tolerance=2e-5):
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=tolerance, atol=tolerance)


def encoder(before):
    """A fused encoder layer, and a plain one with the same weights."""
    layer = incubate.nn.FusedTransformerEncoderLayer(8, 2, 16, 0.0, "gelu", normalize_before=before)
    plain = paddle.nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", normalize_before=before)
    for p in layer.parameters():
        p.set_value(drawn(*p.shape) * 0.3)
    attention, ffn, ours = layer.fused_attn, layer.ffn, plain.self_attn
    for i, part in enumerate((ours.q_proj, ours.k_proj, ours.v_proj)):
        part.weight.set_value(attention.qkv_weight[i].reshape([8, 8]).t())
        part.bias.set_value(attention.qkv_bias[i].flatten())
    ours.out_proj.set_state_dict({"weight": attention.linear_weight, "bias": attention.linear_bias})
    plain.linear1.set_state_dict({"weight": ffn._linear1_weight, "bias": ffn._linear1_bias})
    plain.linear2.set_state_dict({"weight": ffn._linear2_weight, "bias": ffn._linear2_bias})
    first, second = ("pre_ln", "_ln1") if before else ("ln", "_ln2")
    for norm, owner, name in ((plain.norm1, attention, first), (plain.norm2, ffn, second)):
        norm.set_state_dict({"weight": getattr(owner, f"{name}_scale"), "bias": getattr(owner, f"{name}_bias")})
    return layer, plain


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_a_fused_encoder_layer_is_the_plain_one(before, masked):
    """Results and gradients of the input agree, and captured code gives the same."""
    layer, plain = encoder(before)
    mask = paddle.tril(paddle.ones([5, 5], "bool")).reshape([1, 1, 5, 5]) if masked else None
    x, y = drawn(3, 5, 8), drawn(3, 5, 8)
    x.stop_gradient = y.stop_gradient = False
    found, wanted = layer(x, mask), plain(y, mask)
    close(found, wanted)
    (found**2).sum().backward()
    (wanted**2).sum().backward()
    close(x.grad, y.grad, 2e-4)
    close(paddle.jit.to_static(lambda x: layer(x, mask), full_graph=True)(x), wanted)


def test_attention_takes_one_matrix_and_a_cache():
    """The matrix [width, 3 width] is the same weight laid out otherwise; with a cache, places see those before."""
    weight, bias, out = drawn(3, 2, 4, 8), drawn(3, 2, 4), drawn(8, 8)
    x = drawn(2, 6, 8)
    rest = {"qkv_bias": bias, "dropout_rate": 0.0, "attn_dropout_rate": 0.0, "pre_layer_norm": True}
    wanted = fused.fused_multi_head_attention(x, weight, out, **rest)
    flat = {**rest, "qkv_bias": bias.flatten(), "num_heads": 2, "transpose_qkv_wb": True}
    close(fused.fused_multi_head_attention(x, weight.reshape([24, 8]).t(), out, **flat), wanted)
    mask = paddle.where(paddle.tril(paddle.ones([6, 6], "bool")), 0.0, -1e9)
    causal = fused.fused_multi_head_attention(x, weight, out, attn_mask=mask, **rest)
    cache, pieces = paddle.zeros([2, 2, 2, 0, 4]), []
    for i in range(6):
        piece, cache = fused.fused_multi_head_attention(x[:, i : i + 1], weight, out, cache_kv=cache, **rest)
        pieces.append(piece)
    close(paddle.concat(pieces, 1), causal)
    assert cache.shape == [2, 2, 2, 6, 4]
    with pytest.raises(ValueError, match=r"argument 'qkv_weight' should be \[3, heads, head width, 8\], got \[8, 8\]"):
        fused.fused_multi_head_attention(x, out, out)
    with pytest.raises(NotImplementedError, match="ring_id=0"):
        fused.fused_multi_head_attention(x, weight, out, ring_id=0)


def test_dot_product_attention_and_unequal_lengths():
    """Both are attention; past a row's length there are zeros."""
    q, k, v = drawn(2, 5, 3, 4), drawn(2, 5, 3, 4) * 0.5, drawn(2, 5, 3, 4) + 1.0
    close(fused.fused_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v))
    causal = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    close(fused.fused_dot_product_attention(q, k, v, is_causal=True), causal)
    mask = drawn(2, 1, 5, 5)
    close(fused.fused_dot_product_attention(q, k, v, mask), F.scaled_dot_product_attention(q, k, v, mask))
    swapped = [x.transpose([0, 2, 1, 3]) for x in (q, k, v)]
    lengths = paddle.to_tensor([[5], [2]], dtype="int32")
    found = fused.variable_length_memory_efficient_attention(*swapped, lengths, lengths, causal=True)
    close(found[0].transpose([1, 0, 2]), causal[0])
    short = F.scaled_dot_product_attention(q[1:, :2], k[1:, :2], v[1:, :2], is_causal=True)
    close(found[1, :, :2].transpose([1, 0, 2]), short[0])
    assert not found[1, :, 2:].numpy().any()


@pytest.mark.parametrize("neox", [True, False])
@pytest.mark.parametrize("time_major", [False, True])
def test_rotary_positions_turn_pairs(neox, time_major):
    """Against complex numbers: each pair is multiplied by a unit one whose angle grows with the place."""
    x = drawn(2, 5, 3, 8)
    rates = 10000.0 ** -(np.arange(4) * 2 / 8)
    places = np.array([[0, 1, 2, 3, 4], [4, 3, 7, 1, 0]])
    spread = (lambda a: a.repeat(2, -1)) if neox else (lambda a: np.concatenate([a, a], -1))
    tables = [paddle.to_tensor(f(spread(np.outer(np.arange(8), rates))).astype("float32")) for f in (np.sin, np.cos)]
    pairs = x.numpy().reshape(2, 5, 3, 4, 2) if neox else np.moveaxis(x.numpy().reshape(2, 5, 3, 2, 4), 3, 4)
    turned = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * places[:, :, None, None] * rates)
    turned = np.stack([turned.real, turned.imag], -1)
    wanted = (turned if neox else np.moveaxis(turned, 4, 3)).reshape(2, 5, 3, 8)
    given = x.transpose([1, 0, 2, 3]) if time_major else x
    q, k, v = fused.fused_rotary_position_embedding(
        given, given, None, *tables, paddle.to_tensor(places), neox, time_major
    )
    assert v is None
    assert (q.numpy() == k.numpy()).all()
    np.testing.assert_allclose((q.transpose([1, 0, 2, 3]) if time_major else q).numpy(), wanted, rtol=1e-5, atol=1e-5)
    if neox:  # the tables by default, places in order
        plain, _, _ = fused.fused_rotary_position_embedding(given, time_major=time_major)
        close((plain.transpose([1, 0, 2, 3]) if time_major else plain)[0], paddle.to_tensor(wanted)[0], 1e-5)
    else:
        with pytest.raises(ValueError, match="'sin' and 'cos' should be given"):
            fused.fused_rotary_position_embedding(x, use_neox_rotary_style=False)


def test_norms_and_linear_functions_are_what_their_parts_give():
    """Bias, residual and activation in one call each."""
    x, w, b = drawn(2, 3, 8), drawn(8), drawn(8) * 0.1
    weight, bias = drawn(8, 4), drawn(4)
    close(fused.fast_ln(x, w, b)[0], F.layer_norm(x, [8], w, b))
    close(fused.fast_rms_norm(x, w)[0], F.rms_norm(x, [8], w, 1e-5))
    narrow = fused.fused_rms_norm(x.astype("bfloat16"), w, None, 1e-5, 2)[0]
    assert narrow.dtype is paddle.bfloat16
    close(narrow.astype("float32"), F.rms_norm(x, [8], w, 1e-5), 0.03)
    summed = fused.fused_bias_dropout_residual_layer_norm(x, x * 2, b, w, b, 0.0)
    close(summed, F.layer_norm(x * 3 + b, [8], w, b))
    for name in ("gelu", "relu"):
        close(fused.fused_linear_activation(x, weight, bias, activation=name), getattr(F, name)(x @ weight + bias))
    close(fused.fused_bias_act(x, b, act_method="swiglu"), F.swiglu(x + b))
    close(fused.fused_bias_act(x, b, act_method="silu"), F.silu(x + b))
    linear = incubate.nn.FusedLinear(8, 4, transpose_weight=True)
    close(linear(x), x @ linear.weight.t() + linear.bias)
    with pytest.raises(ValueError, match="activation should be one of gelu, relu"):
        fused.fused_bias_act(x, b, act_method="no")
    with pytest.raises(NotImplementedError, match=r"quant_scale=0\.5"):
        fused.fused_rms_norm(x, w, None, 1e-5, 2, quant_scale=0.5)
    with pytest.raises(ValueError, match="'begin_norm_axis' should be from -3 to 2, got 3"):
        fused.fused_layer_norm(x, w, b, 1e-5, begin_norm_axis=3)


def test_dropout_is_on_in_training_only():
    """Dropped places are those of the sum's first part."""
    x = paddle.ones([64, 64])
    layer = incubate.nn.FusedDropoutAdd(0.5)
    share = (layer(x, x).numpy() == 1.0).mean()
    assert 0.4 < share < 0.6
    layer.eval()
    assert (layer(x, x).numpy() == 2.0).all()
    rows = incubate.nn.FusedDropout(0.5, axis=0)(x).numpy()
    assert (rows == rows[:, :1]).all()
    assert 0 < (rows == 0).mean() < 1


@pytest.mark.parametrize("name", ABSENT)
def test_what_is_missing_says_so(name):
    """An error names the function and what there is instead."""
    with pytest.raises(NotImplementedError, match=f"functional.{name} is not implemented: "):
        getattr(fused, name)(1)


@pytest.mark.parametrize("kind", ["lookahead", "average"])
def test_averaging_optimizers_work_captured(kind):
    """A captured step with LookAhead or ModelAverage does what the eager one does; the state goes through a dict."""

    def build():
        paddle.seed(3)
        weight = paddle.create_parameter([3, 2], "float32", default_initializer=paddle.nn.initializer.Constant(0.5))
        inner = paddle.optimizer.Adam(0.1, parameters=[weight])
        outer = incubate.LookAhead(inner, 0.4, 3) if kind == "lookahead" else inner
        average = incubate.ModelAverage(0.5, [weight], 2, 4)

        def step(x):
            loss = ((x @ weight) ** 2).mean() + weight.sum()
            loss.backward()
            outer.step()
            average.step()
            outer.clear_grad()
            return loss

        return weight, outer, average, step

    eager, outer, average, step = build()
    captured, _, also, other = build()
    compiled = paddle.jit.to_static(other, full_graph=True)
    for i in range(8):
        x = drawn(4, 3) + float(i)
        close(compiled(x), step(x))
        close(captured, eager)
        with average.apply(), also.apply():
            close(captured, eager)
    again, resumed, _, last = build()
    again.set_value(eager)
    resumed.set_state_dict({k.replace(eager.name, again.name): v for k, v in outer.state_dict().items()})
    for i in range(4):
        x = drawn(4, 3) - float(i)
        close(last(x), step(x))
    close(again, eager)


def test_averaging_optimizers_refuse_what_is_no_setting():
    """By name of the argument."""
    weight = paddle.create_parameter([2], "float32")
    with pytest.raises(TypeError, match="'inner_optimizer' must be an Optimizer, got 3"):
        incubate.LookAhead(3)
    inner = paddle.optimizer.SGD(0.1, [weight])
    with pytest.raises(ValueError, match="'alpha' should be from 0 to 1, got 2"):
        incubate.LookAhead(inner, 2.0)
    with pytest.raises(ValueError, match="'k' should be positive, got 0"):
        incubate.LookAhead(inner, 0.5, 0)
    with incubate.ModelAverage(0.1, [weight]).apply():
        assert np.isfinite(weight.numpy()).all()  # never added: it stays
