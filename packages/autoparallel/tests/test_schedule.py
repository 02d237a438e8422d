"""Instruction lists: text and JSON, the runner on threads and in step, overlap, memory, pieces that raise."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stages import functions, lists_of, pieces, random_lists, values
from stages import given as given_types

from argosy_autoparallel.pipeline.schedules import one_f_one_b
from argosy_autoparallel.schedule import (
    Costs,
    Free,
    Instruction,
    InstructionError,
    InstructionList,
    Move,
    Port,
    Position,
    Receive,
    Ref,
    Run,
    ScheduleError,
    Send,
    Signature,
    Start,
    Update,
    Wait,
    parse_instruction,
    read_position,
    run,
    run_in_step,
    run_on_threads,
    simulate,
    verify,
)
from argosy_hwadapt import CommunicatorError, RankFailure
from argosy_hwadapt.links import LinkModel, ModelledCommunicator
from argosy_hwadapt.solo import SoloCommunicator
from argosy_pir.types import TensorType

T = TensorType([4], "float32")
X, Y, S = Ref("x"), Ref("y"), Ref("s")

names = st.from_regex(r"[a-z][a-z0-9_.]{0,6}", fullmatch=True)
refs = st.builds(Ref, names, st.lists(st.integers(0, 99), max_size=2).map(tuple))
ranks = st.integers(0, 63)
types = st.builds(TensorType, st.lists(st.integers(0, 9), max_size=3), st.sampled_from(["float32", "bfloat16", "bool"]))
options = st.sampled_from(
    [(), (("op", "max"),), (("root", 1),), (("pairs", ((0, 1), (1, 0))),), (("send_counts", (1, 2)),)]
)
lines = st.text(max_size=8)
instructions = st.one_of(
    st.builds(Run, names, ranks, ranks, line=lines),
    st.builds(Update, names, ranks, line=lines),
    st.builds(Start, st.just("all_reduce"), refs, refs, st.lists(ranks).map(tuple), options, line=lines),
    st.builds(Wait, refs, line=lines),
    st.builds(Send, refs, ranks, ranks, line=lines),
    st.builds(Receive, refs, types, ranks, ranks, line=lines),
    st.builds(Move, refs, st.sampled_from(["device", "host", "disk"]), line=lines),
    st.builds(Free, refs, line=lines),
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(instructions)
def test_instructions_print_and_parse_back(instruction):
    """Text and JSON give the same instruction again, its line included."""
    for again in (parse_instruction(instruction.text()), Instruction.from_json(instruction.to_json())):
        assert again == instruction
        assert again.line == instruction.line


def test_a_list_is_json_and_text():
    """A list with its signatures survives JSON; its text can be changed and read again."""
    signature = Signature((Port("x", T, "microbatch"), Port("w", T, "chunk")), (Port("y", T),), 64)
    one = InstructionList((Run("f", 1, 2, line="train.py:3"), Free(Ref("y", (1, 2)))), {("f", None): signature}, {X: T})
    one = replace(one, resident_bytes=8)
    again = InstructionList.from_json(one.to_json())
    assert again == one
    assert again.instructions[0].line == "train.py:3"
    assert str(one) == 'run f[1, 2] at "train.py:3"\nfree y[1, 2]'
    assert one.with_text(str(one).replace("free y[1, 2]", "send y[1, 2] to 3 tag 0")).instructions[1].to == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("walk x", "begins with no instruction; there are run"),
        ("run f", r"does not read as 'run \{piece\}"),
        ("move x to moon", "no place 'moon'; there are device, host, disk"),
        ("start reduce x -> y group () {}", "no collective 'reduce'; there are all_reduce"),
        ("receive x tensor<[n], float32> from 0 tag 0", "is no type"),
        ("free x[", "does not read"),
    ],
)
def test_what_does_not_parse_says_why(text, message):
    """The parser names what it did not understand, and a list's parser the line."""
    with pytest.raises(ValueError, match=message):
        parse_instruction(text)
    with pytest.raises(ValueError, match="line 2: "):
        InstructionList(()).with_text(f"free x\n{text}")


_FLY = '{"instructions": [{"do": "fly"}], "pieces": [], "given": {}}'


@pytest.mark.parametrize("text", ["{", "[]", '{"instructions": [], "pieces": []}', _FLY])
def test_foreign_json_is_refused(text):
    """What is no list is a ValueError, never a KeyError."""
    with pytest.raises(ValueError, match=r"no instruction list|unknown instruction|Expecting"):
        InstructionList.from_json(text)


def _both(lists, functions, values):
    """What threads compute, which walking in step computes, too."""
    threads = run_on_threads(lists, functions, [dict(v) for v in values])
    steps = run_in_step(lists, functions, [dict(v) for v in values])
    for one, other in zip(threads, steps, strict=True):
        assert one.keys() == other.keys()
        for ref, array in one.items():
            np.testing.assert_array_equal(array, other[ref])
    return threads


def test_every_collective_on_lists():
    """Each collective gives what numpy gives, on threads and in step."""
    size, rows = 3, TensorType([6, 2], "float64")
    values = [np.arange(12.0).reshape(6, 2) + 100 * r for r in range(size)]
    counts = [[(r + t) % 3 for t in range(size)] for r in range(size)]
    counts = [[c[0], c[1], 6 - c[0] - c[1]] for c in counts]
    taken = [[counts[s][r] for s in range(size)] for r in range(size)]
    pairs = tuple((r, (r + 1) % size) for r in range(size - 1))

    def one(rank):
        uneven = ("recv_counts", tuple(taken[rank])), ("send_counts", tuple(counts[rank]))
        starts = [
            Start("all_reduce", X, Ref("sum"), (), (("op", "sum"),)),
            Start("all_gather", X, Ref("all")),
            Start("reduce_scatter", X, Ref("part"), (0, 1, 2), (("op", "max"),)),
            Start("all_to_all", X, Ref("swap")),
            Start("all_to_all", X, Ref("uneven"), (), uneven),
            Start("broadcast", X, Ref("root"), (), (("root", 1),)),
            Start("permute", X, Ref("next"), (), (("pairs", pairs),)),
        ]  # fmt: skip
        return InstructionList((*starts, *(Wait(s.result) for s in reversed(starts))), {}, {X: rows})

    lists = [one(rank) for rank in range(size)]
    verify(lists)
    whole = np.stack(values)
    for rank, left in enumerate(_both(lists, [{}] * size, [{X: v} for v in values])):
        np.testing.assert_array_equal(left[Ref("sum")], whole.sum(0))
        np.testing.assert_array_equal(left[Ref("all")], whole.reshape(18, 2))
        np.testing.assert_array_equal(left[Ref("part")], whole.max(0)[2 * rank : 2 * rank + 2])
        np.testing.assert_array_equal(left[Ref("swap")], whole.reshape(3, 3, 2, 2)[:, rank].reshape(6, 2))
        parts = [np.split(v, np.cumsum(counts[s])[:-1])[rank] for s, v in enumerate(values)]
        np.testing.assert_array_equal(left[Ref("uneven")], np.concatenate(parts))
        np.testing.assert_array_equal(left[Ref("root")], values[1])
        np.testing.assert_array_equal(left[Ref("next")], values[rank - 1] if rank else np.zeros((6, 2)))


def test_values_move_to_host_and_disk_and_back(tmp_path):
    """A value that was away has its bits when it is back; its memory is counted where it is."""
    there = (Move(X, "host"), Move(X, "disk"), Move(X, "device"), Run("double", 0, 0))
    one = InstructionList(
        there, {("double", None): Signature((Port("x", T, "none"),), (Port("y", T, "none"),))}, {X: T}
    )
    checked = verify([one])
    assert checked.peaks[0][:3] == (32, 16, 16)
    (left,) = run_in_step([one], [{("double", None): lambda x: 2 * x}], [{X: np.arange(4, dtype=np.float32)}])
    assert left[Y].tolist() == [0, 2, 4, 6]


_UNNOTICED = ("no receive on rank", "waits for", "has no collective", "is still read", "is there already")
"""What a run without the check may not notice: leftovers, and memory that is reused too early."""


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_what_the_check_passes_runs_and_what_runs_passes_it(data):
    """Random lists, most of them wrong somewhere: the check and the runner come to the same verdict."""
    lists, values = random_lists(data.draw)
    try:
        verify(lists)
    except ScheduleError as error:
        if not any(text in str(error) for text in _UNNOTICED):
            with pytest.raises((InstructionError, ScheduleError, CommunicatorError)):
                run_in_step(lists, [pieces()] * len(lists), [dict(v) for v in values])
    else:
        _both(lists, [pieces()] * len(lists), values)


def test_a_piece_that_raises_is_named_with_rank_instruction_and_line():
    """The error of a piece comes with the place, on threads and in step; the other ranks end, too."""

    def broken():
        raise ZeroDivisionError("no rows")

    waits = InstructionList((Receive(X, T, 1), Wait(X)))
    fails = InstructionList((Run("f", 0, 3, line="model.py:7"),), {("f", None): Signature()})
    for runner in (run_on_threads, run_in_step):
        with pytest.raises(InstructionError, match=r"rank 1, instruction 0: run f\[0, 3\] at model.py:7: ZeroDivision"):
            runner([waits, fails], [{}, {("f", None): broken}], [{}, {}])
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rank-")]


def test_a_file_says_in_which_instruction_a_rank_is(tmp_path):
    """Each with its line, of one list and then of another; nothing outside of lists."""
    path, seen = str(tmp_path / "position"), []
    position = Position(path, 0)
    for name in ("f", "g"):
        runs = InstructionList(
            tuple(Run(name, 0, i, line=f"model.py:{i}") for i in range(2)), {(name, None): Signature()}
        )
        piece = {(name, None): lambda: seen.append(read_position(path))}
        run(runs, piece, {}, {(): SoloCommunicator()}, position=position)
        assert read_position(path) == ""
    assert seen == [f"instruction {i}: run {name}[0, {i}] at model.py:{i}" for name in "fg" for i in range(2)]
    assert read_position(str(tmp_path / "none")) == ""


@pytest.mark.parametrize("failing", [0, 1])
def test_a_rank_that_ends_in_any_instruction_ends_all(failing):
    """Each instruction of a pipeline in turn; the others' errors name what they waited in."""
    lists, types = lists_of(one_f_one_b(2, 2), 2, 2), given_types(one_f_one_b(2, 2), 2)
    for number in range(len(lists[failing].instructions)):

        def fail(place, _, number=number):
            if (place.rank, place.number) == (failing, number):
                raise OSError("gone")

        with pytest.raises((OSError, InstructionError), match="gone"):
            run_on_threads(lists, [functions(2)] * 2, values(types), observer=fail)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rank-")]


def test_a_piece_of_another_shape_than_its_signature_is_refused():
    """What a function gives is compared with the signature before anybody reads it."""
    one = InstructionList((Run("f"),), {("f", None): Signature((), (Port("y", T),))})
    for result, message in ((np.zeros(5, np.float32), r"gives y as float32 \[5\], not tensor"), ((), "gives 0 values")):
        with pytest.raises(InstructionError, match=message):
            run_in_step([one], [{("f", None): lambda result=result: result}], [{}])


def test_errors_of_ranks_that_run_unchecked_lists_name_the_instructions():
    """Without the check, ranks that disagree still end with both instructions named."""
    one = InstructionList((Start("all_reduce", X, Y, line="a.py:1"), Wait(Y)), {}, {X: T})
    other = InstructionList((Start("all_gather", X, Y, line="b.py:2"), Wait(Y)), {}, {X: T})
    values = [{X: np.ones(4, np.float32)}] * 2
    with pytest.raises(Exception, match=r"start all_reduce x -> y group \(\) \{\} at a.py:1.*at b.py:2"):
        run_on_threads([one, other], [{}, {}], values)
    alone = InstructionList((Receive(X, T, 1, line="c.py:3"), Wait(X)))
    with pytest.raises(RankFailure, match=r"receive x .* at c.py:3"):
        run_on_threads([alone, InstructionList(())], [{}, {}], [{}, {}])


def test_transfers_are_hidden_behind_computation_on_a_modelled_link():
    """A transfer that is started before a piece and waited for after it costs nothing more; waited for before, it does.
    The simulator gives the same times.
    """
    model = LinkModel.single_level(0.0, 1e5)  # 1.6 kB of an all-reduce of two: 16 ms
    type = TensorType([200], "float64")
    signature = {("compute", None): Signature()}
    started = Start("all_reduce", X, Y)
    hidden = InstructionList((started, Run("compute"), Wait(Y)), signature, {X: type})
    exposed = InstructionList((started, Wait(Y), Run("compute")), signature, {X: type})
    costs = Costs({"compute": 0.03}, model)
    assert simulate([hidden] * 2, costs).seconds == pytest.approx(0.03)
    assert simulate([exposed] * 2, costs).seconds == pytest.approx(0.046)

    def seconds(one):
        ends = {}
        begun = time.monotonic()
        run_on_threads(
            [one] * 2, [{("compute", None): lambda: time.sleep(0.03)}] * 2, [{X: np.zeros(200)}] * 2,
            lambda c: ModelledCommunicator(c, model),
            observer=lambda place, _: ends.__setitem__(place.rank, time.monotonic()),
        )  # fmt: skip
        return max(ends.values()) - begun

    assert min(seconds(exposed) for _ in range(3)) >= 0.046
    assert min(seconds(hidden) for _ in range(5)) < min(seconds(exposed) for _ in range(5))


def test_the_peak_that_the_check_predicts_is_what_a_run_has():
    """Bytes of the values there after each instruction: the check's peak is the run's."""
    lists, values = random_lists(None)
    peaks = [0] * len(lists)

    def observe(place, values):
        peaks[place.rank] = max(peaks[place.rank], sum(v.nbytes for v in values.values()))

    run_in_step(lists, [pieces()] * len(lists), values, observe)
    for peak, seen in zip(verify(lists).peaks, peaks, strict=True):
        assert seen <= peak.device
        assert peak.device - seen <= 16  # a receive's buffer is there before its value is
