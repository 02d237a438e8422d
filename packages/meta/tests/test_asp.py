"""Weights with two zeros in four: how they are chosen, and that training keeps them."""

from __future__ import annotations

import numpy as np
import pytest

import argosy as paddle

asp = paddle.incubate.asp


def test_masks_keep_the_largest_of_four():
    """The values are those of Paddle for this matrix (which is positive)."""
    matrix = np.array([[9, 2, 3, 1, 5], [4, 8, 1, 2, 6], [1, 7, 5, 3, 2], [2, 6, 8, 4, 1]], np.float64)
    ones = {
        "get_mask_1d": [[1, 0, 1, 0, 1], [1, 1, 0, 0, 1], [0, 1, 1, 0, 1], [0, 1, 1, 0, 1]],
        "get_mask_2d_greedy": [[1, 0, 0, 1, 1], [1, 1, 0, 0, 1], [0, 1, 1, 0, 0], [0, 0, 1, 1, 0]],
    }
    for name, expected in ones.items():
        assert getattr(asp, name)(matrix, 2, 4).tolist() == expected, name
        kind = asp.MaskAlgo(name)
        masked = matrix * asp.create_mask(matrix, kind)
        assert asp.check_sparsity(masked, asp.CheckMethod.get_checking_method(kind))
    best = matrix * asp.get_mask_2d_best(matrix, 2, 4)
    assert (best.sum(), asp.check_mask_2d(best, 2, 4)) == (57, True)
    assert not asp.check_mask_1d(matrix, 2, 4)
    assert asp.calculate_density(np.array([[0, 1], [2, 3]])) == 0.75
    columns = np.array([[1, 1, 1, 0]] + [[0, 0, 0, 0]] * 3)
    assert not asp.check_mask_2d(columns, 2, 4)


def test_the_sign_of_a_weight_is_not_its_size():
    """What is best keeps large negative weights."""
    matrix = -np.eye(4) * 9 + np.ones((4, 4))
    assert np.diag(asp.get_mask_2d_best(matrix, 2, 4)).tolist() == [1] * 4


@pytest.mark.parametrize("shape", [(6,), (3, 6), (2, 3, 8), (2, 8, 3, 2)])
def test_masks_of_tensors(shape):
    """Up to four axes; of four, along the input channels."""
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    mask = asp.create_mask(values)
    assert (mask.shape, mask.dtype) == (shape, np.float32)
    assert asp.check_sparsity(values * mask)


def _trained(step_of, **kwargs):
    paddle.seed(3)
    model = paddle.nn.Sequential(paddle.nn.Linear(8, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 3))
    optimizer = asp.decorate(paddle.optimizer.Adam(0.05, parameters=model.parameters()))
    masks = asp.prune_model(model, **kwargs)
    x = paddle.to_tensor(np.random.default_rng(1).standard_normal((16, 8)).astype("float32"))

    def step():
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    step = step_of(step)
    losses = [float(step()) for _ in range(3)]
    return model, optimizer, masks, losses


@pytest.mark.parametrize("algorithm", ["mask_1d", "mask_2d_greedy", "mask_2d_best"])
def test_training_keeps_the_zeros(algorithm):
    """Eager steps move the weights that are left; the other stay zero. A captured step does the same."""
    model, optimizer, masks, losses = _trained(lambda step: step, mask_algo=algorithm)
    assert losses[2] < losses[0]
    weights = [model[0].weight, model[2].weight]
    assert [*masks] == [weight.name for weight in weights]
    for weight in weights:
        assert asp.check_mask_1d(weight.numpy().T, 2, 4)
        assert asp.calculate_density(weight.numpy()) > 0.4
        assert not np.any(weight.numpy()[masks[weight.name] == 0])
    states = optimizer.state_dict()
    assert states[f"{weights[0].name}.asp_mask"].numpy().tolist() == masks[weights[0].name].tolist()
    optimizer.set_state_dict({**states, f"{weights[0].name}.asp_mask": paddle.zeros([8, 8])})
    optimizer.step()
    assert not np.any(weights[0].numpy())


def test_a_captured_step_keeps_the_zeros():
    """The masks are part of the captured program."""
    _, _, _, expected = _trained(lambda step: step)
    model, _, _, losses = _trained(paddle.jit.to_static)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert [asp.calculate_density(layer.weight.numpy()) for layer in (model[0], model[2])] == [0.5, 0.5]


def test_what_is_pruned_is_chosen():
    """Layers are left out by name, added by class; small ones are left as they are, with a warning."""

    class FourRows(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.weight = self.create_parameter([4, 2])

    model = paddle.nn.Sequential(paddle.nn.Linear(4, 2), FourRows(), paddle.nn.Conv2D(2, 2, 1))
    names = [parameter.name for parameter in model.parameters() if ".w_" in parameter.name]
    asp.set_excluded_layers([model[0].full_name()])
    try:
        with pytest.warns(UserWarning, match="fewer than 4 inputs"):
            assert [*asp.prune_model(model, with_mask=False)] == names[2:]
        asp.add_supported_layer(FourRows)
        with pytest.warns(UserWarning, match="fewer than 4 inputs"):
            assert [*asp.prune_model(model, with_mask=False)] == names[1:]
    finally:
        asp.reset_excluded_layers()
        from argosy.incubate.asp.pruning import _supported

        _supported.pop("four_rows")
    with pytest.raises(RuntimeError, match=r"decorate\(\) the optimizer"):
        asp.prune_model(paddle.nn.Linear(4, 2))
    with pytest.raises(ValueError, match="'mask_3d'"):
        asp.prune_model(model, mask_algo="mask_3d")
    with pytest.raises(ValueError, match="too many masks"):
        asp.get_mask_2d_best(np.ones((8, 8)), 4, 8)


def test_a_static_program_keeps_the_zeros():
    """minimize() records the masks after the update."""
    paddle.enable_static()
    try:
        main, start = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, start):
            x = paddle.static.data("x", [4, 8], "float32")
            loss = (paddle.static.nn.fc(x, 4) ** 2).mean()
            optimizer = asp.decorate(paddle.optimizer.SGD(0.1))
            optimizer.minimize(loss)
        executor = paddle.static.Executor()
        executor.run(start)
        masks = asp.prune_model(main)
        rows = np.random.default_rng(0).standard_normal((4, 8)).astype("float32")
        losses = [float(executor.run(main, feed={"x": rows}, fetch_list=[loss])[0]) for _ in range(3)]
        weight = next(parameter for parameter in main.all_parameters() if parameter.name in masks)
        assert losses[2] < losses[0]
        assert asp.calculate_density(weight.numpy()) == 0.5
    finally:
        paddle.disable_static()


def test_settings_of_tuning(monkeypatch, tmp_path):
    """Kernels are measured by the environment's variable; the rest is checked."""
    monkeypatch.setenv("ARGOSY_TUNE", "0")
    import os

    paddle.incubate.autotune.set_config({"kernel": {"enable": True, "tuning_range": [1, 3]}})
    assert os.environ["ARGOSY_TUNE"] == "1"
    path = tmp_path / "config.json"
    path.write_text('{"kernel": {"enable": false}, "layout": {"enable": true}}')
    with pytest.warns(UserWarning, match="layout is not tuned"):
        paddle.incubate.autotune.set_config(str(path))
    assert os.environ["ARGOSY_TUNE"] == "0"
    with pytest.raises(TypeError, match="tuning_steps should be int"):
        paddle.incubate.autotune.set_config({"dataloader": {"tuning_steps": "1"}})
    with pytest.raises(ValueError, match="'kernels'"):
        paddle.incubate.autotune.set_config({"kernels": {}})
