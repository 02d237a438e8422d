"""Ranks that wait for each other come to one verdict, whoever comes first."""

import threading

import pytest

from argosy_hwadapt.agreement import Agreement, record
from argosy_hwadapt.errors import CollectiveMismatch, CommunicatorError, RankFailure
from argosy_hwadapt.waits import Waits


@pytest.mark.parametrize("ended", [False, True])
def test_the_last_rank_to_give_up_says_what_the_first_did(ended):
    """A rank whose look is older than the others' verdicts names all calls still, with the same kind of error."""
    memory = bytearray(Waits.nbytes(4))
    waits = [Waits(memory, rank, 4) for rank in range(4)]
    kind = RankFailure if ended else CollectiveMismatch
    errors: list[CommunicatorError] = []
    looks = []

    def run(rank):
        with pytest.raises(kind) as caught:
            waits[rank].wait(lambda: f"recv({rank})", lambda: {3 if ended else (rank + 1) % 3})
        errors.append(caught.value)

    def late_look(_before):
        states = waits[0]._states.copy()
        if not looks and (states[:3] % 2 == 1).all() and (states[:3] > 0).all():
            looks.append(states)
        if len(errors) == 2:
            raise waits[0]._verdict({0, 1, 2, 3} if ended else {0, 1, 2}, looks[0])

    waits[0]._look = late_look
    if ended:
        waits[3].leave("has ended its program")
    first = threading.Thread(target=run, args=(0,))
    first.start()
    others = [threading.Thread(target=run, args=(rank,)) for rank in (1, 2)]
    for thread in others:
        thread.start()
    for thread in (first, *others):
        thread.join()
    assert len(errors) == 3
    named = ["rank 3 has ended its program"] if ended else [f"rank {rank} waits in recv({rank})" for rank in range(3)]
    assert all(text in str(error) for error in errors for text in named), errors


def test_a_rank_that_has_started_much_waits_for_the_others_alone():
    """Ten calls of a group before the other member has made one: each waits for that one, none for its own rank, which
    would look like a circle. They are compared when the other comes."""
    memory = bytearray(Agreement.nbytes(2))
    agreements = [Agreement(memory, None, (0, 1), place) for place in range(2)]

    def start(place):
        return [agreements[place].compare(number, record("all_reduce()", "here")) for number in range(1, 11)]

    early, late = start(1), start(0)
    for _ in range(3):
        assert [next(each) for each in early] == [{0}] * 10
    calls, compared = [*early, *late], 0
    for _ in range(20):
        left = [each for each in calls if next(each, None) is not None]
        compared, calls = compared + len(calls) - len(left), left
    assert (compared, calls) == (20, [])
