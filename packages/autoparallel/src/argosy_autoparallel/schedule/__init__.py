"""Instruction lists: what a rank does in a step, as data that is checked, run and simulated.

A schedule makes a list for each rank; :func:`verify` refuses lists that cannot run, :func:`run` walks one over a
communicator, :func:`simulate` walks all with durations instead of data.
"""

from argosy_autoparallel.schedule.connect import connect
from argosy_autoparallel.schedule.instructions import (
    Free,
    Instruction,
    Move,
    Receive,
    Ref,
    Run,
    Send,
    Start,
    Update,
    Wait,
    parse_instruction,
)
from argosy_autoparallel.schedule.lists import InstructionList, Port, ScheduleError, Signature, groups_of
from argosy_autoparallel.schedule.position import Position, read_position
from argosy_autoparallel.schedule.programs import list_of, verify_programs
from argosy_autoparallel.schedule.runner import InstructionError, open_groups, run, run_in_step, run_on_threads
from argosy_autoparallel.schedule.simulator import Costs, Simulation, simulate
from argosy_autoparallel.schedule.verify import VerificationResult, verify

__all__ = [
    "Costs",
    "Free",
    "Instruction",
    "InstructionError",
    "InstructionList",
    "Move",
    "Port",
    "Position",
    "Receive",
    "Ref",
    "Run",
    "ScheduleError",
    "Send",
    "Signature",
    "Simulation",
    "Start",
    "Update",
    "VerificationResult",
    "Wait",
    "connect",
    "groups_of",
    "list_of",
    "open_groups",
    "parse_instruction",
    "read_position",
    "run",
    "run_in_step",
    "run_on_threads",
    "simulate",
    "verify",
    "verify_programs",
]  # fmt: skip
