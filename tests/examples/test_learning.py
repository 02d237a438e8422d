"""Scripts whose learning can be judged: each is far better than chance after a short run, and draws its picture."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "examples" / "scripts"


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Call ``main`` of a script; its picture is in a folder."""
    monkeypatch.syspath_prepend(str(SCRIPTS))

    def call(name, *arguments, **options):
        try:
            found = runpy.run_path(str(SCRIPTS / f"{name}.py"))["main"](*arguments, plots=str(tmp_path), **options)
        finally:
            sys.modules.pop("common", None)
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        return found

    return call


@pytest.mark.exhaustive
def test_images_are_told_apart_from_two_hundred(run):
    """Both networks are far better than one in ten."""
    pytest.importorskip("sklearn")
    plain, augmented = run("images", 120)
    assert min(plain, augmented) > 0.6


@pytest.mark.exhaustive
def test_a_diffusion_model_draws_what_it_is_asked_for(run):
    """One in ten would be chance."""
    pytest.importorskip("sklearn")
    assert run("diffusion", 700) > 0.5


@pytest.mark.exhaustive
def test_the_points_of_a_gan_lie_where_the_real_ones_do(run):
    """Discs of four spreads around the centres are a tenth of the square that noise would fill."""
    share, clusters = run("gan", 1500)
    assert share > 0.4
    assert clusters >= 6


def test_the_pole_is_balanced(run):
    """Pushes at random let it fall after about twenty steps."""
    assert run("reinforcement", 60) > 100


def test_edges_tell_communities(run):
    """A node alone tells little, its neighbours much."""
    alone, together = run("graph", 100)
    assert together > 0.65
    assert together > alone + 0.2


@pytest.mark.exhaustive
def test_spoken_commands_are_told_apart(run):
    """One in eight would be chance."""
    assert run("speech", 60, count=300) > 0.7
