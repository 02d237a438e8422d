"""Dumps, replaying them, and bisecting over optimisations."""

import os
import subprocess
import sys

import numpy as np
import pytest
from programs import build, on_host
from test_programs import f32, mm, softmax

from argosy_cinn import CinnCompiler
from argosy_cinn.__main__ import main
from argosy_cinn.tools.bisect import Outcome, command_runner, find_step
from argosy_cinn.tools.replay import arguments_of, code_line, functions, replay
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.errors import CompileError
from argosy_pir import Builder, Program, TensorType
from argosy_pir.dims import SymExpr
from argosy_tensorcore.storage import StridedArray


def step(x, w):
    y = softmax(mm(x, prim.tanh(w)))
    return [prim.reduce_sum(on_host(y, 1), axes=(0,))], [prim.sub(w, prim.reduce_sum(y, axes=(0, 1)))]


@pytest.fixture
def dumped(tmp_path, monkeypatch):
    """The dump of a program with a state and a host call that has run once."""
    monkeypatch.setenv("ARGOSY_DUMP", str(tmp_path / "dump"))
    x, w = f32(20, 6), f32(6, 6)
    executable = CinnCompiler().compile(build(step, [x], [w]), device("cpu"))
    executable.run([StridedArray(x)], [StridedArray(w.copy())])
    monkeypatch.delenv("ARGOSY_DUMP")
    (folder,) = (tmp_path / "dump").iterdir()
    return folder, x, w


def test_every_stage_is_a_file(dumped):
    folder, x, w = dumped
    names = {p.name for p in folder.iterdir()}
    assert names == {"program.pir", "simplified.pir", "kernels.txt", "code.ll", "code.s", "code.o", "manifest.json",
                     "inputs.npz", "passes"}  # fmt: skip
    Program.parse((folder / "program.pir").read_text()).verify()
    assert "define" in (folder / "code.ll").read_text()
    assert "segment0" in (folder / "code.s").read_text()
    assert "product_20x6x6" in (folder / "kernels.txt").read_text()
    with np.load(folder / "inputs.npz") as found:
        assert found["input0"].tobytes() == x.tobytes()
        assert found["state0"].tobytes() == w.tobytes()


def test_a_dump_is_run_again_and_compared(dumped, capsys):
    folder, _, _ = dumped
    table, good = replay(folder, folder, repeats=2)
    assert good
    assert [row[0] for row in table.rows] == ["present", f"dumped in {folder.name}"]
    assert all(float(row[1]) < 1e-5 for row in table.rows)
    (folder / "inputs.npz").unlink()
    assert main(["replay", str(folder), "--repeat", "1"]) == 0
    told = capsys.readouterr().out
    assert "largest error" in told
    assert f"LLVM text: as in {folder.name}" in told
    for wrong in (["replay", str(folder.parent)], ["replay", str(folder), "--against", "HEAD"]):
        with pytest.raises(SystemExit):
            main(wrong)
        assert f"{wrong[-1]} is no dump of a compiled program" in capsys.readouterr().err


def test_functions_whose_code_is_another_are_named(dumped):
    folder, _, _ = dumped
    text = (folder / "code.ll").read_text()
    assert {"segment0", "product_20x6x6"} < functions(text).keys()
    changed = functions(text)["product_20x6x6"].replace("add i64", "sub i64", 1)
    text = text.replace(functions(text)["product_20x6x6"], changed).replace("@segment1(", "@segment7(")
    (folder / "code.ll").write_text(text)
    told = code_line(folder, folder)
    assert "functions differ: product_20x6x6, segment7 (gone), segment1 (new)" in told
    assert f" of {len(functions(text)) + 1} " in told


def test_a_dump_of_another_version_is_refused_in_words(dumped, capsys):
    folder, _, _ = dumped
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(SystemExit):
        main(["replay", str(folder)])
    assert "was dumped by a version whose manifest has other fields" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ARGOSY_DUMP", str(tmp_path / "file"))
    with pytest.raises(CompileError, match=r"ARGOSY_DUMP: .*file.*\.cinn cannot be made"):
        CinnCompiler().compile(build(prim.tanh, [f32(3)]), device("cpu"))


def test_a_dump_of_a_program_with_symbolic_sizes_is_run_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ARGOSY_DUMP", str(tmp_path / "dump"))
    n = SymExpr.symbol("n")
    program = Program("rows")
    x = program.add_input(TensorType((n, 6), "float32"))
    w = program.add_state("w", TensorType((6, 6), "float32")).argument
    with emit_at(Builder.at_end(program.block)):
        y = softmax(mm(x, prim.tanh(w)))
        program.set_outputs([y], [prim.sub(w, prim.reduce_sum(y, axes=(0, 1)))])
    executable = CinnCompiler().compile(program, device("cpu"))
    given = f32(20, 6)
    executable.run([StridedArray(given)], [StridedArray(f32(6, 6))])
    monkeypatch.delenv("ARGOSY_DUMP")
    (folder,) = (tmp_path / "dump").iterdir()
    assert "kernel calls" in (folder / "kernels.txt").read_text()
    inputs, _ = arguments_of(Program.parse((folder / "simplified.pir").read_text()), folder, {"n": 20})
    assert (inputs[0] == given).all(), "arguments are those of the first call"
    for sizes in ({}, {"n": 33}):
        table, good = replay(folder, folder, 1, sizes)
        assert good
        assert all(float(row[1]) < 1e-5 for row in table.rows)
    assert main(["replay", str(folder), "--repeat", "1", "--size", "n=3"]) == 0
    with pytest.raises(ValueError, match=r"has no sizes \['m'\]; it has \['n'\]"):
        replay(folder, folder, 1, {"m": 3})
    with pytest.raises(SystemExit):
        main(["replay", str(folder), "--size", "m=3"])
    assert "has no sizes ['m']; it has ['n']" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="--size n: expected a name and a number"):
        main(["replay", str(folder), "--size", "n"])
    (folder / "inputs.npz").unlink()
    assert replay(folder, folder, 1)[1]


def test_a_difference_from_the_reference_is_found(dumped, monkeypatch):
    folder, _, _ = dumped
    text = (folder / "program.pir").read_text()
    assert "prim.tanh" in text
    (folder / "program.pir").write_text(text.replace("prim.tanh", "prim.sin"))  # the dumped code is another program
    table, _ = replay(folder, folder, repeats=1)
    present, old = (float(row[1]) for row in table.rows)
    assert present < 1e-5 < 1e-3 < old


def test_bisection_finds_the_first_bad_step():
    asked = []

    def run(fuel):
        asked.append(fuel)
        return Outcome(fuel < 37, min(fuel, 100), f"step {min(fuel, 100)}")

    assert find_step(run) == (37, "step 37")
    assert len(asked) < 12
    assert find_step(lambda fuel: Outcome(True, 5, "")) is None
    with pytest.raises(RuntimeError, match="without any optimisation"):
        find_step(lambda fuel: Outcome(False, 5, ""))
    with pytest.raises(RuntimeError, match="reported no optimisation"):
        find_step(lambda fuel: Outcome(fuel == 0, 0, ""))


WRONG = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from argosy_cinn.rewrites import simplify
from argosy_cinn.rewrites.builders import Replacement
from programs import build, check
from argosy_phi_ops import prim
from argosy_pir.rewrite.pattern import PatternTable

def wrong(op):  # x * 1 is not -x
    return prim.neg(op.operand(0))

simplify.PATTERNS = PatternTable([Replacement("rewrite.sqrt", "prim.sqrt", wrong), *simplify._patterns()])
x = np.ones((4, 4), np.float32)
check(lambda x: prim.add(prim.mul(prim.add(x, 0.0), 1.0), x), x)
check(lambda x: [prim.sqrt(prim.mul(x, 1.0)), prim.tanh(prim.reduce_sum(x, axes=(1,)))], x)
"""


def test_a_wrong_rewrite_is_named(tmp_path, capsys):
    script = tmp_path / "script.py"
    script.write_text(WRONG.format(tests=os.path.dirname(__file__)))
    assert main(["bisect", "--", sys.executable, str(script)]) == 0
    assert "rewrite.sqrt of prim.sqrt" in capsys.readouterr().out
    outcome = command_runner([sys.executable, str(script)])(2)
    assert (outcome.good, outcome.spent) == (True, 2), "fuel counts over all programs of a process"
    assert main(["bisect"]) == 2
    assert main(["bisect", "--", "no-such-command"]) == 1
    assert "no-such-command" in capsys.readouterr().err


def test_fuel_that_is_no_number_is_refused(tmp_path):
    environment = {**os.environ, "ARGOSY_FUEL": "much"}
    code = "from argosy_cinn.fuel import Budget; Budget.from_options({})"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert "ARGOSY_FUEL is 'much'" in done.stderr


def test_the_command_explains_itself(capsys):
    assert main([]) == 2
    assert "replay" in capsys.readouterr().err


def test_a_dump_of_transforms_sorts_and_convolutions_is_run_again(tmp_path, monkeypatch):
    """Operations that the compiler makes of these are in the simplified program; the reference knows the one given."""
    monkeypatch.setenv("ARGOSY_DUMP", str(tmp_path / "dump"))

    def program(x):
        spectrum = prim.fft(x, axes=(1,), kind="r2c")
        return [prim.real(spectrum), prim.sort(x, axis=1)]

    x = f32(5, 24)
    CinnCompiler().compile(build(program, [x]), device("cpu")).run([StridedArray(x)])
    monkeypatch.delenv("ARGOSY_DUMP")
    (folder,) = (tmp_path / "dump").iterdir()
    assert "cinn." in (folder / "simplified.pir").read_text()
    assert replay(folder, folder, repeats=1)[1]
