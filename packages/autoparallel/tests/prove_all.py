"""The proofs of every operator, in shards and with a record: ``python prove_all.py --shard 1/2``.

By brute force (all layouts of an operator where there are at most ``--whole`` of them, else some by chance), or by
induction over steps (``--steps``: all layouts of every operator in minutes). What ``proven.json`` records and has not
changed since (by the operator's programs) is not proven again, so an interrupted run is taken up where it stopped, and
a new operator takes seconds.
"""

import argparse
import fcntl
import hashlib
import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from prover import MESHES, STEP_MESHES, Proven, calls, combinations, laid_out
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn
from steps import Steps, alone, choices, steps_of
from whole import prove_whole

from argosy_autoparallel import ProcessMesh
from argosy_phi_ops.declare.index import MODULES
from argosy_phi_ops.declare.operator import get_operator
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
    """Whether an entry holds as much as a run with ``limit`` layouts a sample (None: all) would give."""
    if entry.get("program") != program or mesh not in entry:
        return False
    found = Recorded(*entry[mesh])
    return found.cases == found.possible or (limit is not None and found.limit >= limit)


def possible(name, mesh):
    """How many layouts the samples of an operator have on a mesh."""
    ndim = np.asarray(MESHES[mesh]).ndim
    return sum(combinations([ops[i].payload.array() for i in laid_out(ops)], ndim) for _, ops, _, _ in calls(name))


def few_steps(name):
    """How many steps an operator has on two ranks, by which those with the fewest come first."""
    needed, mesh = steps_of(name), ProcessMesh([0, 1])
    count = sum(len(choices(alone(x)[1], mesh, needed.kinds)) for x in needed.applications)
    return count + sum(len(x.shape) ** 2 for x in needed.values)


class Task(NamedTuple):
    """Something to be proven: an operator with its fingerprint on a mesh, all layouts (None) or so many a sample."""

    name: str
    program: str
    mesh: str
    limit: int | None
    price: int


def work(options):
    """What is to be proven: where there are fewest layouts, of the shortest programs, first."""
    part, parts = map(int, options.shard.split("/"))
    names = options.names.split(",") if options.names else sorted(MODULES)
    record, found = read(options.record), []
    for mesh in options.meshes.split(","):
        for name in names[part - 1 :: parts]:
            if not calls(name):
                continue
            program, entry = fingerprint(name), record.get(name, {})
            if options.steps:
                if entry.get("program") != program or f"steps {mesh}" not in entry:
                    found.append(Task(name, program, mesh, None, few_steps(name) * np.asarray(STEP_MESHES[mesh]).size))
                continue
            layouts = possible(name, mesh)
            limit = None if layouts <= options.whole else options.limit
            if not is_proven(entry, program, mesh, limit):
                longest = max(primitives for *_, primitives in calls(name))
                found.append(Task(name, program, mesh, limit, layouts * (longest + 2)))
    return sorted(found, key=lambda task: task.price)


def run(options, console):
    """Prove and record; returns the number of failures."""
    todo, failures = work(options), 0
    steps = {mesh: Steps(ranks, options.seed) for mesh, ranks in STEP_MESHES.items()}
    with Progress(*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn(),
                  console=console) as progress:  # fmt: skip
        bar = progress.add_task("", total=len(todo))
        for task in todo:
            name, mesh = task.name, task.mesh
            progress.update(bar, description=f"{name} on {mesh}")
            try:
                if options.steps:
                    made = {f"steps {mesh}": steps[mesh].prove(name)}
                else:
                    found = prove_whole(name, MESHES[mesh], task.limit, options.seed)
                    made = {mesh: [*found, task.limit or found.cases]}
            except Exception as error:  # noqa: BLE001  the other operators are proven nevertheless
                failures += 1
                progress.console.print(f"FAILED {name} on {mesh}: {error}\n{getattr(error, '__notes__', '')}")
            else:
                write(options.record, name, {"program": task.program, **made})
            progress.advance(bar)
    return failures


def summary(record):
    """One line for each mesh: operators, layouts tried and possible, uneven and partial ones."""
    for mesh, ranks in STEP_MESHES.items():
        entries = [Recorded(*entry[mesh]) for entry in record.values() if mesh in entry]
        total = {field: sum(getattr(entry, field) for entry in entries) for field in Proven._fields}
        whole = sum(entry.cases == entry.possible for entry in entries)
        steps = [entry[f"steps {mesh}"] for entry in record.values() if f"steps {mesh}" in entry]
        yield (
            f"mesh {np.asarray(ranks).shape}: {len(entries)} operators, {whole} of them wholly, {total}; "
            f"{len(steps)} by steps, {sum(steps)} of them"
        )


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shard", default="1/1", help="this part of so many")
    parser.add_argument("--meshes", default="", help="names of meshes, separated by commas (default: all)")
    parser.add_argument("--names", default="", help="operators, separated by commas (default: all)")
    parser.add_argument("--limit", type=int, default=400, help="layouts a sample at most, then by chance")
    parser.add_argument("--whole", type=int, default=0, help="operators of at most so many layouts are run in all")
    parser.add_argument("--steps", action="store_true", help="prove by steps instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args()
    options.meshes = options.meshes or ",".join(STEP_MESHES if options.steps else MESHES)
    console = Console()
    failures = run(options, console)
    console.print(*summary(read(options.record)), sep="\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
