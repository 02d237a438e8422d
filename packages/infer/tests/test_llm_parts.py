"""The block allocator never leaks; sampling follows its options."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy_infer.errors import LogitsError
from argosy_infer.llm.beams import BeamOptions, BeamSearch
from argosy_infer.llm.continuation import Continuation
from argosy_infer.llm.kv_cache import BlockAllocator, CacheFull
from argosy_infer.llm.sampling import SamplingOptions, sample


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40)), max_size=60))
def test_blocks_are_owned_once_and_all_come_back(steps):
    """Whatever is reserved and released, every block is free or in exactly one table."""
    allocator = BlockAllocator(12, 4)
    for sequence, tokens in steps:
        before = {s: list(t) for s, t in allocator.tables.items()}
        if tokens % 7 == 6:
            allocator.release(sequence)
            continue
        try:
            allocator.reserve(sequence, tokens)
        except CacheFull:
            assert allocator.tables == before
        held = [b for table in allocator.tables.values() for b in table]
        assert sorted(held + allocator.free) == list(range(12))
    for sequence in list(allocator.tables):
        allocator.release(sequence)
    assert sorted(allocator.free) == list(range(12))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 20), st.integers(0, 20)), max_size=40))
def test_sequences_that_share_blocks_keep_what_they_wrote(steps):
    """Forks, tokens written anew or further on, and releases: each sequence reads what it, or the one that it goes on
    from, has written, whatever the others write then."""
    allocator, memory, texts = BlockAllocator(14, 4), np.zeros((14, 4), int), dict[int, list[int]]()
    for number, (sequence, other, start, more) in enumerate(steps):
        if sequence in texts and more % 5 == 4:
            allocator.release(sequence)
            del texts[sequence]
        elif other in texts and sequence not in texts and more % 2:
            allocator.fork(other, sequence)
            texts[sequence] = list(texts[other])
        else:
            text = texts.get(sequence, [])
            start = min(start, len(text))
            wanted, before = text[:start] + [100 * number + i for i in range(more + 1)], dict(allocator.tables)
            try:
                copies = allocator.reserve(sequence, len(wanted), start)
            except CacheFull:
                assert allocator.tables == before
                continue
            for source, target in copies:
                memory[target] = memory[source]
            for place in range(start, len(wanted)):
                memory[allocator.tables[sequence][place // 4], place % 4] = wanted[place]
            texts[sequence], allocator.lengths[sequence] = wanted, len(wanted)
        held = {block for table in allocator.tables.values() for block in table}
        assert sorted([*held, *allocator.free]) == list(range(14))
        for each, text in texts.items():
            read = [int(memory[allocator.tables[each][i // 4], i % 4]) for i in range(len(text))]
            assert read == text
    for sequence in list(texts):
        allocator.release(sequence)
    assert (sorted(allocator.free), allocator.others) == (list(range(14)), {})


@pytest.mark.parametrize("penalty", [0.0, 1.0, -0.5])
@pytest.mark.parametrize("ends", [(), (1,)])
def test_a_search_with_enough_beams_finds_the_best_of_all_texts(penalty, ends):
    """As many beams as there are texts: the best ones are those of all, tokens by their own probabilities."""
    logits = np.random.default_rng(3).standard_normal((40, 3)) * 2
    text = Continuation([0], 3, ends=ends)
    search = BeamSearch(text, BeamOptions(27, penalty, "never"))

    def row(tokens):
        return logits[sum((token + 1) * 3**i for i, token in enumerate(tokens))]

    while search.advance(np.stack([row(beam.tokens) for beam in search.open])):
        assert len(search.open) <= 27
    every = {}
    for choice in itertools.product(range(3), repeat=3):
        length = next((i + 1 for i, token in enumerate(choice) if token in ends), 3)
        shares = [row(choice[:i])[choice[i]] - np.logaddexp.reduce(row(choice[:i])) for i in range(length)]
        made = tuple(token for token in choice[:length] if token not in ends)
        every[made] = sum(shares) / length**penalty
    wanted = sorted(every.items(), key=lambda item: -item[1])
    got = [(tuple(beam.tokens), beam.score) for beam in search.ended]
    assert [tokens for tokens, _ in got[:5]] == [tokens for tokens, _ in wanted[:5]]
    np.testing.assert_allclose([score for _, score in got[:5]], [score for _, score in wanted[:5]], rtol=1e-9)


def test_beams_that_mean_nothing_are_refused():
    for wrong, message in (
        ({"count": 0}, "num_beams should be 1 or more, got 0"),
        ({"length_penalty": float("nan")}, "length_penalty should be a number"),
        ({"early_stopping": "soon"}, "early_stopping is True, False or 'never'"),
    ):
        with pytest.raises(ValueError, match=message):
            BeamOptions(**wrong)
    with pytest.raises(NotImplementedError, match="beams are not drawn"):
        BeamSearch(Continuation([0], 3, SamplingOptions(1.0)), BeamOptions(2))
    for penalty in (1e9, -1e9):  # a power that no float is
        search = BeamSearch(Continuation([0], 3), BeamOptions(2, penalty))
        while search.advance(np.zeros((len(search.open), 3))):
            pass
        assert [len(beam.tokens) for beam in search.ended] == [3, 3]
    with pytest.raises(LogitsError):
        BeamSearch(Continuation([0], 3), BeamOptions(2)).advance(np.array([[0.0, np.nan]]))


def test_a_full_cache_says_what_is_missing():
    allocator = BlockAllocator(2, 4)
    with pytest.raises(CacheFull, match="needs 3 more blocks of 4 tokens, 2 of 2 are free"):
        allocator.reserve(0, 9)


def test_temperature_zero_is_the_first_maximum():
    assert sample(np.array([0.0, 3.0, 3.0]), SamplingOptions(), 0) == 1


def test_top_k_and_top_p_leave_out_the_unlikely():
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05]))
    for options, allowed in (
        (SamplingOptions(1.0, top_k=2), {0, 1}),
        (SamplingOptions(1.0, top_p=0.79), {0, 1}),
        (SamplingOptions(1.0, top_p=0.4), {0}),
    ):
        assert {sample(logits, options, position) for position in range(200)} == allowed


def test_draws_have_the_probabilities_of_the_softmax():
    probabilities = np.array([0.5, 0.3, 0.15, 0.05])
    options = SamplingOptions(1.0, seed=3)
    draws = np.bincount([sample(np.log(probabilities), options, i) for i in range(4000)], minlength=4) / 4000
    np.testing.assert_allclose(draws, probabilities, atol=0.03)


@pytest.mark.parametrize("wrong", [{"temperature": -1.0}, {"top_k": -1}, {"top_p": 0.0}, {"temperature": float("nan")}])
def test_options_out_of_range_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SamplingOptions(**wrong)


def test_logits_that_no_token_can_be_chosen_from_are_refused():
    """NaN used to win greedily, and to leave itself out of draws."""
    nothing, infinite = np.full(4, -np.inf), np.array([0.0, np.inf, 1.0])
    for temperature in (0.0, 1.0):
        options = SamplingOptions(temperature, top_k=2)
        with pytest.raises(LogitsError, match=r"position 5: 1 of 3 are NaN"):
            sample(np.array([0.0, np.nan, 9.0], np.float32), options, 5)
        with pytest.raises(LogitsError, match=r"position 0: 4 of 4 are minus infinity"):
            sample(nothing, options, 0)
        assert sample(np.array([-np.inf, 0.0]), options, 0) == 1
    assert sample(infinite, SamplingOptions(), 0) == 1
    with pytest.raises(LogitsError, match=r"1 of 3 are infinite"):
        sample(infinite, SamplingOptions(1.0), 0)


LOGITS = np.log([0.4, 0.3, 0.15, 0.1, 0.05])


@pytest.mark.parametrize(
    ("cut", "left"),
    [
        ({"min_p": 0.3}, {0, 1, 2}),
        ({"epsilon_cutoff": 0.12}, {0, 1, 2}),
        ({"eta_cutoff": 0.3}, {0, 1, 2}),  # sqrt(0.3) exp(-1.39) = 0.137
        ({"typical_p": 0.2}, {1}),  # the entropy is 1.39 = -log 0.25
        ({"typical_p": 0.5}, {0, 1}),
        ({"top_k": 4, "min_p": 0.3}, {0, 1, 2}),
        ({"top_k": 3, "top_p": 0.4}, {0}),  # 0.4 of 0.85
        ({"suppressed": (0, 3, 99)}, {1, 2, 4}),
    ],
)
def test_cutoffs_leave_the_tokens_that_they_should(cut, left):
    assert {sample(LOGITS, SamplingOptions(1.0, **cut), i) for i in range(400)} == left


@pytest.mark.parametrize(
    ("penalty", "expected"),
    [
        ({"repetition_penalty": 2.0}, [-4.0, 1.0, 0.25, 3.0]),
        ({"presence_penalty": 0.5}, [-2.0, 1.5, 0.5, 3.0]),
        ({"frequency_penalty": 0.5}, [-2.0, 1.0, 0.5, 3.0]),
        ({"no_repeat_ngram_size": 2}, [-2.0, 2.0, -np.inf, 3.0]),
        ({"bad_words": ((1, 3), (2, 0), (1,))}, [-2.0, -np.inf, 0.5, -np.inf]),
    ],
)
def test_penalties_change_the_scores_of_what_was_said(penalty, expected):
    """The prompt is 0 1 2, the answer so far 1 1; penalties on occurrences count the answer's tokens alone."""
    logits, said = np.array([-2.0, 2.0, 0.5, 3.0]), [0, 1, 2, 1, 1]
    if "ngram" in next(iter(penalty)):
        said, expected = [1, 2, 0, 1], [-2.0, 2.0, -np.inf, 3.0]
    options = SamplingOptions(**penalty)
    for first in range(4):  # the scores are found by what beats them
        for other in np.linspace(-5, 4, 37):
            offered = np.full(4, -100.0)
            offered[first] = logits[first]
            extended = np.append(offered, other)
            assert sample(extended, options, 9, said, 3) == (first if expected[first] >= other else 4)


def test_a_repeated_sequence_is_ruled_out_at_its_start_and_not_before():
    options = SamplingOptions(no_repeat_ngram_size=3)
    assert sample(np.array([5.0, 1.0]), options, 1, [0], 1) == 0
    assert sample(np.array([5.0, 1.0]), options, 5, [0, 0, 0, 1, 0], 5) == 0
    assert sample(np.array([5.0, 1.0, 0.0]), options, 6, [0, 0, 0, 1, 0, 0], 6) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_p": 1.5}, {"typical_p": 0}, {"epsilon_cutoff": 1}, {"eta_cutoff": -0.1}, {"repetition_penalty": 0},
        {"presence_penalty": float("nan")}, {"no_repeat_ngram_size": -1}, {"bad_words": ((),)},
        {"temperature": float("inf")},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SamplingOptions(**wrong)
