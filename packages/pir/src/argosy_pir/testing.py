"""The conformance kit: what must hold for any program, dialect and pass, for tests of other packages."""

from __future__ import annotations

from argosy_pir.dialect import Dialect, get_definition
from argosy_pir.equality import structurally_equal
from argosy_pir.passes.pipeline import parse_pipeline
from argosy_pir.passes.printing import print_pipeline
from argosy_pir.program import Program, from_bytes
from argosy_pir.serialization import to_bytes
from argosy_pir.text.printer import print_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argosy_pir.passes.registry import Pass


def check_program(program: Program) -> None:
    """``program`` is valid, and text, bytes and clones give it back; raises ``AssertionError`` or
    ``VerifyError``."""
    program.verify()
    text = print_program(program)
    for kind, other in (
        ("text", Program.parse(text)),
        ("binary form", from_bytes(to_bytes(program))),
        ("clone", program.clone()),
    ):
        other.verify()
        if not structurally_equal(program, other, locations=True) or print_program(other) != text:
            raise AssertionError(f"the {kind} of program '{program.name}' differs from it:\n{text}\n{other}")


def check_pass(step: Pass, program: Program) -> Program:
    """``step`` leaves a valid program, tells the truth about changing it, and prints as it parses.

    Works on a copy and returns it; raises ``AssertionError`` or ``VerifyError``.
    """
    text = print_pipeline([step])
    if parse_pipeline(text) != [step]:
        raise AssertionError(f"pipeline {text!r} does not read back as the pass it was printed from")
    result = program.clone()
    changed = step.run(result)
    check_program(result)
    if not changed and print_program(result) != print_program(program):
        raise AssertionError(f"pass '{text}' changed program '{program.name}' but says that it did not")
    return result


def check_dialect(dialect: Dialect, program: Program) -> None:
    """``program`` uses every operation ``dialect`` lists, and passes :func:`check_program`."""
    check_program(program)
    used = {op.name for op in program.walk()}
    missing = sorted(set(dialect.ops) - used)
    if missing:
        raise AssertionError(f"the example program of dialect '{dialect.name}' lacks {', '.join(missing)}")
    strangers = sorted(name for name in used if name.startswith(dialect.name + ".") and get_definition(name) is None)
    if strangers:
        raise AssertionError(f"dialect '{dialect.name}' is not registered, or has no {', '.join(strangers)}")
