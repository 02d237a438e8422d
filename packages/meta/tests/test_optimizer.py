"""Optimizers against Paddle's own numbers, and their state."""

import numpy as np
import pytest

import argosy as paddle
from argosy_phi_ops.capture.tracer import Tracer

nn, optim = paddle.nn, paddle.optimizer


def _parameter(values=(1.0, -2.0), **attr):
    values = np.asarray(values, np.float32)
    return paddle.create_parameter(
        list(values.shape),
        "float32",
        attr=paddle.ParamAttr(**attr),
        default_initializer=nn.initializer.Assign(values),
    )


def _two_steps(optimizer, w):
    for _ in range(2):
        (w * w).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    return w.numpy()


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda p: optim.SGD(0.1, parameters=p), 0.64),
        (lambda p: optim.Momentum(0.1, parameters=p), 0.46),
        (lambda p: optim.Momentum(0.1, parameters=p, use_nesterov=True), 0.2224),
        (lambda p: optim.Adam(0.1, parameters=p), 0.80041),
        (lambda p: optim.AdamW(0.1, parameters=p, weight_decay=0.1), 0.78157),
    ],
    ids=["SGD", "Momentum", "Nesterov", "Adam", "AdamW"],
)
def test_two_steps_give_paddles_numbers(make, expected):
    """Two steps of rate 0.1 on the sum of squares from [1, -2], as measured on Paddle 3.3."""
    w = _parameter()
    assert _two_steps(make([w]), w)[0] == pytest.approx(expected, abs=6e-6)


def test_what_all_parameters_share_in_a_step_is_computed_once():
    """A captured step has as many numbers (0-D values) however many parameters there are."""

    def numbers(count):
        parameters = [_parameter() for _ in range(count)]
        optimizer = optim.Adam(0.1, parameters=parameters)
        for w in parameters:
            (w * w).sum().backward()
        optimizer.step()
        with Tracer("step") as tracer:
            optimizer.step()
            program = tracer.finish([]).program
        return sum(op.result.shape == () for op in program.block if op.dialect == "phi" and len(op.results) == 1)

    assert 0 < numbers(2) == numbers(5)


def test_clipping_comes_before_decay():
    """Rate 1, decay 0.1, clip 1, w = 10, g = 100 gives 8: the raw gradient is clipped, then decay is added."""
    w = _parameter([10.0])
    optimizer = optim.SGD(1.0, parameters=[w], weight_decay=0.1, grad_clip=nn.ClipGradByGlobalNorm(1.0))
    (w * 100).sum().backward()
    optimizer.step()
    assert w.numpy() == pytest.approx([8.0])


def test_groups_multiply_the_rate_and_parameters_have_their_own():
    """A group's learning_rate is a factor, and so is that of a ParamAttr."""
    a, b = _parameter([1.0]), _parameter([1.0], learning_rate=0.5)
    optimizer = optim.SGD(0.1, parameters=[{"params": [a], "learning_rate": 2.0}, {"params": [b]}])
    (a + b).sum().backward()
    optimizer.step()
    assert a.numpy() == pytest.approx([0.8])
    assert b.numpy() == pytest.approx([0.95])


def test_global_norm_leaves_out_parameters_that_need_no_clipping():
    """need_clip=False keeps a gradient as it is and out of the norm."""
    clip = nn.ClipGradByGlobalNorm(1.0)
    a, b = _parameter([0.0]), _parameter([0.0], need_clip=False)
    g = paddle.to_tensor([4.0])
    pairs = clip([(a, g), (b, g)])
    assert pairs[0][1].tolist() == pytest.approx([1.0])
    assert pairs[1][1].tolist() == [4.0]
    assert nn.ClipGradByNorm(1.0)([(a, paddle.to_tensor([3.0, 4.0]))])[0][1].tolist() == pytest.approx([0.6, 0.8])
    assert nn.ClipGradByValue(1.0)([(a, paddle.to_tensor([-3.0, 0.5]))])[0][1].tolist() == [-1.0, 0.5]


def test_state_has_paddles_keys_and_resumes_bit_equal():
    """Keys are <parameter>_<accumulator>_0; a restored optimizer takes exactly the steps the old one takes."""
    w = _parameter()
    optimizer = optim.Adam(optim.lr.StepDecay(0.1, 1), parameters=[w])
    _two_steps(optimizer, w)
    state = {k: (v.numpy() if isinstance(v, paddle.Tensor) else v) for k, v in optimizer.state_dict().items()}
    names = ["moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc"]
    assert set(state) == {f"{w.name}_{n}_0" for n in names} | {"LR_Scheduler"}
    assert state[f"{w.name}_beta1_pow_acc_0"].shape == (1,)
    assert state[f"{w.name}_beta1_pow_acc_0"] == pytest.approx([0.9**3])

    other = _parameter(w.numpy(), name=w.name)
    resumed = optim.Adam(optim.lr.StepDecay(0.1, 1), parameters=[other])
    resumed.set_state_dict(state)
    np.testing.assert_array_equal(_two_steps(resumed, other), _two_steps(optimizer, w))


def test_state_of_the_wrong_shape_is_named():
    """A checkpoint whose accumulator has another shape is refused by its key."""
    w = _parameter()
    optimizer = optim.Momentum(0.1, parameters=[w])
    optimizer.set_state_dict({f"{w.name}_velocity_0": np.zeros(3)})
    with pytest.raises(ValueError, match=rf"{w.name}_velocity_0 has shape \[3\], expected \[2\]"):
        _two_steps(optimizer, w)


def test_state_of_other_parameters_is_refused():
    """A checkpoint made for other parameters names what does not belong, instead of starting from zero silently."""
    optimizer = optim.Momentum(0.1, parameters=[_parameter(name="mine")])
    with pytest.raises(ValueError, match=r"1 entries of parameters.*theirs_velocity_0.*mine"):
        optimizer.set_state_dict({"theirs_velocity_0": np.zeros(2)})


def test_parameters_that_miss_a_step_keep_their_own_correction():
    """Adam's powers advance only for parameters that step: one that skips a step is corrected as if alone."""
    a, b, alone = _parameter([1.0]), _parameter([1.0]), _parameter([1.0])
    both, single = optim.Adam(0.1, parameters=[a, b]), optim.Adam(0.1, parameters=[alone])
    for i in range(3):
        if i != 1:
            (a * a + b * b + alone * alone).sum().backward()
            single.step()
        else:
            (a * a).sum().backward()
        both.step()
        both.clear_grad(set_to_zero=False)
        single.clear_grad(set_to_zero=False)
    np.testing.assert_array_equal(b.numpy(), alone.numpy())
    assert a.numpy() != b.numpy()


def test_rates_and_bad_arguments_explain_themselves():
    """set_lr with a scheduler, missing parameters, doubled parameters and bad betas are errors that say so."""
    w = _parameter()
    with pytest.raises(RuntimeError, match="LRScheduler"):
        optim.SGD(optim.lr.StepDecay(0.1, 1), parameters=[w]).set_lr(1.0)
    with pytest.raises(AttributeError, match="parameters must be given"):
        optim.SGD(0.1)
    with pytest.raises(ValueError, match="twice"):
        optim.SGD(0.1, parameters=[w, w])
    with pytest.raises(ValueError, match="beta1"):
        optim.Adam(0.1, beta1=1.0, parameters=[w])
    optimizer = optim.SGD(0.1, parameters=[w])
    optimizer.set_lr(0.5)
    assert optimizer.get_lr() == 0.5


def test_half_precision_keeps_a_float32_master():
    """With multi_precision a bfloat16 parameter follows the float32 trajectory of its master copy."""
    w = _parameter().astype("bfloat16").detach()
    half = paddle.create_parameter([2], "bfloat16", default_initializer=nn.initializer.Assign([1.0, -2.0]))
    full = _parameter()
    optimizer = optim.AdamW(1e-3, parameters=[half], multi_precision=True)
    reference = optim.AdamW(1e-3, parameters=[full])
    del w
    for _ in range(3):
        half.grad, full.grad = paddle.to_tensor([0.5, 1.0], dtype="bfloat16"), paddle.to_tensor([0.5, 1.0])
        optimizer.step()
        reference.step()
    master = optimizer.state_dict()["master_weights"][half.name]
    np.testing.assert_allclose(master.numpy(), full.numpy(), rtol=1e-6)
    assert half.dtype is paddle.bfloat16


# Paddle's first entry after two steps of lr 0.1 on the sum of squares of [1, -2].
_REFERENCE = [
    ("SGD", {}, 0.64), ("Momentum", {}, 0.46), ("Adam", {}, 0.80041), ("AdamW", {"weight_decay": 0.1}, 0.78157),
    ("Adagrad", {}, 0.83310), ("RMSProp", {}, 0.33216), ("Adadelta", {}, 0.99910), ("NAdam", {}, 0.81997),
    ("RAdam", {}, 0.62105), ("ASGD", {}, 0.64), ("Rprop", {}, 0.78), ("Adamax", {}, 0.80517), ("Lamb", {}, 0.70056),
]  # fmt: skip


def _made(name: str, settings: dict) -> tuple:
    w = paddle.create_parameter([2], "float32")
    w.set_value(np.array([1.0, -2.0], "float32"))
    return w, getattr(paddle.optimizer, name)(0.1, parameters=[w], **settings)


def _descend(w: paddle.Tensor, made: paddle.optimizer.Optimizer) -> None:
    (w * w).sum().backward()
    made.step()
    made.clear_grad()


@pytest.mark.parametrize(("name", "settings", "expected"), _REFERENCE)
@pytest.mark.parametrize("captured", [False, True])
def test_two_steps_end_where_paddle_ends(name: str, settings: dict, expected: float, captured: bool) -> None:
    """Every optimizer gives the reference value, eager and with its step captured."""
    w, made = _made(name, settings)

    def step() -> None:
        _descend(w, made)

    run = paddle.jit.to_static(step, full_graph=True) if captured else step
    run()
    run()
    assert np.isclose(w.numpy()[0], expected, atol=2e-5)


@pytest.mark.parametrize(("name", "settings"), [row[:2] for row in _REFERENCE])
def test_a_state_dict_goes_on_where_it_was_taken(name: str, settings: dict) -> None:
    """A new optimizer with the state after one step takes the same second step."""
    w, made = _made(name, settings)
    _descend(w, made)
    value = w.numpy().copy()
    saved = {key: np.array(state.numpy()) for key, state in made.state_dict().items()}
    _descend(w, made)
    expected = w.numpy().copy()
    w.set_value(value)
    other = getattr(paddle.optimizer, name)(0.1, parameters=[w], **settings)
    other.set_state_dict(saved)
    _descend(w, other)
    assert np.allclose(w.numpy(), expected, atol=1e-6)


def test_lbfgs_goes_on_from_its_state():
    """Three steps are two, a state put into another optimizer, and one."""

    def run(breaks):
        w = paddle.create_parameter([2], "float64", default_initializer=paddle.nn.initializer.Constant(0.5))
        state = None
        for count in breaks:
            optimizer = paddle.incubate.optimizer.LBFGS(max_iter=2, line_search_fn="strong_wolfe", parameters=[w])
            if state is not None:
                optimizer.set_state_dict(state)

            def closure(optimizer=optimizer):
                optimizer.clear_grad()
                loss = (w - 1.0).pow(4).sum() + w[0] * w[1]
                loss.backward()
                return loss

            for _ in range(count):
                optimizer.step(closure)
            state = optimizer.state_dict()
        return w.numpy()

    np.testing.assert_array_equal(run([3]), run([2, 1]))


def test_lbfgs_refuses_what_it_cannot_do():
    """It needs a closure, a known line search, and several evaluations of the loss."""
    w = paddle.nn.Linear(2, 2).parameters()
    optimizer = paddle.optimizer.LBFGS(parameters=w)
    with pytest.raises(TypeError, match="closure"):
        optimizer.step()
    with pytest.raises(NotImplementedError, match="closure"):
        optimizer.minimize(paddle.ones([]))
    with pytest.raises(ValueError, match="line_search_fn"):
        paddle.optimizer.LBFGS(parameters=w, line_search_fn="armijo")


def test_the_parts_of_a_step_by_themselves():
    """backward() gives the pairs that the loss has left, penalties are added to them, and applying them is a step."""
    layer = paddle.nn.Linear(2, 1, bias_attr=False)
    optimizer = paddle.optimizer.Momentum(0.1, parameters=layer.parameters())
    start = layer.weight.numpy()
    loss = layer(paddle.ones([1, 2])).sum()
    assert optimizer.backward(loss) == []
    loss.backward()
    pairs = optimizer.backward(loss)
    pairs = optimizer.append_regularization_ops(pairs, paddle.regularizer.L2Decay(0.5))
    np.testing.assert_allclose(pairs[0][1].numpy(), 1 + 0.5 * start, rtol=1e-6)
    optimizer.apply_gradients(pairs)
    np.testing.assert_allclose(layer.weight.numpy(), start - 0.1 * (1 + 0.5 * start), rtol=1e-6)
    assert optimizer.get_opti_var_name_list() == [f"{layer.weight.name}_velocity_0"]


def test_adamw_keeps_the_regularizer_of_a_parameter():
    """The parameter's own penalty is part of the gradient; only the optimizer's decay is decoupled."""
    w = _parameter((1.0, -2.0), regularizer=paddle.regularizer.L1Decay(0.5))
    optimizer = optim.AdamW(0.1, parameters=[w], weight_decay=0.01)
    (w * 0).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(w.numpy(), [1.0 * (1 - 0.001) - 0.1, -2.0 * (1 - 0.001) + 0.1], rtol=1e-6)
    assert str(w.regularizer) == "L1Decay, coeff=0.500000"


def test_the_rate_is_found_where_users_look_for_it():
    scheduler = optim.lr.StepDecay(0.1, 2)
    assert optim.SGD(scheduler, parameters=[_parameter()])._learning_rate is scheduler
    assert optim.SGD(0.5, parameters=[_parameter()])._learning_rate == 0.5


@pytest.mark.parametrize(("name", "rate"), [("NAdam", -1.0), ("RAdam", float("nan")), ("Rprop", -1.0), ("Rprop", 60.0)])
def test_rates_that_paddle_refuses_are_refused(name, rate):
    with pytest.raises(ValueError, match=f"{name}: learning_rate"):
        getattr(paddle.optimizer, name)(learning_rate=rate, parameters=[_parameter()])


def test_radam_keeps_the_length_of_the_average_as_paddle_does():
    """Its state ``rho`` is t b^t / (1 - b^t), so that files of states are read on either side."""
    p = paddle.create_parameter([2], "float32")
    optimizer = paddle.optimizer.RAdam(0.1, beta2=0.9, parameters=[p])
    for step in range(1, 8):
        (p * p).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        (rho,) = [value for name, value in optimizer.state_dict().items() if "_rho_" in name]
        power = 0.9**step
        np.testing.assert_allclose(rho.numpy(), step * power / (1 - power), rtol=1e-5)


@pytest.mark.parametrize("name", ["SGD", "Momentum", "Adam", "AdamW", "Adagrad", "Adadelta", "RMSProp", "Lamb", "ASGD"])
@pytest.mark.parametrize("rate", [-1.0, -1, float("nan")])
def test_rates_that_would_climb_are_refused(name, rate):
    parameter = paddle.create_parameter([2], "float32")
    with pytest.raises(ValueError, match=f"{name}: learning_rate must not be negative"):
        getattr(paddle.optimizer, name)(learning_rate=rate, parameters=[parameter])
