"""Every primitive has each rule, or stands in a closed list with its reason."""

import pytest

from argosy_autograd.rules import NOT_APPLICABLE, jvp, vjp
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.reference.kernels import KERNELS

TABLES = [
    pytest.param(vjp, NOT_APPLICABLE, id="vjp"),
    pytest.param(jvp, NOT_APPLICABLE, id="jvp"),
    pytest.param(KERNELS, {}, id="reference"),
]


@pytest.mark.parametrize(("rules", "reasons"), TABLES)
def test_every_primitive_has_a_rule_or_a_reason(rules, reasons):
    assert PRIMITIVES.keys() - set(rules) == set(reasons)
    assert all(reason.strip() for reason in reasons.values())
