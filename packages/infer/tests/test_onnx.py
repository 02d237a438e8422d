"""ONNX models as programs: what models are made of, sizes that stay open, and models that are refused by name."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")

from onnx import TensorProto, helper, numpy_helper, shape_inference  # noqa: E402

from argosy_infer import Predictor, import_program  # noqa: E402
from argosy_infer.errors import InputError, ProgramFileError  # noqa: E402
from argosy_infer.onnx import Session, UnknownValue, load  # noqa: E402
from argosy_phi_ops.compiler import available_compilers  # noqa: E402

COMPILERS = sorted({"reference", available_compilers()[0]})
RNG = np.random.default_rng(0)


def numbers(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def tensor(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, weights=(), version=22, functions=()):
    """A model of nodes; weights by name."""
    kept = [numpy_helper.from_array(array, name) for name, array in dict(weights).items()]
    graph = helper.make_graph(nodes, "made", inputs, outputs, kept)
    domains = [helper.make_opsetid("", version), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=domains, functions=list(functions))


def perceptron():
    weights = {"w": numbers(4, 80), "b": numbers(80), "v": numbers(80, 3)}
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["y"]),
    ]
    made = model(nodes, [tensor("x", ["batch", 4])], [tensor("y", ["batch", 3])], weights)
    return made, lambda x: np.maximum(x @ weights["w"] + weights["b"], 0) @ weights["v"]


def test_a_file_is_a_program_with_its_weights_as_states_and_an_open_batch(tmp_path):
    made, expected = perceptron()
    onnx.save(made, tmp_path / "a.onnx")
    predictor = Predictor(import_program(tmp_path / "a.onnx"))
    assert (predictor.input_names, predictor.output_names) == (["x"], ["y"])
    assert predictor.states.keys() == {"w", "b", "v"}
    for batch in (1, 5):
        x = numbers(batch, 4)
        np.testing.assert_allclose(predictor.run(x)[0], expected(x), rtol=1e-5, atol=1e-5)


def test_external_data_is_read_from_the_models_folder_and_nowhere_else(tmp_path):
    made, expected = perceptron()
    onnx.save(made, tmp_path / "a.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    x = numbers(2, 4)
    np.testing.assert_allclose(Predictor(load(tmp_path / "a.onnx")).run(x)[0], expected(x), rtol=1e-5, atol=1e-5)
    (tmp_path / "inner").mkdir()
    moved = onnx.load(tmp_path / "a.onnx", load_external_data=False)
    for entry in (e for each in moved.graph.initializer for e in each.external_data if e.key == "location"):
        entry.value = "../weights.bin"
    (tmp_path / "inner" / "a.onnx").write_bytes(moved.SerializeToString())
    with pytest.raises(ProgramFileError, match="no file within the model's folder"):
        load(tmp_path / "inner" / "a.onnx")
    with pytest.raises(ProgramFileError, match="given as bytes"):
        load((tmp_path / "a.onnx").read_bytes())
    (tmp_path / "weights.bin").write_bytes(b"1234")
    with pytest.raises(ProgramFileError, match="bytes"):
        load(tmp_path / "a.onnx")


def test_shape_arithmetic_of_open_sizes_stays_symbolic():
    """As exporters write ``x.reshape(x.shape[0], -1)``, and sizes that are products."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "first"], ["n1"]),
        helper.make_node("Concat", ["n1", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"]),
    ]
    weights = {"zero": np.array(0), "first": np.array([0]), "rest": np.array([-1])}
    made = model(nodes, [tensor("x", ["n", 2, "m"])], [tensor("y", None)], weights)
    predictor = Predictor(load(made))
    for n, m in ((1, 3), (4, 5)):
        x = numbers(n, 2, m)
        np.testing.assert_array_equal(predictor.run(x)[0], x.reshape(n, -1))


def test_what_constants_alone_make_is_computed_when_the_program_is_made():
    nodes = [helper.make_node("Transpose", ["w"], ["t"]), helper.make_node("MatMul", ["x", "t"], ["y"])]
    loaded = load(model(nodes, [tensor("x", [2, 4])], [tensor("y", [2, 30])], {"w": numbers(30, 4)}))
    assert loaded.states.keys() == {"t"}
    assert "phi.transpose" not in str(loaded.program)


def test_functions_of_a_model_take_attributes_and_may_not_call_themselves():
    scaled = helper.make_node("LeakyRelu", ["a"], ["b"])
    scaled.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    domains = [helper.make_opsetid("", 22), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "Bent", ["a"], ["b"], [scaled], domains, ["slope"])
    call = helper.make_node("Bent", ["x"], ["y"], domain="own", slope=0.25)
    made = model([call], [tensor("x", [3])], [tensor("y", [3])], functions=[function])
    np.testing.assert_array_equal(Session(made).run([-4, 0, 2])[0], [-1, 0, 2])
    again = helper.make_function(
        "own", "Bent", ["a"], ["b"], [helper.make_node("Bent", ["a"], ["b"], domain="own")], domains
    )
    made = model(
        [helper.make_node("Bent", ["x"], ["y"], domain="own")], made.graph.input, made.graph.output, functions=[again]
    )
    with pytest.raises(ProgramFileError, match="calls itself"):
        load(made)


def branches(second="Neg", inputs=("x",)):
    outputs = [tensor("out", [2])]
    twice = helper.make_graph([helper.make_node("Add", ["x", "x"], ["out"])], "twice", [], outputs)
    less = helper.make_graph([helper.make_node(second, inputs, ["out"])], "less", [], outputs)
    node = helper.make_node("If", ["which"], ["y"], then_branch=twice, else_branch=less)
    return model([node], [tensor("which", [], TensorProto.BOOL), tensor("x", [2])], [tensor("y", [2])])


@pytest.mark.parametrize("compiler", COMPILERS)
def test_branches_are_chosen_by_a_run_or_when_the_program_is_made(compiler):
    predictor = Predictor(load(branches()), compiler)
    np.testing.assert_array_equal(predictor.run(True, [1, 2])[0], [2, 4])
    np.testing.assert_array_equal(predictor.run(False, [1, 2])[0], [-1, -2])
    bound = load(branches(), values={"which": True})
    assert [x.name_hint for x in bound.program.inputs] == ["x"]
    assert "prim.neg" not in str(bound.program)


def test_a_branch_that_is_not_taken_need_not_fit():
    """Voice detectors have one for each rate, which takes windows of its own length."""
    made = branches("Reshape", ("x", "three"))
    made.graph.initializer.append(numpy_helper.from_array(np.array([3]), "three"))
    with pytest.raises(UnknownValue, match=r"Reshape.* of a branch that is not taken.* has to know 'which'"):
        load(made)
    session = Session(made)
    np.testing.assert_array_equal(session.run(True, [1, 2])[0], [2, 4])
    assert session.bound == {"which"}
    with pytest.raises(ProgramFileError, match="Reshape"):
        session.run(False, [1, 2])


def test_a_loop_whose_steps_are_known_is_written_out():
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "x"], ["b"]), helper.make_node("Identity", ["b"], ["each"]),
         helper.make_node("Identity", ["on"], ["on_out"])],
        "body", [tensor("i", [], TensorProto.INT64), tensor("on", [], TensorProto.BOOL), tensor("a", [2])],
        [tensor("on_out", [], TensorProto.BOOL), tensor("b", [2]), tensor("each", [2])],
    )  # fmt: skip
    node = helper.make_node("Loop", ["count", "", "x"], ["last", "all"], body=body)
    inputs = [tensor("count", [], TensorProto.INT64), tensor("x", [2])]
    session = Session(model([node], inputs, [tensor("last", [2]), tensor("all", [None, 2])]))
    for count in (3, 5):
        last, every = session.run(count, [1, 2])
        np.testing.assert_array_equal(last, [count + 1, 2 * count + 2])
        assert every.shape == (count, 2)
    assert session.bound == {"count"}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_loop_may_end_by_what_a_run_finds(compiler):
    """Doubled until it is larger than a bound, at most so many times."""
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "a"], ["b"]), helper.make_node("ReduceMax", ["b"], ["largest"], keepdims=0),
         helper.make_node("Less", ["largest", "bound"], ["on_out"])],
        "body", [tensor("i", [], TensorProto.INT64), tensor("on", [], TensorProto.BOOL), tensor("a", [2])],
        [tensor("on_out", [], TensorProto.BOOL), tensor("b", [2])],
    )  # fmt: skip
    node = helper.make_node("Loop", ["most", "", "x"], ["y"], body=body)
    inputs = [tensor("most", [], TensorProto.INT64), tensor("bound", []), tensor("x", [2])]
    predictor = Predictor(load(model([node], inputs, [tensor("y", [2])])), compiler)
    for most, bound, times in ((9, 30, 4), (2, 30, 2), (0, 30, 0)):
        np.testing.assert_array_equal(predictor.run(most, bound, [1, 2])[0], np.float32([1, 2]) * 2**times)


def test_inputs_that_decide_shapes_are_bound_by_a_session_and_named_by_a_program():
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    made = model([node], [tensor("x", [6]), tensor("shape", [2], TensorProto.INT64)], [tensor("y", None)])
    session = Session(made)
    assert session.run(np.arange(6), [2, 3])[0].shape == (2, 3)
    assert session.run(np.arange(6), [3, -1])[0].shape == (3, 2)
    with pytest.raises(UnknownValue, match=r"node 'y' \(Reshape, version 22\) has to know 'shape'"):
        load(made)
    with pytest.raises(InputError, match="has no input 'size'"):
        load(made, values={"size": [1]})
    with pytest.raises(InputError, match="input 'x' is a dict, no array"):
        session.run({"x": [1, 2]}, [2])
    with pytest.raises(InputError, match="missing"):
        session.run(np.arange(6))


def test_a_refused_run_leaves_a_session_in_order():
    session = Session(model([helper.make_node("Neg", ["x"], ["y"])], [tensor("x", [2])], [tensor("y", [2])]))
    with pytest.raises(InputError):
        session.run(["a", "b"])
    np.testing.assert_array_equal(session.run([1, 2])[0], [-1, -2])


def damaged(change):
    made, _ = perceptron()
    change(made)
    return made


def test_models_that_are_no_models_are_refused_by_name(tmp_path):
    made, _ = perceptron()
    data = made.SerializeToString()
    (tmp_path / "cut.onnx").write_bytes(data[: len(data) // 2])
    with pytest.raises(ProgramFileError, match=r"cut\.onnx is damaged or no ONNX model"):
        load(tmp_path / "cut.onnx")
    with pytest.raises(ProgramFileError, match="cannot read"):
        load(tmp_path / "none.onnx")
    with pytest.raises(ProgramFileError, match="no graph"):
        load(b"")
    for i in range(0, len(data), 97):  # whatever comes of it is one of these errors, or a program
        broken = bytearray(data)
        broken[i] ^= 0xFF
        try:
            load(bytes(broken))
        except (ProgramFileError, NotImplementedError):
            pass


def misspell(made):
    made.graph.node[1].name, made.graph.node[1].op_type = "mine", "Reluu"


def turn_around(made):
    made.graph.node[0].input[0] = "y"


def rename_output(made):
    made.graph.output[0].name = "z"


def resize(*sizes):
    def change(made):
        made.graph.initializer[0].dims[:] = sizes

    return change


def shrink_input(made):
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_value = -1


def retype(made):
    made.graph.initializer[0].data_type = TensorProto.STRING


def add_attribute(made):
    made.graph.node[1].attribute.append(helper.make_attribute("slope", 1))


def add_input(made):
    made.graph.node[1].input.append("w")


def transpose_weight(made):
    made.graph.initializer[2].dims[:] = [3, 80]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (misspell, NotImplementedError, r"node 'mine' \(Reluu, version 22\) is not implemented"),
        (turn_around, ProgramFileError, "go around in a circle"),
        (rename_output, ProgramFileError, "nothing makes the output 'z'"),
        (resize(-4, 80), ProgramFileError, "'w' has the sizes"),
        (resize(2**40, 2**40), ProgramFileError, "takes .* bytes"),
        (shrink_input, ProgramFileError, "size -1"),
        (retype, NotImplementedError, "STRING"),
        (add_attribute, NotImplementedError, "attribute 'slope'"),
        (add_input, ProgramFileError, "has 2 inputs"),
        (transpose_weight, ProgramFileError, "MatMul"),
    ],
)
def test_what_is_wrong_is_named(change, error, message):
    with pytest.raises(error, match=message):
        load(damaged(change))


@pytest.mark.parametrize(
    ("name", "inputs", "weights"),
    [
        ("ConstantOfShape", ["s"], {"s": np.array([10**5, 10**6, 10**3])}),
        ("ConstantOfShape", ["s"], {"s": np.array([-3])}),
        ("Expand", ["w", "s"], {"w": np.ones(1), "s": np.array([10**12])}),
        ("Pad", ["w", "s"], {"w": np.ones(2), "s": np.array([0, 10**13])}),
        ("Range", ["a", "s", "b"], {"a": np.array(0), "s": np.array(10**13), "b": np.array(1)}),
        ("Range", ["a", "s", "a"], {"a": np.array(0), "s": np.array(9)}),
        ("Tile", ["w", "s"], {"w": np.ones(2), "s": np.array([10**12])}),
    ],
    ids=str,
)
def test_sizes_that_no_memory_holds_or_that_mean_nothing_are_refused_by_node(name, inputs, weights):
    with pytest.raises(ProgramFileError, match=rf"node 'y' \({name}, version 22\)"):
        load(model([helper.make_node(name, inputs, ["y"])], [tensor("x", [2])], [tensor("y", None)], weights))


def reference(made, *arrays):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(made).run(None, dict(zip((x.name for x in made.graph.input), arrays, strict=True)))


@pytest.mark.parametrize(
    ("name", "inputs", "attributes"),
    [
        ("Conv", [(2, 4, 7, 6), (6, 2, 3, 3), (6,)], {"group": 2, "strides": [2, 1], "pads": [1, 0, 2, 1]}),
        ("Conv", [(1, 2, 5, 4, 3), (3, 2, 2, 2, 2)], {"auto_pad": "SAME_LOWER"}),
        ("ConvTranspose", [(1, 4, 4, 5), (4, 3, 3, 2)], {"strides": [3, 2], "output_padding": [1, 0]}),
        ("AveragePool", [(1, 2, 7, 8)], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
        ("MaxPool", [(1, 2, 7, 8)], {"kernel_shape": [3, 2], "strides": [2, 3], "dilations": [2, 1]}),
        ("LayerNormalization", [(2, 3, 4), (3, 4), (3, 4)], {"axis": 1}),
        ("LSTM", [(5, 3, 4), (1, 8, 4), (1, 8, 2), (1, 16)], {"hidden_size": 2}),
        ("GRU", [(5, 3, 4), (1, 6, 4), (1, 6, 2), (1, 12)], {"hidden_size": 2, "linear_before_reset": 1}),
        ("Softmax", [(3, 4, 5)], {"axis": 1}),
    ],
    ids=str,
)  # fmt: skip
def test_operators_equal_the_reference(name, inputs, attributes):
    """On shapes that the format's own cases have not."""
    arrays = [numbers(*shape) for shape in inputs]
    names = [f"x{i}" for i in range(len(arrays))]
    infos = [tensor(n, a.shape) for n, a in zip(names, arrays, strict=True)]
    made = model([helper.make_node(name, names, ["y"], **attributes)], infos, [tensor("y", None)])
    made = shape_inference.infer_shapes(made)
    (expected,), (found,) = reference(made, *arrays), Session(made).run(*arrays)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


OPEN = [
    ("Slice", ["x", "one", "end", "axis1"], {}), ("Slice", ["x", "last", "end", "axis1"], {}),
    ("Slice", ["x", "zero", "minus", "axis1"], {}), ("Gather", ["x", "pair"], {"axis": 2}),
    ("Gather", ["ids", "zero"], {"axis": 1}), ("Softmax", ["x"], {"axis": 1}), ("ReduceMean", ["x", "axis1"], {}),
    ("Concat", ["x", "x"], {"axis": 1}), ("Transpose", ["x"], {"perm": [1, 0, 2]}), ("Flatten", ["x"], {"axis": 2}),
    ("CumSum", ["x", "one0"], {}), ("MatMul", ["x", "square"], {}), ("LayerNormalization", ["x", "scale"], {}),
    ("Pad", ["x", "pads"], {}), ("Where", ["truth", "x", "x"], {}), ("OneHot", ["ids", "depth", "offon"], {}),
    ("ConstantOfShape", ["sizes"], {}), ("Expand", ["scale", "sizes"], {}), ("Range", ["zero0", "length", "one0"], {}),
    ("GatherElements", ["x", "all_zero"], {"axis": 2}), ("Split", ["x"], {"axis": 2, "num_outputs": 2}),
    ("Tile", ["x", "three"], {}), ("Trilu", ["x"], {}), ("ArgMax", ["x"], {"axis": 1}),
    ("ScatterND", ["x", "place", "row"], {}), ("GatherND", ["x", "place"], {}),
    ("Attention", ["heads", "heads", "heads"], {"is_causal": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "attributes"), OPEN, ids=str)
def test_operators_take_open_sizes(name, inputs, attributes):
    """x [n, m, 4] and what is made of its sizes, for two sizes of one program."""
    weights = {
        "zero": np.array([0]), "one": np.array([1]), "last": np.array([-1]), "minus": np.array([-1]),
        "end": np.array([2**63 - 1]), "axis1": np.array([1]), "pair": np.array([3, -1]), "one0": np.array(1),
        "zero0": np.array(0), "square": numbers(4, 4), "scale": numbers(4), "pads": np.array([0, 1, 0, 0, 2, 0]),
        "truth": np.array(True), "depth": np.array(5), "offon": np.float32([0, 1]), "three": np.array([1, 3, 1]),
        "place": np.array([[-1, -2]]), "row": numbers(1, 4),
    }  # fmt: skip
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "one0"], ["length"]),
        helper.make_node("Cast", ["x"], ["whole"], to=TensorProto.INT64),
        helper.make_node("ArgMax", ["x"], ["ids"], axis=2, keepdims=0),
        helper.make_node("Mul", ["whole", "zero"], ["all_zero"]),
        helper.make_node("Unsqueeze", ["x", "one"], ["heads"]),
        helper.make_node(name, inputs, ["y"] if name != "Split" else ["y", "z"], **attributes),
    ]  # fmt: skip
    made = model(nodes, [tensor("x", ["n", "m", 4])], [tensor("y", None)], weights, 23)
    predictor = Predictor(load(made), "reference")
    for sizes in ((2, 3), (3, 5)):
        x = numbers(*sizes, 4)
        np.testing.assert_allclose(predictor.run(x)[0], reference(made, x)[0], rtol=1e-5, atol=1e-5)
