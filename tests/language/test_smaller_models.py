"""Models made smaller: parts that are removed, and what a small one learns from a large one."""

import numpy as np
import pytest

import argosy as paddle
from argosy import models
from argosy.jit.export import export_program
from argosy_infer import Generator

SIZES = {
    "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "vocab_size": 40, "hidden_size": 32,
    "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 8,
    "max_position_embeddings": 32, "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
}  # fmt: skip
IDS = np.random.default_rng(0).integers(0, 40, (4, 12))


def made(seed):
    paddle.seed(seed)
    model = models.build(models.ConfigFile(SIZES))
    model.eval()
    return model


def silence(parameter, index):
    array = parameter.numpy().copy()
    array[index] = 0
    parameter.set_value(array)


def test_parts_without_influence_are_removed_and_change_nothing(tmp_path):
    """A key head with its queries and half of the channels in each layer, and a layer; the folder is smaller and is
    decoded over a cache."""
    model, rng = made(0), np.random.default_rng(1)
    for number, block in enumerate(model.model.layers):
        head = number % 3
        silence(block.self_attn.o_proj.weight, slice(16 * head, 16 * head + 16))
        silence(block.mlp.down_proj.weight, rng.permutation(48)[:24])
    for part in (model.model.layers[1].self_attn.o_proj, model.model.layers[1].mlp.down_proj):
        silence(part.weight, slice(None))
    small = models.prune(model, heads=2, channels=24, layers=[0, 2])
    want = model(paddle.to_tensor(IDS)).numpy()
    models.save(small, tmp_path)
    read = models.load_model(tmp_path)
    np.testing.assert_allclose(read(paddle.to_tensor(IDS)).numpy(), want, rtol=0, atol=1e-5 * np.abs(want).max())
    sizes = [sum(p.size for p in x.model.layers.parameters()) for x in (model, small)]
    assert sizes[1] < 0.4 * sizes[0]
    assert small.model.layers[1].mlp.gate_proj.weight.shape == [32, 24]
    loaded = export_program(read, [paddle.static.InputSpec([None, None], "int64", "ids")])
    made_tokens = Generator(loaded, capacity=32).generate([1, 2, 3], 4)
    assert made_tokens[0] == model(paddle.to_tensor([[1, 2, 3]])).numpy()[0, -1].argmax()


def test_what_cannot_be_removed_is_named():
    model = made(0)
    for options, message in (
        ({"heads": 4}, "a layer has 3 key heads; 4"),
        ({"channels": 0}, "48 channels; 0"),
        ({"layers": [3]}, "numbers from 0 to 2"),
    ):
        with pytest.raises(ValueError, match=message):
            models.prune(model, **options)
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    mixed = models.build(models.ConfigFile({**SIZES, **experts, "model_type": "qwen3_moe"}))
    with pytest.raises(NotImplementedError, match="channels of MixtureOfExperts"):
        models.prune(mixed, channels=8)
    with pytest.raises(TypeError, match=r"with a config\.json; got Linear"):
        models.prune(paddle.nn.Linear(1, 1))


def test_losses_of_distillation_are_their_formulas():
    """The divergence over a temperature; hidden states through a projection; no gradient for the teacher."""
    rng = np.random.default_rng(0)
    student, teacher = (paddle.to_tensor(rng.standard_normal((3, 5)).astype("float32")) for _ in range(2))
    student.stop_gradient = teacher.stop_gradient = False
    loss = models.logits_loss(student, teacher, 2.0)
    p, q = (np.exp(x.numpy() / 2.0) / np.exp(x.numpy() / 2.0).sum(-1, keepdims=True) for x in (teacher, student))
    np.testing.assert_allclose(float(loss), 4 * (p * np.log(p / q)).sum(-1).mean(), rtol=1e-5)
    loss.backward()
    np.testing.assert_allclose(student.grad.numpy(), 2 * (q - p) / 3, rtol=1e-4, atol=1e-6)
    assert teacher.grad is None
    assert float(models.logits_loss(teacher, teacher)) == 0
    wide = paddle.nn.Linear(5, 7)
    states = rng.standard_normal((3, 7)).astype("float32")
    found = models.hidden_loss(student, paddle.to_tensor(states), wide)
    np.testing.assert_allclose(float(found), np.square(wide(student).numpy() - states).mean(), rtol=1e-5)


def test_a_pruned_model_learns_to_say_what_the_whole_one_says():
    """A captured step on the teacher's logits and hidden states, from which the student's come nearer to it than by
    removal alone; the teacher stays."""
    teacher = made(3)
    student = models.prune(teacher, heads=2, layers=[0, 1])
    before = {name: p.numpy().copy() for name, p in teacher.named_parameters()}
    ids, held = (paddle.to_tensor(np.random.default_rng(s).integers(0, 40, (8, 12))) for s in (1, 2))
    apart = float(models.logits_loss(student(held), teacher(held)))
    student.train()
    optimizer = paddle.optimizer.AdamW(3e-3, parameters=student.parameters())
    step = models.distillation_step(student, teacher, optimizer, soft=1.0, hidden=0.1)
    losses = [float(step(ids, ids)) for _ in range(30)]
    assert losses[-1] < 0.5 * losses[0]
    student.eval()
    assert float(models.logits_loss(student(held), teacher(held))) < 0.8 * apart
    assert all(np.array_equal(p.numpy(), before[name]) for name, p in teacher.named_parameters())
