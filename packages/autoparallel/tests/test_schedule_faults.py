"""The static check finds planted faults, each named with the ranks, instructions and lines that it is about."""

from pathlib import Path

import pytest
from stages import lists_of

from argosy_autoparallel.pipeline.schedules import one_f_one_b
from argosy_autoparallel.schedule import InstructionList, Port, Ref, ScheduleError, Signature, verify
from argosy_pir.types import TensorType

T = TensorType([4], "float32")
ROWS = TensorType([6, 2], "float32")
PIECES = {
    ("f", None): Signature((Port("x", T, "none"),), (Port("y", T, "none"),)),
    ("grow", None): Signature((Port("x", T, "none"),), (Port("x", T, "none"),)),
    ("wide", None): Signature((Port("x", ROWS, "none"),), ()),
    ("step", None): Signature((Port("w", T, "chunk"),), (Port("w", T, "chunk"),)),
    ("each", None): Signature((Port("x", T, "microbatch"),), ()),
}
GIVEN = {Ref("x"): T, Ref("w", (0,)): T, Ref("rows"): ROWS, Ref("odd"): TensorType([5], "float32")}


def _faults():
    """The blocks of the file: a name, the text of each rank's list, and what is said of them."""
    found = {}
    for block in (Path(__file__).parent / "schedule_faults.txt").read_text().split("== ")[1:]:
        name, *ranks, error = block.split("\n-- ")
        found[name] = [text.partition("\n")[2] for text in ranks], error.splitlines()[1]
    return found


FAULTS = _faults()


@pytest.mark.parametrize(("texts", "message"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_found(texts, message):
    """Each is refused before anything runs, with the places it is about."""
    with pytest.raises(ScheduleError, match=message):
        verify([_list(text) for text in texts])


def _list(text):
    return InstructionList((), PIECES, GIVEN).with_text(text)


def test_there_are_thirty():
    """As many as were asked for, and a list without a fault passes."""
    assert len(FAULTS) >= 30
    good = _list("run f[0, 0]\nsend y to 1 tag 0\nupdate step[0]\nfree y")
    other = _list("receive y tensor<[4], float32> from 0 tag 0\nwait y")
    assert verify([good, other]).left[1] == (*GIVEN, Ref("y"))


def test_each_dropped_instruction_of_a_pipeline_is_seen():
    """Without one of its instructions a pipeline is refused, but for frees, which cost memory."""
    lists = lists_of(one_f_one_b(3, 4), 3, 4)
    peak = verify(lists).peaks
    for rank, one in enumerate(lists):
        for at, instruction in enumerate(one.instructions):
            shorter = InstructionList(one.instructions[:at] + one.instructions[at + 1 :], one.pieces, one.given)
            changed = [shorter if r == rank else other for r, other in enumerate(lists)]
            if type(instruction).__name__ == "Free":
                assert verify(changed).peaks[rank].device >= peak[rank].device
            elif not (
                type(instruction).__name__ == "Run" and instruction.piece == "backward" and not _read_later(one, at)
            ):
                with pytest.raises(ScheduleError, match=f"rank {rank}|rank"):
                    verify(changed)


def _read_later(one, at):
    """Whether what the run at ``at`` makes, the gradient of its input, is sent: the first stage's is not."""
    return any(type(i).__name__ == "Send" for i in one.instructions[at + 1 : at + 2])
