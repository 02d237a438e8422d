"""The command line and the reducer."""

import io
import sys

import pytest
from pir_programs import EXAMPLE

from argosy_pir import Program, from_bytes, structurally_equal
from argosy_pir.__main__ import main
from argosy_pir.reduce import reduce_program

CHAIN = """program @p(%x: tensor<[4], int32>, %unused: tensor<[2], bool>) state(%w = "w": tensor<[4], int32>) {
  %0 = test.neg(%x) {note = 1} : tensor<[4], int32>
  %1 = test.add(%0, %w) : tensor<[4], int32>
  %2 = test.typed(%1) {axis = 13, extra = "x"} : tensor<[4], int32>
  %3 = test.neg(%2) : tensor<[4], int32>
  %4 = builtin.call(%3) {callee = @f} : tensor<[4], int32>
  return(%4, %0; %4)
}

function @f(%a: tensor<[4], int32>) {
  return(%a)
}
"""


@pytest.fixture
def file(tmp_path):
    """A file with the chain of operations."""
    path = tmp_path / "chain.pir"
    path.write_text(CHAIN)
    return path


def test_opt_prints_the_result(file, capsys):
    """Passes run in order and the result is printed; statistics and timing go to standard error."""
    assert main(["opt", str(file), "-p", "inline,symbol-dce,cse", "--timing", "--statistics"]) == 0
    out, err = capsys.readouterr()
    assert "builtin.call" not in out
    assert "function" not in out
    assert "1 inline" in err
    assert err.startswith("pass")


def test_binary_and_text_files(file, tmp_path, capsys):
    """Output named .pirb is binary, and is read like text."""
    binary = tmp_path / "chain.pirb"
    assert main(["opt", str(file), "-o", str(binary)]) == 0
    assert structurally_equal(from_bytes(binary.read_bytes()), Program.parse(CHAIN))
    assert main(["print", str(binary)]) == 0
    assert capsys.readouterr().out == CHAIN


def test_check(file, tmp_path, capsys, monkeypatch):
    """A valid program is counted; an invalid one gives exit status 1 and the reason."""
    assert main(["check", str(file)]) == 0
    assert "valid, 7 operations, 1 functions" in capsys.readouterr().out
    bad = tmp_path / "bad.pir"
    bad.write_text(CHAIN.replace("axis = 13", 'axis = "13"'))
    assert main(["check", str(bad)]) == 1
    assert "attribute 'axis' should be int, got '13'" in capsys.readouterr().err
    assert main(["check", str(tmp_path / "absent.pir")]) == 1
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"nonsense")))
    assert main(["check", "-"]) == 1
    assert "<stdin>:1:1: expected 'program'" in capsys.readouterr().err


def test_check_shows_the_line_of_an_unknown_operation(tmp_path, capsys):
    """What the verifier refuses is shown at its place in the text."""
    bad = tmp_path / "bad.pir"
    bad.write_text(
        "program @p(%x: tensor<[2], float32>) {\n  %1 = builtin.nosuch(%x) : tensor<[2], float32>\n  return(%1;)\n}\n"
    )
    assert main(["check", str(bad)]) == 1
    shown = capsys.readouterr().err
    assert f"{bad}:2:3: 'builtin.nosuch'" in shown
    assert "\n  %1 = builtin.nosuch(%x)" in shown.replace("\n    ", "\n  ")


def test_print_without_locations(tmp_path, capsys):
    """Locations are left out on request."""
    path = tmp_path / "example.pir"
    path.write_text(EXAMPLE)
    assert main(["print", str(path), "--no-locations"]) == 0
    assert capsys.readouterr().out == EXAMPLE.replace(' loc("f.py":12)', "")


def test_fuel_names_the_last_step(file, capsys):
    """With fuel the last allowed step is named, for bisecting."""
    assert main(["opt", str(file), "-p", "inline,cse", "--fuel", "1"]) == 0
    assert "last step: inline" in capsys.readouterr().err


def test_reducer_keeps_only_what_fails():
    """Only the operation that matters is left, with an input in place of what it used."""
    program = Program.parse(CHAIN)
    text = str(program)

    def fails(candidate):
        candidate.attributes["spoiled"] = True  # a test may do what it likes with its copy
        return any(op.attributes.get("axis") == 13 for op in candidate.walk())

    reduced = reduce_program(program, fails)
    reduced.verify()
    assert [op.name for op in reduced.walk()] == ["test.typed", "builtin.return"]
    assert reduced.block.first.attributes == {"axis": 13}
    assert (len(reduced.inputs), reduced.states, reduced.functions) == (1, [], {})
    assert str(program) == text


def test_reduce_command(file, tmp_path, capsys):
    """The command shrinks a file while a shell command keeps failing, and refuses one that does not fail."""
    out = tmp_path / "small.pir"
    assert main(["reduce", str(file), "--test", "! grep 'axis = 13' {}", "--match", "axis", "-o", str(out)]) == 0
    assert "axis = 13" in out.read_text()
    assert len(Program.parse(out.read_text()).block) == 2
    assert main(["reduce", str(file), "--test", "true {}"]) == 1
    assert "does not fail" in capsys.readouterr().err
