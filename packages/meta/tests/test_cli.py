"""The argosy command."""

import sys

import pytest

import argosy
from argosy.cli import main


def test_version(capsys):
    """--version prints name and version."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"argosy {argosy.__version__}\n"


def test_run_check_passes(capsys):
    """run-check trains eagerly and compiled, checks gradients, and says that all is well."""
    assert main(["run-check", "--backend", "reference"]) == 0
    shown = capsys.readouterr().out
    assert "argosy is installed and works" in shown
    assert "[ok] compiled training equals eager training" in shown


def test_info_and_devices(capsys):
    """info lists versions, devices the devices there are."""
    assert main(["info"]) == 0
    assert "argosy-phi-ops" in capsys.readouterr().out
    assert main(["devices", "--why"]) == 0
    assert "cpu" in capsys.readouterr().out


def test_devices_are_limited_by_the_environment(capsys, monkeypatch):
    monkeypatch.setenv("ARGOSY_DEVICES", "opencl, chip")
    assert main(["devices", "--why"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "cpu" in said
    assert "virtual: device 'virtual' is not available: ARGOSY_DEVICES does not name it" in said


def test_bisect_runs_a_command(capsys):
    """bisect says so when nothing is wrong with the command, and how it is used without one."""
    assert main(["bisect", "--", sys.executable, "-c", "pass"]) == 1
    assert "succeeds with all optimisations" in capsys.readouterr().err
    assert main(["bisect"]) == 2
    assert "usage" in capsys.readouterr().err
