"""Every primitive has each rule, or stands in a closed list with its reason."""

import pytest

from argosy_phi_ops.primitives import PRIMITIVES


def tables():
    from argosy_autograd import rules
    from argosy_phi_ops.reference.kernels import KERNELS

    yield pytest.param(rules.VJP.keys(), rules.NOT_APPLICABLE["vjp"], id="vjp")
    yield pytest.param(rules.JVP.keys(), rules.NOT_APPLICABLE["jvp"], id="jvp")
    yield pytest.param(KERNELS.keys(), {}, id="reference")


@pytest.mark.parametrize(("rules", "reasons"), tables())
def test_every_primitive_has_a_rule_or_a_reason(rules, reasons):
    assert PRIMITIVES.keys() - set(rules) == set(reasons)
    assert all(reason.strip() for reason in reasons.values())
