"""The conformance kit: what must hold for any program, dialect and pass, for tests of other packages.

A *golden file* of a pass begins with the line ``// pipeline: cse,dce``; then come a program, the line
``// ----- becomes`` and the program that comes out. Write a new one without the second program and let ``check_golden``
add it (``update=True``, which this repository's tests pass when their environment says so); then read it.
"""

from __future__ import annotations

from argosy_pir.dialect import Dialect, get_definition
from argosy_pir.equality import structurally_equal
from argosy_pir.passes.manager import PassManager
from argosy_pir.passes.pipeline import parse_pipeline
from argosy_pir.passes.printing import print_pipeline
from argosy_pir.passes.registry import ENTRY_POINTS, get_pass
from argosy_pir.program import Program, from_bytes
from argosy_pir.serialization import to_bytes
from argosy_pir.text.printer import print_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from argosy_pir.passes.registry import Pass

_BECOMES = "// ----- becomes\n"


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
        if not structurally_equal(program, other, locations=True, annotations=True) or print_program(other) != text:
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


def check_golden(path: Path, locations: bool = False, again: bool = True, update: bool = False) -> None:
    """The pipeline of a golden file turns its first program into its second; raises ``AssertionError``.

    With ``again`` it has nothing left to do then. ``update`` writes the second program into the file.
    """
    before, _, after = path.read_text("utf-8").partition(_BECOMES)
    manager = PassManager(_pipeline(before))
    program = Program.parse(before, path.name)
    if not manager.run(program):
        raise AssertionError(f"{path.name}: the pipeline says that it changed nothing")
    text = print_program(program, locations)
    if update:
        path.write_text(f"{before.rstrip()}\n{_BECOMES}{text}", "utf-8")
    elif text != after:
        raise AssertionError(f"{path.name}: this comes out\n{text}\nand not\n{after}")
    if again and manager.run(program):
        raise AssertionError(f"{path.name}: the pipeline changes its own result:\n{print_program(program, locations)}")


def check_passes(package: str, golden: Iterable[Path]) -> None:
    """Every pass that ``package`` offers is found by its name, explained, and run by a ``golden`` file; raises
    ``AssertionError``."""
    from importlib.metadata import entry_points

    shown = {step.name for path in golden for step in parse_pipeline(_pipeline(path.read_text("utf-8")))}
    for point in entry_points(group=ENTRY_POINTS):
        if point.module.partition(".")[0] == package:
            found = get_pass(point.name)
            if (found.__module__, found.__name__) != (point.module, point.attr):
                raise AssertionError(f"pass '{point.name}' is {found.__module__}.{found.__name__}, not {point.value}")
            if "__doc__" not in vars(found) or point.name not in shown:
                raise AssertionError(f"pass '{point.name}' lacks a docstring or a golden file")


def _pipeline(text: str) -> str:
    return text.partition("\n")[0].removeprefix("// pipeline: ")


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
