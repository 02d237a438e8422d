"""The pass manager: runs passes in order, verifies after each, dumps each, and reports the time."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from argosy_pir.errors import IRError, PassError
from argosy_pir.garbage import pause_collection
from argosy_pir.passes.pipeline import parse_pipeline
from argosy_pir.passes.printing import print_pipeline
from argosy_pir.rewrite.fuel import Session, observe
from argosy_pir.text.printer import print_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from argosy_pir.passes.registry import Pass
    from argosy_pir.program import Program


class PassTiming:
    """One run of one pass: ``seconds``, whether it ``changed`` anything, and the numbers of operations
    around it."""

    __slots__ = ("after", "before", "changed", "name", "seconds")

    def __init__(self, name: str, seconds: float, changed: bool, before: int, after: int) -> None:
        self.name = name
        self.seconds = seconds
        self.changed = changed
        self.before = before
        self.after = after


class PassManager:
    """Runs ``passes`` (or a pipeline's text) over programs.

    ``verify``: check the program before the first pass and after each. ``dump``: a folder that receives
    ``00-input.pir``, ``01-<pass>.pir``, ...; each file begins with the command that makes it from the one
    before.
    ``timing``: measure each pass, see :attr:`timings` and :meth:`timing_report`. ``fuel``: allow only so many
    transformation steps per :meth:`run`, or limit and count them in a ``session`` of the caller's; :attr:`session` then
    tells what was done.
    """

    def __init__(
        self,
        passes: Iterable[Pass] | str,
        verify: bool = True,
        dump: str | Path | None = None,
        timing: bool = False,
        fuel: int | None = None,
        session: Session | None = None,
    ) -> None:
        self.passes = tuple(parse_pipeline(passes) if isinstance(passes, str) else passes)
        self.verify = verify
        self.dump = None if dump is None else Path(dump)
        self.timing = timing
        self.fuel = fuel
        self.timings: list[PassTiming] = []
        self._given = session
        self.session = session or Session(fuel)

    def run(self, program: Program) -> bool:
        """Run all passes on ``program`` in place; True where anything changed.

        Raises ``PassError`` where a pass leaves an invalid program behind; what a pass raises itself comes
        through, with a note that names the pass.
        """
        self.timings = []
        self.session = self._given or Session(self.fuel)
        if self.verify:
            program.verify()
        previous = self._dump_input(program)
        changed = False
        with observe(self.session), pause_collection():
            for number, step in enumerate(self.passes, 1):
                changed |= self._run_one(step, program)
                previous = self._dump_result(program, step, number, previous)
                self._check(step, program, previous)
        return changed

    def timing_report(self) -> str:
        """A table of the last run: pass, milliseconds, operations before and after."""
        lines = [f"{'pass':<24}{'ms':>10}{'before':>8}{'after':>8}"]
        for t in self.timings:
            lines.append(f"{t.name:<24}{t.seconds * 1e3:>10.2f}{t.before:>8}{t.after:>8}")
        total = sum(t.seconds for t in self.timings)
        return "\n".join([*lines, f"{'total':<24}{total * 1e3:>10.2f}"])

    def _run_one(self, step: Pass, program: Program) -> bool:
        before = _count(program) if self.timing else 0
        start = perf_counter()
        try:
            changed = step.run(program)
        except Exception as error:
            error.add_note(f"in pass '{print_pipeline([step])}'")
            raise
        if self.timing:
            seconds = perf_counter() - start
            self.timings.append(PassTiming(step.name, seconds, changed, before, _count(program)))
        return changed

    def _check(self, step: Pass, program: Program, dumped: str) -> None:
        if not self.verify:
            return
        try:
            program.verify()
        except IRError as error:
            where = f"; see {dumped}" if dumped else ""
            message = f"pass '{print_pipeline([step])}' leaves an invalid program: {error}{where}"
            raise PassError(message) from error

    def _dump_input(self, program: Program) -> str:
        if self.dump is None:
            return ""
        self.dump.mkdir(parents=True, exist_ok=True)
        path = self.dump / "00-input.pir"
        path.write_text(f"// the input of {print_pipeline(self.passes)}\n{print_program(program)}", "utf-8")
        return str(path)

    def _dump_result(self, program: Program, step: Pass, number: int, previous: str) -> str:
        if self.dump is None:
            return ""
        path = self.dump / f"{number:02d}-{step.name}.pir"
        header = f"// python -m argosy_pir opt {_shell(previous)} -p {_shell(print_pipeline([step]))}\n"
        path.write_text(header + print_program(program), "utf-8")
        return str(path)


def _shell(text: str) -> str:
    from shlex import quote

    return quote(text)


def _count(program: Program) -> int:
    return sum(1 for _ in program.walk())
