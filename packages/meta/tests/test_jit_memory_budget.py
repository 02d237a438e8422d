"""``to_static(memory_budget=)`` on a GPT's training step: less memory for a little more work, and the same numbers."""

import numpy as np
import pytest

import argosy as paddle

F = paddle.nn.functional
BATCH, TOKENS, WIDTH, HEADS, VOCABULARY, LAYERS = 2, 64, 64, 4, 128, 3


def parameters():
    rng = np.random.default_rng(0)

    def parameter(*shape):
        value = (rng.standard_normal(shape) * 0.05).astype("float32")
        return paddle.create_parameter(shape, "float32", default_initializer=paddle.nn.initializer.Assign(value))

    layers = [
        [parameter(WIDTH), parameter(WIDTH, 3 * WIDTH), parameter(WIDTH, WIDTH), parameter(WIDTH),
         parameter(WIDTH, 4 * WIDTH), parameter(4 * WIDTH, WIDTH)]
        for _ in range(LAYERS)
    ]  # fmt: skip
    return parameter(VOCABULARY, WIDTH), layers


def trained(memory_budget):
    """Losses and parameters of three steps with dropout, and the figures of the compiled program."""
    paddle.seed(3)
    table, layers = parameters()
    everything = [table, *(p for layer in layers for p in layer)]
    optimizer = paddle.optimizer.AdamW(1e-3, parameters=everything)

    def step(tokens, wanted):
        h = F.embedding(tokens, table)
        for scale, qkv, out, scale2, up, down in layers:
            parts = F.linear(F.layer_norm(h, [WIDTH], scale), qkv).reshape([BATCH, TOKENS, 3, HEADS, WIDTH // HEADS])
            seen = F.scaled_dot_product_attention(*paddle.unbind(parts, 2), is_causal=True)
            h = h + F.dropout(F.linear(seen.reshape([BATCH, TOKENS, WIDTH]), out), 0.1)
            h = h + F.linear(F.gelu(F.linear(F.layer_norm(h, [WIDTH], scale2), up)), down)
        logits = paddle.matmul(h, table, transpose_y=True)
        loss = F.cross_entropy(logits.reshape([-1, VOCABULARY]), wanted.reshape([-1]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    compiled = paddle.jit.to_static(step, full_graph=True, memory_budget=memory_budget)
    rng = np.random.default_rng(1)
    tokens, wanted = (paddle.to_tensor(rng.integers(0, VOCABULARY, (BATCH, TOKENS))) for _ in range(2))
    losses = [float(compiled(tokens, wanted)) for _ in range(3)]
    report = paddle.explain(compiled, tokens, wanted, measure=False)
    return losses, [p.numpy() for p in everything], compiled.compiled[0].executable.report(), report


@pytest.fixture(scope="module")
def plain():
    return trained(None)


def test_a_gpt_trains_in_60_percent_of_the_memory_with_the_same_bits(plain):
    losses, values, figures, _ = plain
    budget = int(figures["arena_bytes"] * 0.6)
    less_losses, less_values, less, report = trained(budget)
    assert less["arena_bytes"] <= budget
    assert less["recomputed"]["work"] < 0.35
    assert less_losses == losses
    assert all((a == b).all() for a, b in zip(less_values, values, strict=True))
    assert "steps run again" in report["memory"]


def test_no_budget_reports_nothing(plain):
    assert "recomputed" not in plain[2]
    assert "run again" not in plain[3]["memory"]


def test_a_budget_is_a_number_of_bytes():
    with pytest.raises(TypeError, match="memory_budget is a number of bytes, got '1GiB'"):
        paddle.jit.to_static(lambda x: x, memory_budget="1GiB")
