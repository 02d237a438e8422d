"""Settings of parameter groups, and what is put back from a file: the wheel's numbers, and what is refused."""

import numpy as np
import pytest

import argosy as paddle
from argosy import optimizer as optim

GROUPS = [
    ("Adam", {"beta1": 0.5}, {"beta2": 0.9, "epsilon": 0.1}, [0.706972, 1.710474]),
    ("AdamW", {"beta1": 0.5, "weight_decay": 0.3}, {"epsilon": 0.1}, [0.630914, 1.701051]),
    ("Momentum", {"momentum": 0.5}, {"use_nesterov": True}, [0.302000, -5.331063]),
    ("RMSProp", {"rho": 0.5, "momentum": 0.9}, {"epsilon": 0.1, "centered": True}, [0.321599, 0.905884]),
    ("Adadelta", {"rho": 0.5}, {"epsilon": 0.1}, [0.999515, 1.492149]),
    ("Adagrad", {"epsilon": 0.5}, {"initial_accumulator_value": 0.3}, [0.816418, 1.735991]),
    ("Adamax", {"beta1": 0.5}, {"beta2": 0.5, "epsilon": 0.1}, [0.720311, 1.748109]),
    ("Lamb", {"beta1": 0.5, "lamb_weight_decay": 0.5}, {"epsilon": 0.1}, [0.729000, 1.458000]),
    ("NAdam", {"beta1": 0.5}, {"momentum_decay": 0.5}, [0.704828, 1.709890]),
    ("RAdam", {"beta1": 0.5}, {"beta2": 0.5, "epsilon": 0.1}, [0.480762, -0.457014]),
]


def _parameters(*values: float) -> list[paddle.Tensor]:
    start = paddle.nn.initializer.Constant
    return [paddle.create_parameter([1], "float32", default_initializer=start(value)) for value in values]


def _train(optimizer, first, second, steps=3) -> None:
    for k in range(steps):
        ((first**2).sum() + (second**3).sum() * (k + 1)).backward()
        optimizer.step()
        optimizer.clear_grad()


@pytest.mark.parametrize(("name", "first", "second", "expected"), GROUPS)
def test_groups_set_the_rule_for_themselves(name, first, second, expected):
    """The numbers are the wheel's; what a group does not say is the optimizer's, which stays as it was."""
    a, b = _parameters(1.0, 2.0)
    groups = [{"params": [a], **first}, {"params": [b], **second}]
    optimizer = getattr(optim, name)(learning_rate=0.1, parameters=groups)
    before = {key: value for key, value in vars(optimizer).items() if isinstance(value, (int, float))}
    _train(optimizer, a, b)
    np.testing.assert_allclose([float(a), float(b)], expected, atol=5e-6)
    assert {key: vars(optimizer)[key] for key in before} == before


def test_groups_hold_for_pairs_given_by_hand():
    """apply_gradients and minimize know the settings of the groups."""
    for apply in (lambda o, loss, pairs: o.apply_gradients(pairs), lambda o, loss, pairs: o.minimize(loss)):
        a, b = _parameters(1.0, 2.0)
        groups = [{"params": [a], "learning_rate": 0.1}, {"params": [b], "weight_decay": 0.5}]
        optimizer = optim.SGD(0.1, parameters=groups)
        loss = (a + b).sum()
        loss.backward()
        apply(optimizer, loss, [(p, p.grad) for p in (a, b)])
        np.testing.assert_allclose([float(a), float(b)], [1 - 0.01, 2 - 0.1 * (1 + 0.5 * 2)], rtol=1e-6)


def _adam(rate=0.1, kind=optim.Adam):
    with paddle.utils.unique_name.guard():
        layer = paddle.nn.Linear(3, 2)
    return layer, kind(rate, parameters=layer.parameters())


def _step(layer, optimizer) -> None:
    (layer(paddle.ones([2, 3])) ** 2).mean().backward()
    optimizer.step()
    optimizer.clear_grad()


def _go_on(layer, optimizer, state) -> None:
    optimizer.set_state_dict(state)
    _step(layer, optimizer)


@pytest.fixture
def state():
    layer, optimizer = _adam()
    _step(layer, optimizer)
    return {key: value.clone() for key, value in optimizer.state_dict().items()}


@pytest.mark.parametrize("steps", [0, 1])
def test_a_missing_state_of_a_parameter_is_named(state, steps):
    """Going on with one moment restored and the other at zero would be wrong without a word."""
    del state["linear_0.w_0_moment2_0"]
    layer, optimizer = _adam()
    for _ in range(steps):
        _step(layer, optimizer)
    with pytest.raises(ValueError, match=r"lacks linear_0\.w_0_moment2_0, which Adam needs"):
        _go_on(layer, optimizer, state)


@pytest.mark.parametrize("steps", [0, 1])
def test_states_of_another_optimizer_are_refused(state, steps):
    layer, optimizer = _adam(kind=optim.Momentum)
    for _ in range(steps):
        _step(layer, optimizer)
    with pytest.raises(ValueError, match="velocity_0, which Momentum needs: it was saved by another optimizer"):
        _go_on(layer, optimizer, state)


def test_parameters_without_states_begin_anew(state):
    """A layer that was frozen when the file was written."""
    kept = {key: value for key, value in state.items() if ".b_0" not in key}
    layer, optimizer = _adam()
    optimizer.set_state_dict(kept)
    _step(layer, optimizer)
    assert float(optimizer.state_dict()["linear_0.b_0_beta1_pow_acc_0"]) == pytest.approx(0.9**2)
    assert float(optimizer.state_dict()["linear_0.w_0_beta1_pow_acc_0"]) == pytest.approx(0.9**3)


def test_states_of_more_parameters_are_left_out(state):
    """The file of a whole model serves an optimizer of a part, whose own files do not hold the rest."""
    layer, optimizer = _adam()
    optimizer.set_state_dict({**state, "head_0.w_0_moment1_0": paddle.ones([2])})
    _step(layer, optimizer)
    assert set(optimizer.state_dict()) == set(state)


def test_names_that_begin_alike_are_told_apart():
    a, b = _parameters(1.0, 2.0)
    a.name, b.name = "w", "w_0"
    optimizer = optim.Momentum(0.1, parameters=[a, b])
    optimizer.set_state_dict({"w_0_velocity_0": np.ones(1, np.float32)})
    _train(optimizer, a, b, steps=1)
    np.testing.assert_allclose(optimizer.state_dict()["w_velocity_0"].numpy(), [2.0])
    np.testing.assert_allclose(optimizer.state_dict()["w_0_velocity_0"].numpy(), [12.9], rtol=1e-6)


def test_a_schedule_needs_its_state(state):
    """Silently starting the schedule again is an error in Paddle, too; what LambdaDecay computes has no state."""
    _, optimizer = _adam(optim.lr.StepDecay(0.1, 2))
    with pytest.raises(ValueError, match="lacks 'LR_Scheduler', the state of this optimizer's StepDecay"):
        optimizer.set_state_dict(state)
    _, optimizer = _adam(optim.lr.LambdaDecay(0.1, lambda epoch: 0.5))
    optimizer.set_state_dict(state)


def test_another_schedules_state_is_warned_of(recwarn):
    schedule = optim.lr.StepDecay(0.1, 2)
    with pytest.warns(UserWarning, match=r"the state of StepDecay has no \['best'\]"):
        schedule.set_state_dict({"last_epoch": 3, "last_lr": 0.5, "best": 1.0})
    assert (schedule.last_epoch, schedule()) == (3, 0.5)
    warm = optim.lr.LinearWarmup(optim.lr.StepDecay(0.1, 2), 2, 0.0, 0.1)
    warm.set_state_dict(warm.state_dict())
    assert not recwarn.list


def test_lbfgs_goes_on_from_paddles_file():
    """Paddle keeps tensors, and more than the next step needs; it does not read them back itself."""

    def made():
        (w,) = _parameters(2.0)
        return w, optim.LBFGS(0.5, max_iter=2, parameters=[w])

    def step(w, optimizer):
        def closure():
            optimizer.clear_grad()
            loss = ((w - 1) ** 4).sum()
            loss.backward()
            return loss

        return float(optimizer.step(closure))

    w, optimizer = made()
    step(w, optimizer)
    kept = {key: [paddle.to_tensor(x) for x in value] if isinstance(value, list) else value
            for key, value in optimizer.state_dict()["state"].items()}  # fmt: skip
    kept |= {"d": paddle.to_tensor(kept["d"]), "alpha": paddle.to_tensor(kept["alpha"]), "H_diag": paddle.ones([])}
    other, resumed = made()
    other.set_value(w)
    resumed.set_state_dict({"state": kept})
    assert [step(other, resumed) for _ in range(2)] == [step(w, optimizer) for _ in range(2)]


def test_lookahead_reads_files_without_its_count():
    (w,) = _parameters(2.0)
    optimizer = paddle.incubate.LookAhead(optim.SGD(0.1, parameters=[w]), k=2)
    optimizer.set_state_dict({f"{w.name}_slow_0": np.ones(1, np.float32)})
    (w * w).sum().backward()
    optimizer.step()
    assert int(optimizer.state_dict()[f"{w.name}_lookahead_step_0"]) == 1


def test_averages_of_all_parameters_are_in_their_file():
    """Paddle refuses a file that lacks one, as that of a running mean, which gets no gradient."""
    layer = paddle.nn.BatchNorm1D(3)
    average = paddle.incubate.ModelAverage(0.5, parameters=layer.parameters())
    layer(paddle.ones([3, 3])).sum().backward()
    average.step()
    kinds = {f"sum_{i}" for i in (1, 2, 3)} | {"restore", "num_accumulates", "old_num_accumulates", "num_updates"}
    assert set(average.state_dict()) == {f"{p.name}_{kind}_0" for p in layer.parameters() for kind in kinds}


def test_the_scale_is_an_array_as_in_paddles_files():
    scaler = paddle.amp.GradScaler(init_loss_scaling=8.0)
    scale = scaler.state_dict()["scale"]
    assert (scale.shape, scale.dtype, float(scale[0])) == ((1,), np.float32, 8.0)
    for held in (scale, paddle.to_tensor(scale), 8.0):
        other = paddle.amp.GradScaler(init_loss_scaling=2.0)
        other.load_state_dict({**scaler.state_dict(), "scale": held})
        assert other.get_init_loss_scaling() == 8.0
    with pytest.raises(RuntimeError, match="a disabled scaler has saved it"):
        scaler.load_state_dict(paddle.amp.GradScaler(enable=False).state_dict())


@pytest.mark.parametrize("kind", [optim.Adam, optim.AdamW])
@pytest.mark.parametrize("captured", [False, True])
def test_lazy_adam_leaves_rows_alone_that_were_not_looked_up(kind, captured):
    """Each row is as if a table of it alone took the steps that look it up, with the corrections of all steps."""
    table = paddle.nn.Embedding(3, 2, sparse=True)
    table.weight.set_value(paddle.ones([3, 2]))
    optimizer = kind(0.1, parameters=table.parameters(), lazy_mode=True)

    def step(ids):
        (table(ids) ** 2).sum().backward()
        optimizer.step()
        optimizer.clear_grad()

    if captured:
        step = paddle.jit.to_static(step, full_graph=True)
    row, m, v = 1.0, 0.0, 0.0
    for t, ids in enumerate([[0, 1], [1, 1], [1, 0]], start=1):
        if 0 in ids:
            g = 2 * row
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            row *= 1 - 0.1 * 0.01 * (kind is optim.AdamW)
            row -= 0.1 * (m / (1 - 0.9**t)) / (v / (1 - 0.999**t)) ** 0.5
        step(paddle.to_tensor(ids))
    np.testing.assert_allclose(table.weight.numpy()[[0, 2]], [[row] * 2, [1.0, 1.0]], rtol=1e-5)
    moments = optimizer.state_dict()[f"{table.weight.name}_moment1_0"].numpy()
    np.testing.assert_allclose(moments[[0, 2]], [[m] * 2, [0.0, 0.0]], rtol=1e-5)
