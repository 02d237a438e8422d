"""Attention under the names of its kernels, experts' tokens, minima by quasi-Newton steps: against plain numpy."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import argosy as paddle
from argosy.incubate.optimizer import functional as minimizers
from argosy.nn import functional as F
from argosy_phi_ops.eager import tiering

RNG = np.random.default_rng(7)


def heads(*shape: int, dtype: str = "float32") -> Any:
    tensor = paddle.to_tensor(RNG.standard_normal(shape).astype(dtype))
    tensor.stop_gradient = False
    return tensor


def dense(q: Any, k: Any, v: Any, mask: Any = None, scale: float | None = None) -> np.ndarray:
    """Attention of [b, s, h, d] in float64, rows without any key 0."""
    q, k, v = (x.numpy().astype("float64").transpose(0, 2, 1, 3) for x in (q, k, v))
    times = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, times, 1), np.repeat(v, times, 1)
    scores = q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = powers.sum(-1, keepdims=True)
    return (powers / np.where(total == 0, 1, total) @ v).transpose(0, 2, 1, 3)


def hidden_rows(bounds: np.ndarray, rows: int, causal: bool) -> np.ndarray:
    """The documented meaning of FlashMask's bounds, element by element: the mask that keeps."""
    batch, kinds, columns, n = bounds.shape
    kept = np.ones((batch, kinds, rows, columns), bool)
    ends = n == (2 if causal else 4)
    for b, h, j in np.ndindex(batch, kinds, columns):
        numbers = bounds[b, h, j]
        kept[b, h, numbers[0] : numbers[1] if ends else None, j] = False
        if causal:
            kept[b, h, :j, j] = False
        elif ends:
            kept[b, h, numbers[2] : numbers[3], j] = False
        else:
            kept[b, h, : numbers[1], j] = False
    return kept


@pytest.mark.parametrize(("causal", "n"), [(True, 1), (True, 2), (False, 2), (False, 4)])
@pytest.mark.parametrize("kinds", [1, 2, 4])
def test_flashmask_hides_the_rows_that_its_bounds_name(causal: bool, n: int, kinds: int) -> None:
    """Every form of bounds hides what the documentation's loop hides, for one mask, one for each key head or head."""
    q, k, v = heads(2, 6, 4, 8), heads(2, 6, 2, 8), heads(2, 6, 2, 8)
    bounds = np.sort(RNG.integers(0, 7, (2, kinds, 6, n)), -1).astype("int32")
    if n == 2 and not causal:
        bounds = bounds[..., ::-1].copy()
    kept = np.repeat(hidden_rows(bounds, 6, causal), 4 // kinds, 1)
    out = F.flashmask_attention(q, k, v, paddle.to_tensor(bounds), causal=causal)
    np.testing.assert_allclose(out.numpy(), dense(q, k, v, kept), rtol=1e-5, atol=1e-6)
    out.sum().backward()
    assert np.isfinite(q.grad.numpy()).all()


@pytest.mark.parametrize("causal", [True, False])
def test_a_window_is_a_band_around_the_diagonal(causal: bool) -> None:
    """A query sees window[0] keys to the left and window[1] to the right, none to the right if causal."""
    q, k, v = (heads(1, 7, 2, 4) for _ in range(3))
    distance = np.arange(7) - np.arange(7)[:, None]
    kept = (distance >= -2) & (distance <= (0 if causal else 1))
    out, logs = F.flashmask_attention(q, k, v, causal=causal, window_size=(2, 1), return_softmax_lse=True)
    np.testing.assert_allclose(out.numpy(), dense(q, k, v, kept[None, None]), rtol=1e-5, atol=1e-6)
    assert list(logs.shape) == [1, 2, 7]


def test_block_masks_drop_whole_blocks() -> None:
    """A 0 in block_mask hides 128 queries from 128 keys."""
    q, k, v = (heads(1, 130, 1, 128) for _ in range(3))
    bounds = paddle.full([1, 1, 130, 1], 130, "int32")
    blocks = paddle.to_tensor([[[[1, 1], [0, 1]]]], dtype="int32")
    kept = np.tril(np.ones((130, 130), bool))
    kept[128:, :128] = False
    out = F.flashmask_attention(q, k, v, bounds, causal=True, block_mask=blocks)
    np.testing.assert_allclose(out.numpy(), dense(q, k, v, kept), rtol=1e-5, atol=1e-6)


def test_sparse_attention_gives_the_documented_example() -> None:
    """The numbers of Paddle's documentation, which its build for the CPU cannot compute."""
    x = paddle.to_tensor([[[[0, 1], [2, 3], [0, 1], [2, 3]]]], dtype="float32")
    offset = paddle.to_tensor([[[0, 2, 4, 6, 8]]], dtype="int32")
    columns = paddle.to_tensor([[[0, 1, 0, 1, 2, 3, 2, 3]]], dtype="int32")
    padding = paddle.to_tensor([[1, 1, 1, 0]], dtype="float32")
    mask = paddle.to_tensor([[1, 0, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]], dtype="float32")
    out = F.sparse_attention(x, x, x, offset, columns, key_padding_mask=padding, attn_mask=mask)
    np.testing.assert_allclose(out.numpy()[0, 0], [[0, 1], [1.99830270, 2.99830270], [0, 1], [0, 1]], rtol=1e-6)
    with pytest.raises(ValueError, match="sparse_csr_columns should lie in"):
        F.sparse_attention(x, x, x, offset, columns + 4)


@pytest.mark.parametrize("padded", [True, False])
def test_packed_sequences_do_not_see_each_other(padded: bool) -> None:
    """Each sequence attends within itself; rows of no sequence are 0 and get no gradient."""
    qkv = heads(12, 4, 2, 4)  # two query heads for each of two key heads
    lengths, starts = [3, 6], [0, 6] if padded else [0, 3]
    edges = paddle.to_tensor([0, 3, 9], dtype="int32")
    out, weights = F.flash_attn_varlen_qkvpacked(
        qkv, edges, edges, 6, 6, 0.5, causal=True, return_softmax=True, varlen_padded=padded
    )
    expected = np.zeros((12, 4, 4))
    for start, n in zip(starts, lengths, strict=True):
        part = qkv[start : start + n]
        q, k, v = part[:, :2].reshape([1, n, 4, 4]), part[:, 2].unsqueeze(0), part[:, 3].unsqueeze(0)
        expected[start : start + n] = dense(q, k, v, np.tril(np.ones((n, n), bool)), 0.5)[0]
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-6)
    assert list(weights.shape) == [2, 4, 6, 6]
    np.testing.assert_allclose(weights.numpy().sum(-1)[0, 0], [1, 1, 1, 0, 0, 0], rtol=1e-6)
    out.sum().backward()
    used = {row for start, n in zip(starts, lengths, strict=True) for row in range(start, start + n)}
    assert all(np.any(qkv.grad.numpy()[row] != 0) == (row in used) for row in range(12))


def test_the_third_version_takes_windows_and_used_lengths() -> None:
    """Rows beyond seqused give 0 and a logarithm of -inf; the band is aligned at the sequences' ends."""
    q, k, v = heads(5, 2, 4), heads(8, 1, 4), heads(8, 1, 4)
    out, logs = F.flash_attention_v3_varlen(
        q, k, v, paddle.to_tensor([0, 2, 5]), paddle.to_tensor([0, 4, 8]), 3, 4,
        seqused_q=paddle.to_tensor([2, 1]), window_size=(1, 0), softcap=0.0,
    )  # fmt: skip
    band = np.array([[0, 1, 1, 0], [0, 0, 1, 1]], bool)
    first = dense(q[:2].unsqueeze(0), k[:4].unsqueeze(0), v[:4].unsqueeze(0), band)[0]
    np.testing.assert_allclose(out.numpy()[:2], first, rtol=1e-5, atol=1e-6)
    assert not out.numpy()[3:].any()
    assert list(logs.shape) == [2, 5]
    assert np.isneginf(logs.numpy()[:, 3:]).all()
    assert np.isfinite(logs.numpy()[:, :3]).all()


def test_half_precision_is_computed_in_float32() -> None:
    """bfloat16 operands give a bfloat16 result within its rounding of the exact one."""
    q = heads(1, 40, 3, 2, 16).astype("bfloat16")
    out, _ = F.flash_attn_qkvpacked(q, causal=True)
    parts = [q[:, :, i].astype("float32") for i in range(3)]
    exact = dense(*parts, np.tril(np.ones((40, 40), bool)))
    assert out.dtype is paddle.bfloat16
    np.testing.assert_allclose(out.astype("float32").numpy(), exact, rtol=2**-7, atol=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.flash_attn_qkvpacked(heads(2, 3, 2, 2, 4)), r"h / k \+ 2, k, d\], got \[2, 3, 2, 2, 4\]"),
        (lambda: F.flashmask_attention(heads(1, 3, 3, 4), heads(1, 3, 2, 4), heads(1, 3, 2, 4)), "multiple"),
        (
            lambda: F.flashmask_attention(*[heads(1, 3, 2, 4)] * 3, paddle.zeros([1, 1, 3, 4], "int32"), causal=True),
            "startend_row_indices should be",
        ),
        (
            lambda: F.flash_attn_varlen_qkvpacked(
                heads(4, 3, 2, 4), paddle.to_tensor([0, 9]), paddle.to_tensor([0, 9]), 9, 9, 1.0
            ),
            "reaches beyond the 4 rows",
        ),
    ],
)
def test_what_does_not_fit_is_named(call: Any, message: str) -> None:
    """Wrong shapes are errors with the argument and what came."""
    with pytest.raises(ValueError, match=message):
        call()


def test_tokens_go_to_their_experts_and_come_back() -> None:
    """Rows lie expert by expert in aligned blocks; unpermuting weighted rows gives each token's own mixture."""
    routes = paddle.to_tensor([[-1, 0, -1, 2], [1, -1, -1, -1], [-1, 2, -1, -1]], dtype="int32")
    probabilities = paddle.to_tensor([[0, 0.6, 0, 0.4], [1, 0, 0, 0], [0, 1, 0, 0]], dtype="float32")
    hidden = heads(3, 5)
    rows, row_map, weights, scales, experts = F.moe_permute(
        hidden, None, routes, probabilities, 3, [1, 1, 2], 2, return_expert_indices=True
    )
    assert experts.tolist() == [0, -1, 1, -1, 2, 2]
    assert row_map.tolist() == [[0, -1, 4], [-1, 2, -1], [-1, -1, 5]]
    np.testing.assert_array_equal(rows.numpy()[[0, 2, 4, 5]], hidden.numpy()[[0, 1, 0, 2]])
    assert not rows.numpy()[[1, 3]].any()
    assert scales.size == 0
    np.testing.assert_allclose(weights.numpy(), [0.6, 0, 1, 0, 0.4, 1], rtol=1e-6)
    tokens, back = F.moe_unpermute(rows * weights.unsqueeze(-1), row_map, routes, weights, 3, 3)
    np.testing.assert_allclose(tokens.numpy(), hidden.numpy(), rtol=1e-6)
    np.testing.assert_allclose(back.numpy(), probabilities.numpy(), rtol=1e-6)
    weighted, _ = F.moe_unpermute(rows, row_map, routes, weights, 3, 3, using_weighted_combine=True)
    np.testing.assert_allclose(weighted.numpy(), hidden.numpy(), rtol=1e-6)
    weighted.sum().backward()
    np.testing.assert_allclose(hidden.grad.numpy(), np.ones((3, 5)), rtol=1e-6)
    with pytest.raises(ValueError, match="2 tokens go to expert 2, tokens_per_expert has room for 1"):
        F.moe_permute(hidden, None, routes, probabilities, 3, [1, 1, 1], 1)


def rosenbrock(x: Any) -> Any:
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


@pytest.mark.parametrize("name", ["minimize_bfgs", "minimize_lbfgs"])
def test_quasi_newton_steps_find_the_minimum(name: str) -> None:
    """Rosenbrock's valley ends at (1, 1); a quadratic's inverse Hessian is found by BFGS."""
    minimize = getattr(minimizers, name)
    found = minimize(rosenbrock, paddle.to_tensor([-1.2, 1.0], dtype="float64"), dtype="float64", max_iters=100)
    assert found[0].tolist() == [True]
    assert found[1].dtype is paddle.int64
    assert found[1].item() > 10
    np.testing.assert_allclose(found[2].numpy(), [1, 1], rtol=1e-6)
    matrix = paddle.to_tensor([[3.0, 1.0], [1.0, 2.0]])
    found = minimize(lambda x: (x * paddle.mv(matrix, x)).sum() / 2 + x.sum(), paddle.to_tensor([4.0, -3.0]))
    np.testing.assert_allclose(found[2].numpy(), -np.linalg.solve(matrix.numpy(), [1, 1]), rtol=1e-4)
    if name == "minimize_bfgs":
        np.testing.assert_allclose(found[5].numpy(), np.linalg.inv(matrix.numpy()), rtol=1e-2)
    with pytest.raises(ValueError, match="symmetric and positive definite"):
        minimize(rosenbrock, paddle.zeros([2]), initial_inverse_hessian_estimate=-paddle.eye(2))
    with pytest.raises(NotImplementedError, match="line_search_fn"):
        minimize(rosenbrock, paddle.zeros([2]), line_search_fn="hager_zhang")


def test_fused_storage_is_not_there() -> None:
    """The names of fused storage answer that there is none; asking for it is an error that says so."""
    weight = paddle.create_parameter([2], "float32")
    adam = paddle.optimizer.AdamW(0.1, parameters=[weight])
    adam.set_merged_model_params({})
    adam.need_refuse()
    adam.reset_need_refuse()
    assert adam.fused_buffer_version == 0
    for name in ("buffer", "buffer_ipc_meta", "accumulators_meta", "master_weights_meta"):
        assert getattr(adam, "fused_states_" + name) is None
    with pytest.raises(NotImplementedError, match="one buffer"):
        adam.use_fusion_storage()
    with pytest.raises(TypeError, match="set_merged_model_params"):
        adam.set_merged_model_params([])  # type: ignore[arg-type]


def test_optimizer_states_carry_the_models_names() -> None:
    """sharded_state_dict renames ``<parameter>_moment1_0`` to ``<structured name>.moment1_0``."""
    model = paddle.nn.Sequential(paddle.nn.Linear(2, 3), paddle.nn.Linear(3, 1))
    adam = paddle.optimizer.AdamW(0.1, parameters=model.parameters())
    model(paddle.ones([1, 2])).sum().backward()
    adam.step()
    states = adam.sharded_state_dict(model.sharded_state_dict())
    assert {"0.weight.moment1_0", "1.bias.moment2_0", "0.bias.beta1_pow_acc_0"} <= set(states)
    held = adam.state_dict()[f"{model[1].weight.name}_moment1_0"]
    np.testing.assert_array_equal(states["1.weight.moment1_0"].numpy(), held.numpy())
    with pytest.raises(ValueError, match="lacks parameters"):
        adam.sharded_state_dict({})


def test_names_that_are_no_dtypes_are_refused() -> None:
    """``pstring`` and ``raw`` exist, print as in Paddle, and make no tensor."""
    assert repr(paddle.pstring) == "paddle.pstring"
    assert repr(paddle.raw) == "paddle.raw"
    with pytest.raises((TypeError, ValueError), match="pstring"):
        paddle.zeros([2], dtype=paddle.pstring)


def test_autocast_takes_a_device_type_first() -> None:
    """``autocast("cpu", dtype)`` computes in that type; switched off, in float32."""
    x = paddle.ones([2, 2])
    with paddle.autocast("cpu", "bfloat16"):
        assert (x @ x).dtype is paddle.bfloat16
    with paddle.autocast("cpu", "bfloat16", enabled=False):
        assert (x @ x).dtype is paddle.float32
    with pytest.raises(TypeError, match="device_type"):
        paddle.autocast(True)  # type: ignore[arg-type]


def test_a_drawing_of_the_graph_is_refused() -> None:
    """``dump_backward_graph_path`` is known and not implemented."""
    x = paddle.ones([2])
    x.stop_gradient = False
    for call in (paddle.autograd.backward, paddle.grad):
        arguments = [x.sum()] if call is paddle.autograd.backward else [x.sum(), x]
        with pytest.raises(NotImplementedError, match="dump_backward_graph_path"):
            call(*arguments, dump_backward_graph_path="graph.dot")


@pytest.mark.parametrize("heads", [4, 2])
def test_dropout_within_attention_draws_the_same_captured_and_eager(heads):
    """Bits and gradients, also of a second call; and on average nothing changes."""
    rng = np.random.default_rng(4)
    q, k, v = (
        paddle.to_tensor(rng.standard_normal((2, 5, n, 8)).astype("float32"), stop_gradient=False)
        for n in (4, heads, heads)
    )

    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.25, is_causal=True)

    def run(function):
        paddle.seed(7)
        results = [function(q, k, v) for _ in range(2)]
        grads = paddle.grad(results[1].sum(), [q, k, v])
        return [x.numpy() for x in (*results, *grads)]

    eager, captured = run(attend), run(paddle.jit.to_static(attend, full_graph=True))
    for a, b in zip(eager, captured, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert np.abs(eager[0] - eager[1]).max() > 0.01
    with paddle.no_grad():
        mean = sum(attend(q, k, v).numpy() for _ in range(400)) / 400
    plain = F.scaled_dot_product_attention(q, k, v, is_causal=True).numpy()
    np.testing.assert_allclose(mean, plain, atol=0.25)
    still = F.scaled_dot_product_attention(q, k, v, dropout_p=0.25, is_causal=True, training=False)
    np.testing.assert_array_equal(still.numpy(), plain)
    with pytest.raises(ValueError, match=r"dropout_p is a probability, from 0 to 1, got 1\.5"):
        F.scaled_dot_product_attention(q, k, v, dropout_p=1.5)


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention_keeps_no_weights(causal):
    """Eagerly, too, from its first call on: memory does not grow with the square of the sequence. Values and gradients
    are those with the weights."""
    before = tiering.is_deterministic()
    tiering.set_deterministic(False)
    try:
        rng = np.random.default_rng(0)
        inputs = [
            paddle.to_tensor(rng.standard_normal((1, 1024, 2, 16)).astype("float32"), stop_gradient=False)
            for _ in range(3)
        ]
        tracemalloc.start()
        y, weights = paddle.nn.functional.flash_attention.flash_attention(*inputs, causal=causal)
        y.sum().backward()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert weights is None
        assert peak < 2 * 1024 * 1024 * 4  # the weights of two heads, once
        found = [x.grad.numpy() for x in inputs]
        for x in inputs:
            x.clear_gradient(False)
        z, _ = paddle.nn.functional.flash_attention.flash_attention(*inputs, causal=causal, return_softmax=True)
        z.sum().backward()
        np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-4, atol=1e-5)
        for a, x in zip(found, inputs, strict=True):
            np.testing.assert_allclose(a, x.grad.numpy(), rtol=1e-3, atol=1e-4 * abs(a).max())
    finally:
        tiering.set_deterministic(before)
