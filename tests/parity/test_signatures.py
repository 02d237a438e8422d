"""Functions and classes of argosy take their arguments as the wheel's do: names, order and defaults."""

from __future__ import annotations

import inspect
from fnmatch import fnmatchcase

import pytest

import argosy as paddle
from argosy_phi_ops.declare.operator import Operator
from parity.known_differences import ABSENT, SIGNATURES
from parity.runner import attribute
from parity.signatures import REQUIRED, Parameters, _shown, load_signatures, parameters_of

WHEEL = load_signatures()
PRESENT = sorted(WHEEL.keys() - ABSENT)


def _parameters(target: str) -> tuple[Parameters, set[str]]:
    """The positional parameters of argosy's ``target``, and all names that it takes."""
    found = attribute(paddle, target)
    if target.endswith("_"):  # an in-place form takes what its operator takes
        found = attribute(paddle, target[:-1])
    if isinstance(found, Operator):
        signature = found.signature
        visible = [p for p in signature.parameters if p.name not in signature.hidden]
        given = [[p.name, REQUIRED if type(p.default) is object else _shown(p.default)] for p in visible]
        return given, {p.name for p in visible} | set(signature.aliases)
    return parameters_of(paddle, target) or [], set(inspect.signature(found).parameters)


def _wrong(target: str) -> list[str]:
    ours, names = _parameters(target)
    wrong = []
    for place, (name, default) in enumerate(WHEEL[target]):
        if name not in names:
            wrong.append(f"{name} is not taken")
        elif place >= len(ours) or (ours[place][0] != name and name in [own for own, _ in ours]):
            wrong.append(f"{name} is not number {place}")
        elif ours[place][1] != default:
            wrong.append(f"{name} is {default} by default in the wheel, {ours[place][1]} in argosy")
    return wrong


@pytest.mark.parametrize("target", PRESENT)
def test_arguments_are_taken_as_the_wheel_takes_them(target: str) -> None:
    """Every positional parameter of the wheel has its name, its place and its default here."""
    reason = next((r for pattern, r in SIGNATURES.items() if fnmatchcase(target, pattern)), "")
    wrong = _wrong(target)
    if reason:
        assert wrong, f"listed as another signature ({reason}), but it is the wheel's: take it from the list"
    else:
        assert not wrong, "; ".join(wrong)
