"""Proof that a change changes no generated code: LLVM text and manifests of a corpus of programs, as digests.

    python replay_code.py collect CORPUS PYTEST_ARGUMENT...   # every distinct program that these tests compile
    python replay_code.py digest CORPUS FILE                  # by the code of one commit
    python replay_code.py compare CORPUS FILE                 # by that of another; ends with 1 where something differs

A corpus is a file of JSON lines: a program of primitives and the options it was compiled with. Programs are only made
into text, never into machine code, so that thousands take minutes.
"""

import hashlib
import json
import sys
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from multiprocessing import Pool
from pathlib import Path

import pytest

from argosy_cinn.assembly.building import assemble_program
from argosy_cinn.assembly.manifests import manifest_from
from argosy_cinn.fuel import Budget
from argosy_cinn.pipeline import lower_program
from argosy_cinn.store import program_cache
from argosy_cinn.target import Target
from argosy_phi_ops.context import own_context
from argosy_pir import Program

#: Options that decide what code is made.
_OPTIONS = ("fuel", "without", "memory_budget", "guard", "winograd", "check_index")


@contextmanager
def collecting(path):
    """Within the block every distinct program that is compiled is added to the corpus at ``path``."""
    plain, known = program_cache.program_key, set()

    def noted(program, target, options):
        line = json.dumps([str(program), {k: options[k] for k in _OPTIONS if k in options}])
        if line not in known:
            known.add(line)
            with open(path, "a", encoding="utf-8") as file:
                file.write(line + "\n")
        return plain(program, target, options)

    program_cache.program_key = noted
    try:
        yield
    finally:
        program_cache.program_key = plain


def digest(line):
    """The digests of the text and of the manifest of one line of a corpus; the error where there are none."""
    text, options = json.loads(line)
    try:
        budget = Budget.from_options(options)
        with own_context(), budget.simplification():
            program = lower_program(Program.parse(text), Target.host())
        plan, assembly = assemble_program(program, Target.host(), budget)
        manifest = json.dumps(asdict(manifest_from(program, plan, assembly)))
        return [hashlib.sha256(part.encode()).hexdigest()[:16] for part in (assembly.module.text(), manifest)]
    except Exception as error:  # noqa: BLE001  (what cannot be compiled must go on failing alike)
        return [type(error).__name__, str(error)[:200]]


def digests(corpus):
    """The digests of a corpus, by the number of the line."""
    with Pool(2) as pool, open(corpus, encoding="utf-8") as lines:
        return list(pool.imap(digest, lines, chunksize=8))


def compared(corpus, file):
    """How many programs have another text or manifest than ``file`` says, with the first lines of some of them."""
    before, now = json.loads(Path(file).read_text()), digests(corpus)
    changed = [i for i, (b, n) in enumerate(zip(before, now, strict=True)) if b != n]
    lines = Path(corpus).read_text(encoding="utf-8").splitlines()
    for i in islice(changed, 5):
        sys.stdout.write(f"{i}: {before[i]} was, {now[i]} is\n{json.loads(lines[i])[0][:600]}\n")
    sys.stdout.write(f"{len(changed)} of {len(now)} programs differ\n")
    return len(changed)


def main(command, corpus, *arguments):
    if command == "collect":
        with collecting(corpus):
            return int(pytest.main([*arguments, "-q", "-p", "no:cacheprovider"]))
    if command == "digest":
        Path(arguments[0]).write_text(json.dumps(digests(corpus)))
        return 0
    return min(compared(corpus, arguments[0]), 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
