"""Each file in golden/ is a pass's golden file, see :mod:`argosy_pir.testing`; layouts as text."""

import os
from pathlib import Path

import numpy as np
import pytest
from lockstep import parts_of, run_together, whole_of

import argosy_autoparallel.passes.combine_collectives
import argosy_autoparallel.passes.spmd_partition
import argosy_autoparallel.pipeline.cut_stages  # noqa: F401  (they register their passes)
from argosy_autoparallel import Layout, Partial, ProcessMesh, ReduceType, Replicate, Shard
from argosy_autoparallel.tensor_layout import parse_layout, print_layout
from argosy_pir import PassError, Program
from argosy_pir.__main__ import main
from argosy_pir.passes import PassManager
from argosy_pir.testing import check_golden, check_passes

FILES = sorted((Path(__file__).parent / "golden").glob("*.pir"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_pass_gives_the_golden_text(path):
    """The pipeline turns the first program of the file into the second, which is valid."""
    check_golden(path, again=False, update="ARGOSY_UPDATE_GOLDEN" in os.environ)


def test_every_pass_has_a_golden_text_a_docstring_and_an_entry_point():
    """Of this package's."""
    check_passes("argosy_autoparallel", FILES)


LAYOUTS = {
    "d0=2 on 0-1: S(0)": Layout(ProcessMesh([0, 1]), [Shard(0)]),
    "x=2 y=3 on 0-5: R S(1)": Layout(ProcessMesh([[0, 1, 2], [3, 4, 5]], ["x", "y"]), [Replicate(), Shard(1)]),
    "x=1 y=2 on 7 3: P(sum) R": Layout(ProcessMesh([[7, 3]], ["x", "y"]), [Partial(), Replicate()]),
    '"a b=\\"1\\""=3 on 2-3 1: P(max)': Layout(ProcessMesh([2, 3, 1], ['a b="1"']), [Partial(ReduceType.kRedMax)]),
}


@pytest.mark.parametrize("text", LAYOUTS)
def test_a_layout_prints_as_text_that_parses_back(text):
    """The names of dimensions included, which do not count when meshes are compared."""
    assert print_layout(LAYOUTS[text]) == text
    assert parse_layout(text) == LAYOUTS[text]
    assert parse_layout(text).mesh.dim_names == LAYOUTS[text].mesh.dim_names


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected text such as"),
        ("x=2 on 0-1 S(0)", "expected text such as"),
        ("x=2 on 0-1: S(0) R", "2 placements for a mesh of 1 dimensions"),
        ("x=3 on 0-1: R", "2 process_ids do not fill shape"),
        ("x=2 on 0 0: R", "appear more than once"),
        ("x=2 on 0-1: P(mean)", "expected text such as"),
    ],
)
def test_what_is_no_layout_is_refused(text, reason):
    """With what is wrong."""
    with pytest.raises(ValueError, match=reason):
        parse_layout(text)


PROGRAM = """program @p(%x: tensor<[4, 6], float32>, %w: tensor<[6, 5], float32>) {
  %0 = prim.dot_general(%x, %w) {lhs_contract = (1,), rhs_contract = (0,), lhs_batch = (), rhs_batch = ()} :
    tensor<[4, 5], float32>
  return(%0)
}
"""


def test_the_command_line_cuts_a_file_into_the_programs_of_ranks(tmp_path, capsys):
    """They compute together what the whole does, and say where their outputs lie."""
    path = tmp_path / "program.pir"
    path.write_text(PROGRAM, "utf-8")
    texts = "x=2 on 0-1: S(1)", "x=2 on 0-1: S(0)"
    programs = []
    for rank in (0, 1):
        step = f'spmd-partition{{rank={rank},inputs=["{texts[0]}","{texts[1]}"]}},combine-collectives'
        assert main(["opt", str(path), "-p", step]) == 0
        programs.append(Program.parse(capsys.readouterr().out))
    assert [p.attributes["output_layouts"] for p in programs] == [("x=2 on 0-1: P(sum)",)] * 2
    arrays = [np.arange(24, dtype=np.float32).reshape(4, 6), np.arange(30, dtype=np.float32).reshape(6, 5)]
    parts = [parts_of(a, parse_layout(t)) for a, t in zip(arrays, texts, strict=True)]
    outputs = run_together(programs, list(zip(*parts, strict=True)), (0, 1))
    made = whole_of([o[0] for o in outputs], parse_layout(programs[0].attributes["output_layouts"][0]))
    np.testing.assert_array_equal(made, arrays[0] @ arrays[1])


def test_options_that_do_not_fit_a_program_are_refused():
    """So are operators, which `decompose` comes before, and notes of other collectives than there are."""
    with pytest.raises(PassError, match="3 input layouts for a program of 2 inputs"):
        PassManager("spmd-partition{inputs=[none,none,none]}").run(Program.parse(PROGRAM))
    with pytest.raises(ValueError, match=r"'phi.tanh' is no primitive; run the pass decompose first"):
        PassManager("spmd-partition").run(
            Program.parse(
                "program @p(%x: tensor<[2], float32>) { %0 = phi.tanh(%x) : tensor<[2], float32> return(%0) }"
            )
        )
    with pytest.raises(PassError, match="has 0 collectives, but notes of 1"):
        PassManager("combine-collectives").run(
            Program.parse("program @p() attributes {collectives = ((0, 1, none, none, 4.0),)} { return() }")
        )
