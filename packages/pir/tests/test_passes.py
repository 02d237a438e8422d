"""The pass manager, pipelines as text, and plugins."""

import subprocess
import sys
from dataclasses import dataclass

import pytest
from hypothesis import given
from pir_programs import programs, steady

from argosy_pir import PassError, Program, TensorType, print_program
from argosy_pir.passes import Pass, PassManager, available_passes, parse_pipeline, print_pipeline, register_pass

TEXT = """program @p(%x: tensor<[4], int32>) {
  %a = test.neg(%x) : tensor<[4], int32>
  %b = test.neg(%x) : tensor<[4], int32>
  %dead = test.neg(%a) : tensor<[4], int32>
  %c = test.add(%a, %b) : tensor<[4], int32>
  return(%c)
}
"""


@register_pass("test-break")
@dataclass(frozen=True)
class Break(Pass):
    """Leaves a broken program behind, or fails."""

    how: str = "type"
    times: int = 1
    names: tuple[str, ...] = ()
    ratio: float | None = None

    def run(self, program: Program) -> bool:
        if self.how == "raise":
            raise KeyError("oops")
        program.block.first.results[0].type = TensorType((5,), "int32")
        return True


@pytest.mark.parametrize(
    "text",
    [
        "cse,dce",
        "canonicalize{max-iterations=4},cse,dce",
        "canonicalize{fold=false}",
        "inline{functions=[f,layer_1]}",
        'test-break{how="a b,{",times=-3,names=[x,"y z"],ratio=0.5}',
        'test-break{how="true"}',
        "",
    ],
)
def test_pipelines_print_as_they_parse(text):
    """Pipelines round-trip; options are the fields of the pass."""
    assert print_pipeline(parse_pipeline(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("csee", "there is no pass 'csee'; known are .*canonicalize.*cse.*dce"),
        ("dce{a=1}", "pass 'dce' has no option 'a'; it has: none"),
        ("canonicalize{max-iterations=many}", "'max-iterations' of pass 'canonicalize' is int, got 'many'"),
        ("canonicalize{max-iterations=true}", "is int, got True"),
        ("canonicalize{max-iterations}", "expected '=', found '}'"),
        ("cse dce", "expected ',', found 'dce'"),
        ("cse{", "expected an option, found 'the end'"),
    ],
)
def test_wrong_pipelines_are_explained(text, message):
    """Errors name the pass, the option and what there is instead."""
    with pytest.raises(PassError, match=message):
        parse_pipeline(text)


def test_a_pass_that_breaks_the_program_is_named(tmp_path):
    """Verification after each pass names the culprit and where its output was dumped."""
    program = Program.parse(TEXT)
    manager = PassManager("cse,test-break", dump=tmp_path)
    with pytest.raises(PassError, match=r"pass 'test-break' leaves an invalid program: 'test.neg'.*02-test-break"):
        manager.run(program)
    PassManager("test-break", verify=False).run(Program.parse(TEXT))
    with pytest.raises(KeyError) as caught:
        PassManager("test-break{how=raise}").run(Program.parse(TEXT))
    assert caught.value.__notes__ == ["in pass 'test-break{how=raise}'"]


def test_dumps_begin_with_the_command_that_reruns_them(tmp_path):
    """Running the header of a dump gives the dump."""
    program = Program.parse(TEXT)
    PassManager("cse,canonicalize{max-iterations=3},dce", dump=tmp_path).run(program)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["00-input.pir", "01-cse.pir", "02-canonicalize.pir", "03-dce.pir"]
    header, _, body = (tmp_path / files[2]).read_text().partition("\n")
    command = header.removeprefix("// python ")
    done = subprocess.run(f"{sys.executable} {command}", shell=True, capture_output=True, text=True, check=True)
    assert done.stdout == body


def test_timing_and_statistics():
    """Timings list every pass with operation counts; the session counts single steps."""
    program = Program.parse(TEXT)
    manager = PassManager("cse,dce", timing=True)
    assert manager.run(program)
    assert [(t.name, t.before, t.after) for t in manager.timings] == [("cse", 5, 4), ("dce", 4, 3)]
    assert manager.session.statistics == {"cse": 1, "dce": 1}
    assert manager.timing_report().splitlines()[1].startswith("cse")
    limited = PassManager("cse,dce", fuel=1)
    limited.run(Program.parse(TEXT))
    assert limited.session.statistics == {"cse": 1}
    assert limited.session.last == "cse of test.neg at unknown"


def test_registering():
    """A pass is a frozen dataclass with a name of its own."""
    with pytest.raises(PassError, match="frozen dataclass"):
        register_pass("test-x")(type("X", (Pass,), {}))
    with pytest.raises(PassError, match=r"registered twice: by .*test_passes and by"):
        register_pass("test-break")(dataclass(frozen=True)(type("Other", (Pass,), {"__module__": "elsewhere"})))
    assert {"cse", "dce", "inline", "outline", "test-break"} <= set(available_passes())


@steady
@given(programs())
def test_passes_keep_unknown_operations(program):
    """On operations nobody knows, the clean-up passes change nothing but constants' duplicates; all stays valid."""
    before = print_program(program, locations=False)
    PassManager("canonicalize,cse,dce", verify=False).run(program)
    assert print_program(program, locations=False) == before


@steady
@given(programs())
def test_clones_are_equal(program):
    """A clone prints as its original, and changing it leaves the original alone."""
    text = print_program(program)
    copy = program.clone()
    assert print_program(copy) == text
    for op in list(copy.block):
        op.attributes["touched"] = True
    assert print_program(program) == text
