"""The format's own cases of nodes, on the reference interpreter: those of plain tensors pass, but for a kept list."""

from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")

from argosy_infer.onnx import Session  # noqa: E402
from argosy_infer.onnx.testing import EXCLUDED, cases  # noqa: E402

ALL = list(cases())
PLAIN = [case for case in ALL if not case.kind]
COUNTED = [case for case in PLAIN if not case.exclusion]
if not ALL:
    pytest.skip("this onnx is not installed with its cases of nodes", allow_module_level=True)


@pytest.mark.parametrize("case", COUNTED[::12], ids=lambda case: case.name)
def test_a_case_of_a_node_passes(case):
    assert case.difference("reference") == ""


@pytest.mark.exhaustive
def test_all_cases_of_plain_tensors_pass():
    failed = {case.name: found for case in COUNTED if (found := case.difference("reference"))}
    assert failed == {}


def test_at_least_95_of_100_cases_of_plain_tensors_are_counted_and_each_reason_has_one():
    assert len(COUNTED) / len(PLAIN) >= 0.95
    assert {case.exclusion for case in PLAIN} - {""} == set(EXCLUDED.values())


@pytest.mark.parametrize(
    "case",
    [case for case in PLAIN if "random" not in case.exclusion and case.exclusion][::3],
    ids=lambda case: case.name,
)
def test_a_case_with_a_reason_does_not_pass(case):
    """What passes has no place in the list."""
    try:
        found = case.difference("reference")
    except NotImplementedError as error:
        found = str(error)
    assert found


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "resnet50", "inception_v2"])
def test_a_network_of_images_has_the_scores_that_its_file_says(name):
    """Networks with weights that are constants, as the library brings them."""
    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    session = Session(path)
    graph = session.document.model.graph
    (given,) = (x for x in graph.input if x.name in session.input_names)
    shape = [n.dim_value for n in given.type.tensor_type.shape.dim]
    expected = onnx.numpy_helper.to_array(onnx.load_tensor(str(path).replace(".onnx", "_output_0.pb")))
    (found,) = session.run(np.ones(shape, np.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
