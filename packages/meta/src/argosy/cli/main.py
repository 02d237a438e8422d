"""Arguments of the command, and which function answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from argosy.__about__ import __version__

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="argosy", description="The argosy deep-learning framework.")
    parser.add_argument("--version", action="version", version=f"argosy {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("run-check", help="train a tiny model eagerly and compiled, and compare")
    check.add_argument("--backend", default="CINN", help="compiler to check (default: CINN)")
    commands.add_parser("info", help="versions of argosy's packages, of what they use, and of the machine")
    devices = commands.add_parser("devices", help="devices that can be opened here")
    devices.add_argument("--why", action="store_true", help="say of the others why they cannot")
    commands.add_parser("launch", help="run a script as several ranks", add_help=False)
    commands.add_parser("bisect", help="find the optimisation that makes a command fail", add_help=False)
    commands.add_parser("explain", help="show what a function of a script is compiled to", add_help=False)
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["launch"]:
        from argosy.distributed.launch.command import main as launch

        return launch(given[1:], "argosy launch")
    if given[:1] == ["bisect"]:
        from argosy_cinn.tools.bisect import main as bisect

        return bisect(given[1:])
    if given[:1] == ["explain"]:
        from argosy.cli.explain import main as explain

        return explain(given[1:])
    chosen = parser.parse_args(given)
    if chosen.command == "run-check":
        from argosy.cli.check import run_check

        return run_check(chosen.backend)
    from argosy.cli import report

    return report.show_info() if chosen.command == "info" else report.show_devices(chosen.why)
