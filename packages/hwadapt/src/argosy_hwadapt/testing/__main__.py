"""The commands ``python -m argosy_hwadapt.testing DEVICE [--level N] [--json] [--ablation]`` and
``... [DEVICE] --communicator NAME [--ranks N] [--link SECONDS,BYTES_PER_SECOND]``, also under an ``mpiexec``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from argosy_hwadapt.communicator import Communicator
from argosy_hwadapt.communicators import open_world
from argosy_hwadapt.inproc import run_ranks
from argosy_hwadapt.links import LinkModel, ModelledCommunicator
from argosy_hwadapt.registry import device, runtime
from argosy_hwadapt.testing.ablation import ablate
from argosy_hwadapt.testing.collectives import check_communicator
from argosy_hwadapt.testing.suite import LEVELS, Outcome, Subject, run_checks


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the kit and print its report; return 0 if no check failed."""
    options = _parser().parse_args(arguments)
    if options.communicator is not None:
        return _check_communicator(options)
    subject = Subject(options.device, runtime(options.device), device(options.device))
    outcomes = run_checks(subject, LEVELS if options.level is None else [options.level])
    report = _report(subject, outcomes)
    if options.ablation:
        report["interfaces"] = _count_interfaces(options.device)
    sys.stdout.write(json.dumps(report, indent=2) + "\n" if options.json else _as_text(report))
    return 1 if report["failed"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m argosy_hwadapt.testing", description="device conformance kit")
    parser.add_argument("device", nargs="?", default="cpu", help="an installed device plug-in, such as cpu or virtual")
    levels = ", ".join(f"{number} {name}" for number, name in LEVELS.items())
    parser.add_argument("--level", type=int, choices=list(LEVELS), help=f"run one level only: {levels}")
    parser.add_argument("--communicator", metavar="NAME", help="check this communicator, with buffers of the device")
    parser.add_argument("--ranks", type=int, default=4, help="threads, for the communicator inproc")
    parser.add_argument("--link", help="latency,bandwidth of a modelled link around the communicator")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--ablation", action="store_true", help="count the interfaces the reference run needs")
    return parser


def _check_communicator(options: argparse.Namespace) -> int:
    """Run the kit on every rank; rank 0 reports, and the others only what failed."""

    def program(communicator: Communicator) -> tuple[int, list[Outcome]]:
        if options.link is not None:
            communicator = ModelledCommunicator(
                communicator, LinkModel.single_level(*map(float, options.link.split(",")))
            )
        where = None if options.device == "cpu" else device(options.device)
        return communicator.rank, check_communicator(communicator, where)

    threads = options.communicator == "inproc"
    reports = run_ranks(program, options.ranks, timeout=600) if threads else [program(open_world(options.communicator))]
    failed = 0
    for rank, outcomes in reports:
        report = _count_outcomes(outcomes, device=f"rank {rank}", name=options.communicator)
        failed += report["failed"]
        if rank == 0 or report["failed"]:
            sys.stdout.write(json.dumps(report, indent=2) + "\n" if options.json else _as_text(report))
    return 1 if failed else 0


def _report(subject: Subject, outcomes: list[Outcome]) -> dict[str, Any]:
    return _count_outcomes(outcomes, device=str(subject.device), name=subject.device.info.name)


def _count_outcomes(outcomes: list[Outcome], **about: str) -> dict[str, Any]:
    counts = {status: sum(o.status == status for o in outcomes) for status in ("passed", "failed", "skipped")}
    checks = [{**outcome._asdict(), "seconds": round(outcome.seconds, 4)} for outcome in outcomes]
    return {**about, **counts, "checks": checks}


def _count_interfaces(name: str) -> dict[str, Any]:
    shared = runtime(name)
    ablation = ablate(name, lambda: shared)
    return {**ablation._asdict(), "strict_count": ablation.strict_count}


def _as_text(report: dict[str, Any]) -> str:
    lines = [f"{report['device']} ({report['name']})"]
    for each in report["checks"]:
        detail = f"  {each['detail']}" if each["detail"] else ""
        lines.append(f"  L{each['level']} {each['status']:7} {each['name'].replace('_', ' ')}{detail}")
    lines.append(f"{report['passed']} passed, {report['failed']} failed, {report['skipped']} skipped")
    if "interfaces" in report:
        counted = report["interfaces"]
        needed = ", ".join(counted["needed"])
        lines.append(f"interfaces by ablation: {counted['strict_count']} (the entry, {needed})")
        lines.append(f"required by the contract but unused by this run: {', '.join(counted['unused']) or 'none'}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
