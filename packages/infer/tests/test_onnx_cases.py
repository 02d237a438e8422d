"""The format's own cases of nodes, on the reference interpreter: those of plain tensors pass, but for a kept list."""

import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

from argosy_infer.onnx.testing import EXCLUDED, cases

ALL = list(cases())
PLAIN = [case for case in ALL if not case.kind]
COUNTED = [case for case in PLAIN if not case.exclusion]
if not ALL:
    pytest.skip("this onnx is not installed with its cases of nodes", allow_module_level=True)


@pytest.mark.parametrize("case", COUNTED[::12], ids=lambda case: case.name)
def test_a_case_of_a_node_passes(case):
    assert case.difference("reference") == ""


@pytest.mark.exhaustive
def test_all_cases_of_plain_tensors_pass():
    failed = {case.name: found for case in COUNTED if (found := case.difference("reference"))}
    assert failed == {}


def test_at_least_95_of_100_cases_of_plain_tensors_are_counted_and_each_reason_has_one():
    assert len(COUNTED) / len(PLAIN) >= 0.95
    assert {case.exclusion for case in PLAIN} - {""} == set(EXCLUDED.values())


@pytest.mark.parametrize(
    "case",
    [case for case in PLAIN if "random" not in case.exclusion and case.exclusion][::3],
    ids=lambda case: case.name,
)
def test_a_case_with_a_reason_does_not_pass(case):
    """What passes has no place in the list."""
    try:
        found = case.difference("reference")
    except NotImplementedError as error:
        found = str(error)
    assert found
