"""Learning-rate schedules against their closed forms."""

import math

import numpy as np
import pytest

import argosy as paddle
from argosy.optimizer import lr


def _rates(schedule, count):
    rates = []
    for _ in range(count):
        rates.append(schedule())
        schedule.step()
    return rates


def test_warmup_then_cosine():
    """LinearWarmup rises linearly, then hands over to the wrapped schedule at its epoch 0."""
    schedule = lr.LinearWarmup(lr.CosineAnnealingDecay(1.0, T_max=4), warmup_steps=2, start_lr=0.0, end_lr=1.0)
    expected = [0.0, 0.5] + [(1 + math.cos(math.pi * t / 4)) / 2 for t in range(5)]
    assert _rates(schedule, 7) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (lr.StepDecay(1.0, step_size=2, gamma=0.5), [1, 1, 0.5, 0.5]),
        (lr.MultiStepDecay(1.0, [1, 3], gamma=0.1), [1, 0.1, 0.1, 0.01]),
        (lr.ExponentialDecay(1.0, 0.5), [1, 0.5, 0.25, 0.125]),
        (lr.NaturalExpDecay(1.0, 1.0), [1, math.e**-1, math.e**-2, math.e**-3]),
        (lr.InverseTimeDecay(1.0, 1.0), [1, 1 / 2, 1 / 3, 1 / 4]),
        (lr.PiecewiseDecay([1, 2], [3.0, 2.0, 1.0]), [3, 2, 1, 1]),
        (lr.PolynomialDecay(1.0, 2, end_lr=0.0), [1, 0.5, 0, 0]),
        (lr.LambdaDecay(1.0, lambda epoch: 1 / (1 + epoch)), [1, 1 / 2, 1 / 3, 1 / 4]),
        (lr.MultiplicativeDecay(1.0, lambda epoch: 0.5), [1, 0.5, 0.25, 0.125]),
        (lr.NoamDecay(4, 2, 1.0), [0, 0.5 * 2**-1.5, 0.5 * 2**-0.5, 0.5 * 3**-0.5]),
    ],
    ids=lambda case: type(case).__name__,
)
def test_closed_forms(schedule, expected):
    """Each schedule gives the rates of its formula."""
    assert _rates(schedule, 4) == pytest.approx(expected)


def test_state_goes_on_where_it_was():
    """A schedule restored from its state gives the same rates as the one that went on."""

    def make():
        return lr.LinearWarmup(lr.CosineAnnealingDecay(1.0, T_max=8), 3, 0.0, 1.0)

    whole = make()
    _rates(whole, 5)
    other = make()
    other.set_state_dict(whole.state_dict())
    assert other() == whole()
    assert _rates(other, 5) == _rates(whole, 5)
    with pytest.raises(RuntimeError, match="lacks 'last_lr'"):
        other.set_state_dict({"last_epoch": 1})


def test_plateau_waits_for_patience():
    """ReduceOnPlateau lowers the rate after more than `patience` epochs without improvement."""
    schedule = lr.ReduceOnPlateau(1.0, factor=0.5, patience=1)
    for metric in (1.0, 1.0, 1.0):
        schedule.step(metric)
    assert schedule() == 0.5


def test_rate_tensor_follows():
    """The 0-D tensor that captured steps read follows the schedule."""
    schedule = lr.StepDecay(1.0, step_size=1, gamma=0.5)
    schedule.step()
    assert float(schedule.rate.tensor) == 0.5


def test_one_cycle_ends_with_its_steps():
    """The step after the last goes on along the last phase; rates recorded from paddlepaddle 3.3.1."""
    schedule = lr.OneCycleLR(1.0, 3)
    assert _rates(schedule, 3)[1:] == pytest.approx([0.4626886897114672, 0.0001])
    assert schedule() == pytest.approx(0.4626886897114674)
    with pytest.raises(ValueError, match="step 4 is beyond total_steps, 3"):
        schedule.step()


@pytest.mark.parametrize("metric", [2, 2.0, np.float32(2), np.array([2.0]), np.array(2.0), paddle.to_tensor([[2.0]])])
def test_a_plateau_is_seen_in_any_form_of_one_number(metric):
    schedule = lr.ReduceOnPlateau(1.0, patience=0, factor=0.5)
    for _ in range(2):
        schedule.step(metric)
    assert (schedule(), schedule.best, schedule.last_epoch) == (0.5, 2.0, 2)


@pytest.mark.parametrize("metric", [None, "a", [1.0], paddle.ones([2])])
def test_a_plateau_of_no_number_is_refused(metric):
    """And nothing has happened then; without a metric at all it would watch nothing."""
    schedule = lr.ReduceOnPlateau(1.0)
    with pytest.raises((TypeError, ValueError), match="metrics"):
        schedule.step(metric)
    with pytest.raises(TypeError, match="metrics"):
        schedule.step()
    assert schedule.last_epoch == 0
