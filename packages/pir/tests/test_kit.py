"""The conformance kit accepts what is right and names what is wrong."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from pir_programs import programs, steady

from argosy_pir import Dialect, OpDef, Program, register_dialect
from argosy_pir.passes import Pass, get_pass, register_pass
from argosy_pir.testing import check_dialect, check_pass, check_program

TEXT = "program @p(%x: token) { %0 = kit.a(%x) : token kit.b(%0) return(%0) }"


@register_pass("test-liar")
@dataclass(frozen=True)
class Liar(Pass):
    """Changes the program but says that it does not."""

    def run(self, program):
        program.attributes["changed"] = True
        return False


@steady
@given(programs())
def test_any_program_conforms(program):
    """Valid programs pass the check, and shipped passes keep them so."""
    if any(op.name == "builtin.return" and op.next is not None for op in program.walk()):
        return  # the generator also makes returns in the middle, which are invalid
    check_program(program)
    for name in ("canonicalize", "cse", "dce", "strip-locations", "symbol-dce"):
        check_pass(get_pass(name)(), program)


def test_lies_and_gaps_are_found():
    """A pass that hides a change, and an example that misses an operation, fail the check."""
    program = Program.parse(TEXT)
    with pytest.raises(AssertionError, match="says that it did not"):
        check_pass(Liar(), program)
    kit = register_dialect(Dialect("kit", [OpDef("kit.a", ["x"]), OpDef("kit.b", ["x"], results=0)]))
    check_dialect(kit, program)
    kit.add(OpDef("kit.c"))
    with pytest.raises(AssertionError, match=r"lacks kit\.c"):
        check_dialect(kit, program)
