"""Pipeline schedules: idle times and memory in closed form, simulated and with pieces that sleep; their gradients."""

import time
from collections import Counter

import numpy as np
import pytest
from stages import functions, given, lists_of, values

from argosy_autoparallel.pipeline.schedules import (
    Durations,
    dual_pipe_v,
    eager_one_f_one_b,
    f_then_b,
    interleaved_one_f_one_b,
    one_f_one_b,
    search_zero_bubble,
    zb_h1,
    zb_v,
)
from argosy_autoparallel.schedule import Costs, Ref, Run, ScheduleError, run_in_step, run_on_threads, simulate, verify
from argosy_hwadapt.links import LinkModel

SIZES = [(1, 1), (2, 4), (3, 3), (4, 8), (4, 2), (8, 24)]


def _schedules(p, m):
    """Every schedule that takes p ranks and m microbatches, with its number of stages."""
    found = {"FThenB": (f_then_b(p, m), p), "1F1B": (one_f_one_b(p, m), p), "Eager1F1B": (eager_one_f_one_b(p, m), p),
             "ZB-H1": (zb_h1(p, m), p), "ZB-V": (zb_v(p, m), 2 * p), "search": (search_zero_bubble(p, m, 2), p),
             "search V": (search_zero_bubble(p, m, 1, 2), 2 * p)}  # fmt: skip
    if m >= 2 * p:
        found["DualPipeV"] = dual_pipe_v(p, m), 2 * p
    if m % p == 0:
        found |= {"VPP2": (interleaved_one_f_one_b(p, m, 2), 2 * p), "VPP3": (interleaved_one_f_one_b(p, m, 3), 3 * p)}
    return found


def _costs(F, Bi, W, v=1, latency=0.0):
    durations = {"forward": F / v, "backward": (Bi + W) / v, "backward_input": Bi / v, "backward_weight": W / v}
    return Costs(durations, LinkModel.single_level(latency, float("inf")))


def _idle(orders, stages, m, costs):
    simulation = simulate(lists_of(orders, stages, m), costs)
    return [simulation.idle_seconds(rank) for rank in range(len(orders))]


@pytest.mark.parametrize(("p", "m"), SIZES)
def test_every_pass_of_every_microbatch_runs_once_and_passes_the_check(p, m):
    """Each stage runs each pass of each microbatch exactly once, on one rank, and the lists pass the check."""
    for orders, stages in _schedules(p, m).values():
        counted = Counter((run.piece, run.chunk, run.microbatch) for order in orders for run in order)
        assert set(counted.values()) == {1}
        passes = (
            {"forward", "backward"}
            if any(k[0] == "backward" for k in counted)
            else {"forward", "backward_input", "backward_weight"}
        )
        assert counted.keys() == {(name, s, i) for name in passes for s in range(stages) for i in range(m)}
        verify(lists_of(orders, stages, m))


@pytest.mark.parametrize(("p", "m"), SIZES)
@pytest.mark.parametrize(("F", "Bi", "W"), [(1.0, 1.0, 1.0), (2.0, 3.0, 1.0)])
def test_idle_times_are_the_closed_forms(p, m, F, Bi, W):
    """GPipe and 1F1B (p-1)(F+B), interleaved a v-th of it, on every rank."""
    costs = _costs(F, Bi, W)
    assert _idle(f_then_b(p, m), p, m, costs) == pytest.approx([(p - 1) * (F + Bi + W)] * p)
    assert _idle(one_f_one_b(p, m), p, m, costs) == pytest.approx([(p - 1) * (F + Bi + W)] * p)
    assert _idle(eager_one_f_one_b(p, m), p, m, costs) == pytest.approx([(p - 1) * (F + Bi + W)] * p)
    if m % p == 0:
        for v in (2, 3):
            found = _idle(interleaved_one_f_one_b(p, m, v), p * v, m, _costs(F, Bi, W, v))
            assert found == pytest.approx([(p - 1) * (F + Bi + W) / v] * p)


@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (8, 24), (8, 64)])
def test_zero_bubble_idle_times(p, m):
    """ZB-H1: (p-1)(F+Bi-W). ZB-V: none between a rank's first and last pass where all passes take equal time."""
    assert _idle(zb_h1(p, m), p, m, _costs(1.0, 1.0, 1.0)) == pytest.approx([p - 1] * p)
    simulation = simulate(lists_of(zb_v(p, m), 2 * p, m), _costs(1.0, 1.0, 1.0))
    for rank in range(p):
        runs = [span for span in simulation.spans[rank] if isinstance(span.instruction, Run)]
        assert runs[-1].end - runs[0].start == pytest.approx(simulation.busy_seconds(rank))


@pytest.mark.parametrize(("p", "m"), [(1, 2), (2, 4), (4, 8), (4, 12), (8, 24)])
def test_dual_pipe_v_idle_times_and_memory(p, m):
    """(p-1)(F+Bi-W) where passes take equal time; never more than the published (p-1)(F&B + Bf - 3W) with a pair of
    passes that takes F + Bf. Holds 2p + 1 chunks' activations on every rank."""
    orders = dual_pipe_v(p, m)
    assert _idle(orders, 2 * p, m, _costs(1.0, 1.0, 1.0)) == pytest.approx([p - 1] * p)
    for F, Bi, W in [(2.0, 3.0, 1.0), (1.0, 1.5, 0.5)]:
        assert max(_idle(orders, 2 * p, m, _costs(F, Bi, W))) <= (p - 1) * (F + 2 * (Bi + W) - 3 * W)
    assert [_held(order, "backward_weight") for order in orders] == [min(2 * p + 1, 2 * m)] * p


@pytest.mark.parametrize(("p", "m"), [*SIZES, (8, 64)])
@pytest.mark.parametrize(("F", "Bi", "W", "C"), [(1.0, 1.0, 1.0, 0.0), (2.0, 3.0, 1.0, 0.2), (1.0, 1.2, 0.8, 0.1)])
def test_a_search_keeps_to_its_memory_and_finds_what_a_step_must_take(p, m, F, Bi, W, C):
    """Within p microbatches no worse than ZB-H1; within 2p, where W is not far below Bi, the last rank never waits once
    it has begun: (p-1)(F+C) + m(F+Bi+W)."""
    least = (p - 1) * (F + C) + m * (F + Bi + W)
    seconds = {}
    for times in (1, 2):
        orders = search_zero_bubble(p, m, times, durations=Durations(F, Bi, W, C))
        assert max(_held(order, "backward_weight") for order in orders) <= times * p
        seconds[times] = simulate(lists_of(orders, p, m), _costs(F, Bi, W, latency=C)).seconds
    assert seconds[1] <= simulate(lists_of(zb_h1(p, m), p, m), _costs(F, Bi, W, latency=C)).seconds + 1e-9
    if m >= 2 * p and W > 0.5 * Bi:
        assert seconds[2] == pytest.approx(least)
    assert least - 1e-9 <= seconds[2] <= seconds[1] + 1e-9


@pytest.mark.parametrize(("p", "m"), [(2, 4), (3, 3), (4, 8), (8, 24)])
def test_a_search_over_two_chunks_keeps_to_its_memory(p, m):
    """Of equal passes: no rank idles more than a pass of a chunk longer than ZB-V's step."""
    expected = simulate(lists_of(zb_v(p, m), 2 * p, m), _costs(1.0, 1.0, 1.0)).seconds
    for times in (1, 1.5, 2):
        orders = search_zero_bubble(p, m, times, 2)
        assert max(_held(order, "backward_weight") for order in orders) <= int(times * p) * 2
        found = simulate(lists_of(orders, 2 * p, m), _costs(1.0, 1.0, 1.0)).seconds
        assert found <= expected + (1 if times == 1 else 0)


@pytest.mark.parametrize(("p", "m"), [(2, 2), (4, 4), (4, 16), (8, 24), (16, 32)])
@pytest.mark.parametrize("C", [0.1, 0.9])
def test_latency_costs_1f1b_what_its_form_says(p, m, C):
    """Messages that take C: T = (m+p-1)(F+B) + 2C(m+p-2 - floor((m+p-2)/p)), equal stages."""
    F, B = 1.0, 2.0
    expected = (m + p - 1) * (F + B) + 2 * C * (m + p - 2 - (m + p - 2) // p)
    assert simulate(lists_of(one_f_one_b(p, m), p, m), _costs(F, 1.0, 1.0, latency=C)).seconds == pytest.approx(
        expected
    )


PUBLISHED = [
    # p, m, F, Bi, W, C (ms), bubble of 1F1B, of ZB-H1: arXiv:2401.10241, tables 5 and 9
    (8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585), (8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985, 0.1242),
    (8, 64, 18.546, 18.097, 9.321, 0.762, 0.124, 0.0674), (8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323),
    (8, 32, 29.802, 29.428, 19.53, 0.577, 0.1898, 0.1045), (8, 64, 29.935, 29.621, 19.388, 0.535, 0.1091, 0.0554),
    (16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552, 0.1397), (16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082, 0.1088),
    (16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251, 0.0576), (32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646, 0.1421),
    (32, 128, 10.408, 10.204, 7.703, 0.408, 0.2168, 0.1106), (32, 256, 10.402, 10.248, 7.698, 0.46, 0.1352, 0.0594),
]  # fmt: skip


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize(("p", "m", "F", "Bi", "W", "C", "f1b", "h1"), PUBLISHED)
def test_bubble_rates_are_the_published_ones(p, m, F, Bi, W, C, f1b, h1):
    """1 - m(F+Bi+W)/T of the profiled times, to the four digits that were published."""
    for orders, expected in ((one_f_one_b(p, m), f1b), (zb_h1(p, m), h1)):
        seconds = simulate(lists_of(orders, p, m), _costs(F, Bi, W, latency=C)).seconds
        assert round(1 - m * (F + Bi + W) / seconds, 4) == pytest.approx(expected, abs=1.01e-4)
    if p * m < 1000:  # those of ZB-1p are those of ZB-H1
        orders = search_zero_bubble(p, m, durations=Durations(F, Bi, W, C))
        seconds = simulate(lists_of(orders, p, m), _costs(F, Bi, W, latency=C)).seconds
        assert round(1 - m * (F + Bi + W) / seconds, 4) == pytest.approx(h1, abs=1.01e-4)


def _held(order, until):
    """The most microbatches (times chunks) whose activations a rank holds."""
    now = most = 0
    for run in order:
        now += (run.piece == "forward") - (run.piece == until)
        most = max(most, now)
    return most


@pytest.mark.parametrize(("p", "m"), SIZES)
def test_microbatches_held_are_the_closed_forms(p, m):
    """GPipe m, 1F1B p - r, eager 2(p - r) - 1, interleaved p(1 + (p-1)/(pv)) stages' worth, ZB-H1 p, ZB-V 2p chunks."""
    assert [_held(o, "backward") for o in f_then_b(p, m)] == [m] * p
    assert [_held(o, "backward") for o in one_f_one_b(p, m)] == [min(p - r, m) for r in range(p)]
    assert [_held(o, "backward") for o in eager_one_f_one_b(p, m)] == [min(2 * (p - r) - 1, m) for r in range(p)]
    assert [_held(o, "backward_weight") for o in zb_h1(p, m)] == [min(p, m)] * p
    assert max(_held(o, "backward_weight") for o in zb_v(p, m)) == min(2 * p, 2 * m)
    if m % p == 0:
        for v in (2, 3):
            assert _held(interleaved_one_f_one_b(p, m, v)[0], "backward") == min(p * v + p - 1, m * v)


@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 4), (3, 5)])
def test_gradients_have_the_bits_of_one_process(p, m):
    """Every schedule, on threads and in step, gives the gradients that one rank gives which runs all stages."""
    for name, (orders, stages) in _schedules(p, m).items():
        expected = _alone(stages, m)
        lists = lists_of(orders, stages, m)
        types = given(orders, m)
        for runner in (run_on_threads, run_in_step):
            left = runner(lists, [functions(stages)] * p, values(types))
            found = {ref: array for mine in left for ref, array in mine.items() if ref.name == "grad"}
            assert found.keys() == expected.keys()
            for ref, array in found.items():
                np.testing.assert_array_equal(array, expected[ref], err_msg=f"{name} {ref}")
            assert all(ref.name in ("weight", "grad", "x.0") for mine in left for ref in mine), "all else was freed"


def _alone(stages, m):
    order = [Run("forward", s, i) for i in range(m) for s in range(stages)]
    order = [run for i in range(m) for run in (*(Run("forward", s, i) for s in range(stages)),
             *(Run("backward", s, i) for s in reversed(range(stages))))]  # fmt: skip
    types = given([order], m)
    (left,) = run_in_step(lists_of([order], stages, m), [functions(stages)], values(types))
    return {ref: array for ref, array in left.items() if ref.name == "grad"}


@pytest.mark.parametrize(("name", "p"), [("FThenB", 4), ("1F1B", 8), ("ZB-H1", 8), ("ZB-V", 4), ("VPP2", 8)])
def test_pieces_that_sleep_idle_as_the_simulator_says(name, p):
    """On threads a step takes what the simulator says, and what a busy machine adds: never less."""
    m, unit = 8, 0.01
    orders, stages = _schedules(p, m)[name]
    lists, types = lists_of(orders, stages, m), given(orders, m)
    v = stages // p
    costs = {"forward": unit / v, "backward": 2 * unit / v, "backward_input": unit / v, "backward_weight": unit / v}
    expected = simulate(lists, Costs(costs)).seconds
    slow = functions(stages, lambda piece: time.sleep(costs[piece]))

    def seconds():
        ends = {}

        def observe(place, _):
            ends[place.rank] = time.monotonic()

        begin = time.monotonic()
        run_on_threads(lists, [slow] * p, values(types), observer=observe)
        return max(ends.values()) - begin

    assert min(seconds() for _ in range(2)) >= 0.999 * expected


def test_sizes_that_a_schedule_does_not_take_are_refused():
    """Rounds of interleaved stages must be whole, and there is something to do."""
    with pytest.raises(ScheduleError, match="VPP: the number of microbatches must be divisible by 4, got 6"):
        interleaved_one_f_one_b(4, 6, 2)
    with pytest.raises(ScheduleError, match="needs at least one rank and one microbatch, got 0 and 3"):
        one_f_one_b(0, 3)
    with pytest.raises(ScheduleError, match="DualPipeV: 4 ranks need at least 8 microbatches, got 7"):
        dual_pipe_v(4, 7)
    with pytest.raises(ScheduleError, match=r"1 or 2 chunks and a limit of at least 1, got 1 and 0\.5"):
        search_zero_bubble(4, 8, 0.5)


def test_what_no_rank_makes_is_named():
    """An order without the stage that makes a value is refused when the lists are made."""
    orders = [[Run("forward", 1, 0)]]
    with pytest.raises(ScheduleError, match=r"rank 0: run forward\[1, 0\] reads x.1\[0\], which no rank makes"):
        lists_of(orders, 2, 1)
    assert Ref.parse("x.1[0]") == Ref("x.1", (0,))
