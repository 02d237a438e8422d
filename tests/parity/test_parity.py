"""argosy gives what the recorded wheel gave: values, dtypes, shapes and first gradients of every case."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

import pytest

import argosy as paddle
from argosy_phi_ops.declare.aliases import ALIASES
from argosy_phi_ops.declare.index import MODULES
from parity.case import Case
from parity.cases import FAMILIES, UNCOVERED, cases_of
from parity.compare import differences, distribution_differences
from parity.known_differences import ABSENT, DIFFERENCES
from parity.records import digest, load
from parity.runner import Outcome, attribute, run_case

ALL = [pytest.param(family, case, id=case.id) for family in FAMILIES for case in cases_of(family)]


@cache
def _records(family: str) -> dict[str, tuple[str, Outcome]]:
    return load(family)


def _operator(target: str) -> str:
    """What a target applies: ``add`` for ``Tensor.add_`` and ``Tensor.__add__``."""
    name = target.rpartition(".")[2].strip("_")
    return ALIASES.get(name, name)


def _is_there(target: str) -> bool:
    try:
        attribute(paddle, target)
    except AttributeError:
        return False
    return True


def _matches(case_id: str, pattern: str) -> bool:
    return case_id == pattern or fnmatchcase(case_id, pattern.replace("[", "[[]"))


def _reason(case_id: str) -> str:
    return next((reason for pattern, reason in DIFFERENCES.items() if _matches(case_id, pattern)), "")


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize(("family", "case"), ALL)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_argosy_agrees_with_the_wheel(family: str, case: Case) -> None:
    """Where the wheel gives a result, argosy gives the same; a known difference must be one."""
    recorded = _records(family).get(case.id)
    assert recorded is not None, "no record of this case: run tests/parity/refresh.py"
    stamp, expected = recorded
    if case.target in ABSENT and not _is_there(case.target):
        return
    assert stamp == digest(case), "the case draws other inputs than its record: run tests/parity/refresh.py"
    found = run_case(paddle, case)
    if case.kind == "distribution":
        wrong = distribution_differences(expected, found)
    else:
        wrong = differences(expected, found, True, family == "narrow")
    reason = _reason(case.id)
    if reason:
        assert wrong, f"listed as a known difference ({reason}), but agrees: take it from the list"
    else:
        assert not wrong, "\n".join(wrong)


def test_every_operator_has_a_case() -> None:
    """No operator of the library is without a case, unless the wheel has nothing to compare it with."""
    used = {_operator(case.target) for family in FAMILIES for case in cases_of(family)}
    assert sorted(MODULES.keys() - used - UNCOVERED.keys()) == []
    assert sorted(used & UNCOVERED.keys()) == []


def test_what_is_listed_as_absent_is_absent() -> None:
    """A name that arrives leaves the list, so that it cannot get lost again."""
    assert [target for target in sorted(ABSENT) if _is_there(target)] == []


def test_the_known_differences_are_few_and_each_is_a_case() -> None:
    """At most one case in fifty is listed, and no line of the list is idle."""
    ids = [case.id for family in FAMILIES for case in cases_of(family)]
    listed = [i for i in ids if _reason(i)]
    assert len(listed) <= len(ids) / 50
    assert ABSENT <= {case.target for family in FAMILIES for case in cases_of(family)}
    assert [p for p in DIFFERENCES if not any(_matches(i, p) for i in ids)] == []
