"""A plug-in written from docs/DEVICES.md alone: a chip with instructions of its own, which reads forms as text."""

import io
import sys
import tokenize
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
from argosy.device import testing
from argosy_hwadapt import device, opencl, registry
from argosy_hwadapt.registry import runtime
from argosy_hwadapt.testing.ablation import ablate
from argosy_hwadapt.testing.suite import LEVELS, Subject, run_checks
from argosy_phi_ops.eager.fallback import clear_fallbacks, fallbacks

FOLDER = Path(__file__).parent / "systolic"
MOST_LINES = 250


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory):
    """The distribution, installed for the length of these tests."""
    folder = tmp_path_factory.mktemp("site") / "argosy_systolic-0.1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: argosy-systolic\nVersion: 0.1\n")
    (folder / "entry_points.txt").write_text("[argosy.devices]\nsystolic = argosy_systolic.runtime:create\n")
    sys.path[:0] = [str(folder.parent), str(FOLDER)]
    yield
    del sys.path[:2]
    registry._runtimes.pop("systolic", None)


def test_it_passes_the_kit():
    """What is skipped are optional groups, faults on request, and arguments that are numbers."""
    outcomes = run_checks(Subject("systolic", runtime("systolic"), device("systolic")), LEVELS)
    assert [o for o in outcomes if o.status == "failed"] == []
    assert {o.level for o in outcomes if o.status == "passed"} == set(LEVELS)


def test_it_needs_nine_interfaces():
    assert ablate("systolic", lambda: runtime("systolic")).strict_count == 9


def test_operators_are_those_of_the_cpu():
    names = "gelu softmax matmul cumsum put_along_axis uniform conv2d polar fft_r2c lu_factor sum".split()
    found = list(testing.check_operators("systolic", names))
    assert [o for o in found if o.status != "passed"] == []
    assert {o.name for o in found} == set(names)


def test_models_train():
    found = list(islice(testing.check_models("systolic"), 3))
    assert [(o.name, o.status) for o in found] == [
        ("MLP, eager", "passed"), ("MLP, captured", "passed"), ("CNN, eager", "passed"),
    ]  # fmt: skip


def test_what_it_lacks_falls_back():
    """Operators one by one, captured programs as a whole; both are counted, with the plug-in's reason."""
    x = paddle.to_tensor(np.float32([0.25, -0.5]), place="systolic")
    double = paddle.jit.to_static(lambda x: paddle.erfinv(x) * 2, full_graph=True)
    clear_fallbacks()
    with pytest.warns(RuntimeWarning, match="the vector unit has no erfinv"):
        results = [paddle.erfinv(x) * 2, double(x)]
    for result in results:
        assert str(result.place) == str(x.place)
        np.testing.assert_allclose(result.numpy(), [0.450624, -0.953873], rtol=1e-5)
    found = fallbacks()
    assert len(found) == 2
    assert {f.reason for f in found} == {"systolic: the vector unit has no erfinv"}


def test_the_matrix_unit_moves_numbers_from_cell_to_cell():
    """Products of sizes beside those of the array; the weights of none are another's."""
    from argosy_systolic.vector_unit import _multiply

    rng = np.random.default_rng(0)
    for m, n, k in ((1, 1, 1), (5, 17, 33), (40, 16, 16)):
        x, y = rng.integers(-9, 9, (2, m, k)), rng.integers(-9, 9, (2, n, k))
        np.testing.assert_array_equal(_multiply([x, y], (), (), "int64", 0, 1), x @ y.swapaxes(1, 2))


@pytest.mark.parametrize("folder", [FOLDER, Path(opencl.__file__).parent], ids=["systolic", "opencl"])
def test_plug_ins_are_short(folder):
    """Counted as the guide says: lines that are neither blank, comment nor docstring; C declarations are apart."""
    assert 100 < sum(counted_lines(path.read_text()) for path in folder.rglob("*.py")) <= MOST_LINES


def counted_lines(text):
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines, begins = set(), True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING and begins:
            continue
        if token.type not in skipped:
            lines |= set(range(token.start[0], token.end[0] + 1))
        if token.type != tokenize.COMMENT:
            begins = token.type in skipped
    return len(lines)
