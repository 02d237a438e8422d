"""argosy as a backend of the library onnx."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")

from onnx import TensorProto, helper  # noqa: E402

from argosy.onnx import backend  # noqa: E402


def model(operator, version=22):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "made", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])


@pytest.mark.parametrize("device", ["CPU", "VIRTUAL"])
def test_a_prepared_model_runs_on_inputs_in_order_by_name_or_alone(device):
    prepared = backend.prepare(model("Neg"), device)
    for inputs in ([np.float32([1, 2])], {"x": np.float32([1, 2])}, np.float32([1, 2])):
        outputs = prepared.run(inputs)
        np.testing.assert_array_equal(outputs.y, [-1, -2])
        assert outputs["y"] is outputs[0]


def test_a_node_runs_alone_by_the_operator_set_that_is_asked_for():
    node = helper.make_node("Softmax", ["x"], ["y"])
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    (new,), (old,) = backend.run_node(node, [x]), backend.run_node(node, [x], opset_version=11)
    np.testing.assert_allclose(new.sum(-1), [[1, 1]], rtol=1e-6)
    np.testing.assert_allclose(old.sum(), 1, rtol=1e-6)


def test_what_is_supported_can_be_asked_for():
    assert backend.supports_device("CPU")
    assert not backend.supports_device("NONE")
    assert backend.is_compatible(model("Neg"))
    assert not backend.is_compatible(model("ImageDecoder"))
    assert not backend.is_compatible(model("Neg"), "NONE")
