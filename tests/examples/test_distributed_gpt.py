"""examples/distributed/gpt.py: losses do not depend on the layout, and one layout resumes another's checkpoint."""

import runpy
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from argosy.distributed.debug import run_ranks

SCRIPT = Path(__file__).parents[2] / "examples" / "distributed" / "gpt.py"
OPTIONS = ["--steps", "3", "--layers", "1"]


def _losses(ranks, *arguments):
    run = partial(runpy.run_path(str(SCRIPT))["main"], [*OPTIONS, *arguments])
    return run_ranks(run, ranks, timeout=3600)


def test_a_resumed_run_is_the_run_that_goes_on(expected):
    """Six steps in two runs give the losses of six in one: the masks of dropout are not drawn again."""
    whole = _losses(1, "--steps", "6")[0]
    np.testing.assert_allclose([*expected[0], *expected[1]], whole, rtol=1e-6)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Six steps of one process in two runs, the second from the first one's checkpoint."""
    folder = str(tmp_path_factory.mktemp("alone") / "checkpoint")
    return [_losses(1, "--checkpoint", folder)[0] for _ in range(2)]


def test_layouts_change_no_loss_and_resume_each_other(expected, tmp_path):
    """Tensor and sequence parallel with split states, then data parallel with split parameters, from the first one's
    checkpoint.
    """
    folder = str(tmp_path / "checkpoint")
    first = _losses(4, "--dp", "2", "--mp", "2", "--zero", "1", "--sequence", "--checkpoint", folder)
    second = _losses(2, "--zero", "3", "--checkpoint", folder)
    for losses in first:
        np.testing.assert_allclose(losses, expected[0], rtol=1e-5)
    for losses in second:
        np.testing.assert_allclose(losses, expected[1], rtol=1e-4)
