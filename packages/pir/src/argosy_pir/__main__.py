"""The command line: ``python -m argosy_pir {opt,print,check,reduce} FILE``.

Files are programs as text or binary; ``-`` is standard input. Output is text, or binary where the name given
with
``-o`` ends in ``.pirb``.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from argosy_pir.binary.format import MAGIC
from argosy_pir.errors import IRError
from argosy_pir.passes.manager import PassManager
from argosy_pir.passes.registry import available_passes
from argosy_pir.program import Program, from_bytes
from argosy_pir.reduce import fails_command, reduce_program
from argosy_pir.serialization import to_bytes
from argosy_pir.text.printer import print_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def load(file: str) -> Program:
    """The program in ``file``, text or binary; raises ``ParseError`` or ``FormatError``."""
    return _read(file, Program.parse)


def _read(file: str, parse: Callable[[str, str], Program]) -> Program:
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    if data[: len(MAGIC)] == MAGIC:
        return from_bytes(data)
    return parse(data.decode("utf-8", "replace"), "<stdin>" if file == "-" else file)


def save(program: Program, file: str | None, locations: bool = True, elide_above: int | None = None) -> None:
    """Write ``program`` to ``file``, or print it."""
    if file is not None and file.endswith(".pirb"):
        Path(file).write_bytes(to_bytes(program))
        return
    text = print_program(program, locations, elide_above)
    if file is None:
        sys.stdout.write(text)
    else:
        Path(file).write_text(text, "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 where it went well, 1 for an invalid program, 2 for wrong arguments."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (IRError, OSError) as error:
        sys.stderr.write("".join(f"{line}\n" for line in (str(error), *getattr(error, "__notes__", ()))))
        return 1
    return 0


def _opt(options: argparse.Namespace) -> None:
    manager = PassManager(
        options.pipeline, verify=options.verify, dump=options.dump, timing=options.timing, fuel=options.fuel
    )
    program = load(options.file)
    manager.run(program)
    save(program, options.output)
    if options.timing:
        sys.stderr.write(manager.timing_report() + "\n")
    if options.statistics or options.fuel is not None:
        for step, count in sorted(manager.session.statistics.items()):
            sys.stderr.write(f"{count:8} {step}\n")
    if options.fuel is not None:
        sys.stderr.write(f"last step: {manager.session.last}\n")


def _print(options: argparse.Namespace) -> None:
    save(load(options.file), options.output, options.locations, options.elide)


def _check(options: argparse.Namespace) -> None:
    program = _read(options.file, partial(Program.parse, verify=True))
    program.verify()
    count = sum(1 for _ in program.walk())
    sys.stdout.write(f"{options.file}: valid, {count} operations, {len(program.functions)} functions\n")


def _reduce(options: argparse.Namespace) -> None:
    program = load(options.file)
    fails = fails_command(options.test, options.match)
    if not fails(program):
        raise IRError(f"{options.file}: the test command does not fail on this program")
    save(reduce_program(program, fails), options.output)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m argosy_pir", description="Look at and transform programs.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    opt = _command(commands, "opt", _opt, "run passes on a program")
    opt.add_argument("-p", "--pipeline", default="", help=f"such as cse,dce; passes: {', '.join(available_passes())}")
    opt.add_argument("--verify", action=argparse.BooleanOptionalAction, default=True, help="verify after each pass")
    opt.add_argument("--dump", metavar="DIR", help="write the program after each pass")
    opt.add_argument("--timing", action="store_true", help="report the time of each pass")
    opt.add_argument("--statistics", action="store_true", help="report how often each step was applied")
    opt.add_argument("--fuel", type=int, metavar="N", help="allow the first N transformation steps only")
    show = _command(commands, "print", _print, "print a program")
    show.add_argument("--locations", action=argparse.BooleanOptionalAction, default=True)
    show.add_argument("--elide", type=int, metavar="BYTES", help="elide constants of more bytes")
    _command(commands, "check", _check, "parse and verify a program", output=False)
    shrink = _command(commands, "reduce", _reduce, "shrink a program while a command keeps failing on it")
    shrink.add_argument("--test", required=True, metavar="COMMAND", help="shell command; {} stands for the file")
    shrink.add_argument("--match", metavar="REGEX", help="the command's output must match this, too")
    return parser


def _command(commands: object, name: str, run: object, text: str, output: bool = True) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)  # type: ignore[attr-defined]
    parser.add_argument("file", help="a program; - for standard input")
    if output:
        parser.add_argument("-o", "--output", metavar="FILE", help="where to write; .pirb for binary")
    parser.set_defaults(run=run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
