"""Kernels compile for processors that are not at hand: for some, LLVM refuses what it takes for others, or aborts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from argosy_cinn.target import Target

PROCESSORS = ["x86-64", "haswell", "skylake-avx512", "znver4", "znver5", "sapphirerapids", "neoverse-v1", "apple-m1"]
HERE = Path(__file__).parent
SOME = "(not pairs and not True-) or [31-1 or [31-8 or [513-5 or [6200-2"


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("family", ["products", "primitives", "conversions", "rows", "convolutions"])
def test_kernels_compile_for_every_processor(family):
    path = os.pathsep.join(map(str, (HERE, HERE / "contraction", HERE / "attention")))
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("ARGOSY_CACHE_DIR", None)  # what was compiled in an earlier session need not be again
    command = [sys.executable, HERE / "compile_everywhere.py", family, *PROCESSORS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    last = (done.stdout.splitlines() or ["nothing"])[-1]
    assert done.returncode == 0, f"LLVM ended at {last}\n{done.stderr[-2000:]}"
    assert last.startswith(PROCESSORS[-1])


@pytest.mark.skipif(Target.host().multiplies_pairs, reason="other tests run what is built for this processor")
@pytest.mark.parametrize(
    "chosen", [pytest.param(SOME, marks=pytest.mark.exhaustive), pytest.param("", marks=pytest.mark.soak)]
)
def test_what_is_built_for_wide_vectors_and_their_instructions_computes_the_same(chosen):
    """Of the many lengths of pairs of bfloat16 some, unless all are asked for; of rows
    whose bits are asked for an open number."""
    path = os.pathsep.join(map(str, (HERE, HERE / "contraction", HERE / "attention")))
    modules = [HERE / "test_few_rows.py", HERE / "test_narrow_products.py"]
    command = [sys.executable, HERE / "emulation.py", "znver4", "-q", "-p", "no:cacheprovider", "-k", chosen, *modules]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=HERE)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
