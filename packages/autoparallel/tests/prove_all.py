"""The brute force over every operator, in shards and with a record: ``python prove_all.py --shard 1/2``.

What ``proven.json`` records and has not changed since (by the operator's programs) is not proven again, so an
interrupted run is taken up where it stopped, and a new operator takes seconds.
"""

import argparse
import fcntl
import hashlib
import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from prover import MESHES, Proven, calls, laid_out, prove
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

from argosy_phi_ops.index import MODULES
from argosy_phi_ops.operator import get_operator
from argosy_pir import TensorType

RECORD = Path(__file__).with_name("proven.json")


class Recorded(NamedTuple):
    """What the record holds of an operator on a mesh: the fields of :class:`Proven`, and the run's ``--limit``."""

    cases: int
    possible: int
    uneven: int
    partial: int
    limit: int


def fingerprint(name):
    """Of the programs of an operator's samples: another one, when its declaration changed what it computes."""
    op, digest = get_operator(name), hashlib.sha256()
    for _, operands, attributes, _ in calls(name):
        arrays = [operands[i].payload.array() for i in laid_out(operands)]
        digest.update(repr([(a.shape, str(a.dtype)) for a in arrays]).encode())
        if not op.opaque:
            digest.update(str(op.expand(_types(operands), attributes).program).encode())
    return digest.hexdigest()[:12]


def _types(operands):
    return [TensorType(tuple(x.shape), x.dtype.name) if hasattr(x, "payload") else TensorType((), "float32")
            for x in operands]  # fmt: skip


def read(path):
    """The record: from operators to ``program``, their fingerprint, and by mesh the fields of :class:`Recorded`."""
    text = path.read_text() if path.exists() else ""
    return json.loads(text) if text else {}


def write(path, name, entry):
    """Put an operator's entry into the record, which other shards write, too; one line each, sorted."""
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        table = json.loads(text) if text else {}
        old = table.get(name, {})
        table[name] = {**old, **entry} if old.get("program") == entry["program"] else entry
        file.truncate(0)
        lines = [f"{json.dumps(key)}: {json.dumps(table[key])}" for key in sorted(table)]
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


def is_proven(entry, program, mesh, limit):
    """Whether an entry holds as much as a run with ``limit`` layouts a sample would give."""
    if entry.get("program") != program or mesh not in entry:
        return False
    found = Recorded(*entry[mesh])
    return found.cases == found.possible or found.limit >= limit


def work(options):
    """What is to be proven, in order: (operator, its fingerprint, mesh)."""
    part, parts = map(int, options.shard.split("/"))
    names = options.names.split(",") if options.names else sorted(MODULES)
    record = read(options.record)
    for mesh in options.meshes.split(","):
        for name in names[part - 1 :: parts]:
            if calls(name):
                program = fingerprint(name)
                if not is_proven(record.get(name, {}), program, mesh, options.limit):
                    yield name, program, mesh


def run(options, console):
    """Prove and record; returns the number of failures."""
    todo, failures = list(work(options)), 0
    with Progress(*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn(),
                  console=console) as progress:  # fmt: skip
        task = progress.add_task("", total=len(todo))
        for name, program, mesh in todo:
            progress.update(task, description=f"{name} on {mesh}")
            try:
                found = prove([name], MESHES[mesh], options.limit, seed=options.seed, timeout=3600)[name]
            except Exception as error:  # noqa: BLE001  the other operators are proven nevertheless
                failures += 1
                progress.console.print(f"FAILED {name} on {mesh}: {error}\n{getattr(error, '__notes__', '')}")
            else:
                write(options.record, name, {"program": program, mesh: [*found, options.limit]})
            progress.advance(task)
    return failures


def summary(record):
    """One line for each mesh: operators, layouts tried and possible, uneven and partial ones."""
    for mesh in MESHES:
        entries = [Recorded(*entry[mesh]) for entry in record.values() if mesh in entry]
        total = {field: sum(getattr(entry, field) for entry in entries) for field in Proven._fields}
        whole = sum(entry.cases == entry.possible for entry in entries)
        yield f"mesh {np.asarray(MESHES[mesh]).shape}: {len(entries)} operators, {whole} of them wholly, {total}"


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shard", default="1/1", help="this part of so many")
    parser.add_argument("--meshes", default=",".join(MESHES))
    parser.add_argument("--names", default="", help="operators, separated by commas (default: all)")
    parser.add_argument("--limit", type=int, default=400, help="layouts a sample at most, then by chance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args()
    console = Console()
    failures = run(options, console)
    console.print(*summary(read(options.record)), sep="\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
