"""Programs with branches, loops, arrays and boxes that Paddle 3.3.1 exported, run here beside its outputs.

Those whose sizes are known are captured and compiled; the others run operator by operator. None has weights.
"""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
from argosy import inference
from argosy.jit.paddle_format.document import Document
from argosy.jit.paddle_format.parameters import read_parameters
from argosy.jit.paddle_format.stepwise import StepwiseProgram
from argosy.jit.translated import TranslatedLayer
from argosy_infer.errors import InputError, ProgramFileError

FILES = Path(__file__).parent / "paddle_programs"
RECORDED = json.loads((FILES / "control_flow_outputs.json").read_text())
STEPWISE = {"boxes", "collected", "generated"}


def _arrays(recorded):
    return [np.array(x["values"], x["dtype"]) for x in recorded]


def _check(results, recorded):
    results = results if isinstance(results, list) else [results]
    for result, expected in zip(results, _arrays(recorded), strict=True):
        assert result.numpy().dtype == expected.dtype
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_outputs_are_paddles(name):
    """By ``jit.load`` and by ``inference``; what can be captured is."""
    layer = paddle.jit.load(str(FILES / name))
    assert isinstance(layer._programs["forward"], StepwiseProgram) == (name in STEPWISE)
    served = inference.create_predictor(inference.Config(str(FILES / f"{name}.json"), ""))
    for case in RECORDED[name]:
        inputs = [paddle.to_tensor(x) for x in _arrays(case["inputs"])]
        _check(layer(*inputs), case["outputs"])
        _check(served.clone().run(inputs), case["outputs"])


def test_what_was_captured_is_a_program_of_argosy():
    """The loop of a Paddle program is one of a program here, too."""
    layer = paddle.jit.load(str(FILES / "loop"))
    assert "control.while" in str(layer.program())
    case = RECORDED["loop"][0]
    inputs = [paddle.to_tensor(x) for x in _arrays(case["inputs"])]
    with pytest.raises(NotImplementedError, match="and inference run it"):
        paddle.static.load_inference_model(str(FILES / "boxes"), None)
    program, feeds, fetched = paddle.static.load_inference_model(str(FILES / "loop"), None)
    assert feeds == ["x", "w", "n"]
    given = dict(zip(feeds, (x.numpy() for x in inputs), strict=True))
    results = paddle.static.Executor().run(program, feed=given, fetch_list=fetched)
    _check([paddle.to_tensor(x) for x in results], case["outputs"])


def test_stepwise_programs_train():
    """Weights of a program that runs step by step get gradients in training mode, and none in evaluation."""
    document = Document((FILES / "mlp.json").read_bytes(), "mlp.json")
    names = [step.attributes["name"] for step in document.parameters]
    weights = read_parameters((FILES / "mlp.pdiparams").read_bytes(), names, "mlp.pdiparams")
    program = StepwiseProgram(document, weights, "mlp.json", "a test asks for it")
    layer = TranslatedLayer({"forward": program}, program.states)
    recorded = np.load(FILES / "outputs.npz")
    x = paddle.to_tensor(recorded["mlp_x"])
    result = layer(x)
    np.testing.assert_allclose(result.numpy(), recorded["mlp_y"], rtol=1e-4, atol=1e-6)
    assert result.stop_gradient
    other = copy.deepcopy(layer)
    layer.train()(x).sum().backward()
    assert len(layer.parameters()) == 4
    assert all(p.grad is not None for p in layer.parameters())
    other.state_dict()["linear_0.w_0"].set_value(paddle.zeros(other.state_dict()["linear_0.w_0"].shape))
    assert not np.allclose(other(x).numpy(), result.numpy())


def test_inputs_that_do_not_fit_are_named():
    """Number, dtype and sizes of the inputs of a program that runs step by step."""
    layer = paddle.jit.load(str(FILES / "collected"))
    with pytest.raises(InputError, match="takes 1 inputs"):
        layer()
    with pytest.raises(InputError, match=r"'x' has shape \[3\]"):
        layer(paddle.ones([3]))
    with pytest.raises(InputError, match="'x' has dtype complex64"):
        layer(paddle.ones([2, 3], "complex64"))


def _changed(tmp_path, name, change):
    text = change((FILES / f"{name}.json").read_text())
    (tmp_path / "m.json").write_text(text)
    return str(tmp_path / "m")


@pytest.mark.parametrize(
    ("name", "old", "new", "error", "says"),
    [
        ("loop", '"#":"1.tanh"', '"#":"1.flash_loop"', NotImplementedError, "operator flash_loop"),
        ("loop", '"I":[{"%":-2},', '"I":[{"%":-7},', ProgramFileError, "value -7 is used before"),
        ("loop", '"args":[{"#":-1,', '"args":[{"#":-9},{"#":-1,', ProgramFileError, "while is damaged"),
        ("branch", '"regions":[{', '"regions":[{"blocks":[]},{', ProgramFileError, "a region has 0 blocks"),
    ],
)
def test_damaged_regions_are_refused(tmp_path, name, old, new, error, says):
    """Unknown operators within a loop, numbers of no value, arguments of another count."""
    with pytest.raises(error, match=says):
        paddle.jit.load(_changed(tmp_path, name, lambda text: new.join(text.rsplit(old, 1))))


def test_arrays_do_not_grow_by_a_claimed_place(tmp_path):
    """A write at 10**15 is refused before memory is taken."""
    tree = json.loads((FILES / "collected.json").read_text())
    operations = tree["program"]["regions"][0]["blocks"][0]["ops"]
    body = next(o for o in operations if o["#"] == "1.while")["regions"][0]["blocks"][0]["ops"]
    at = next(o for o in body if o["#"] == "1.array_length")
    at["#"], at["I"] = "1.full", []
    at["A"] = [
        {"AT": {"#": "1.a_intarray", "D": [1]}, "N": "shape"},
        {"AT": {"#": "0.a_f64", "D": 1e15}, "N": "value"},
        {"AT": {"#": "1.a_dtype", "D": "int64"}, "N": "dtype"},
    ]
    (tmp_path / "m.json").write_text(json.dumps(tree))
    with pytest.raises(ProgramFileError, match="array_write_ at 1000000000000000"):
        paddle.jit.load(str(tmp_path / "m"))(paddle.ones([2, 3]))


def _nested(depth):
    tree = json.loads((FILES / "branch.json").read_text())
    outer = next(o for o in tree["program"]["regions"][0]["blocks"][0]["ops"] if o["#"] == "1.if")
    holds, fails = outer["regions"]
    for i in range(depth - 1):
        within = {**outer, "O": [{**outer["O"][0], "%": 900 + i}], "regions": [holds, fails]}
        given = {"#": "2.yield", "I": [{"%": 900 + i}], "O": []}
        holds = {"#": "region", "blocks": [{"#": "block", "args": [], "ops": [within, given]}]}
    outer["regions"] = [holds, fails]
    return json.dumps(tree)


def test_depth_of_branches_is_bounded(tmp_path):
    """20 branches within each other give what one gives; 60 are refused, by the file's name."""
    (case, _) = RECORDED["branch"]
    layer = paddle.jit.load(_changed(tmp_path, "branch", lambda _: _nested(20)))
    _check(layer(paddle.to_tensor(*_arrays(case["inputs"]))), case["outputs"])
    with pytest.raises(ProgramFileError, match="over 24 deep"):
        paddle.jit.load(_changed(tmp_path, "branch", lambda _: _nested(60)))


def test_claimed_sizes_are_refused(tmp_path):
    """A tensor of 10**18 elements, claimed by a program, is refused before memory is taken."""
    text = (FILES / "collected.json").read_text()
    old = '{"#":"1.a_intarray","D":[]}'
    assert old in text
    path = _changed(
        tmp_path, "collected", lambda text: text.replace(old, '{"#":"1.a_intarray","D":[1000000000,1000000000]}')
    )
    with pytest.raises(ProgramFileError, match="1000000000, 1000000000"):
        paddle.jit.load(path)(paddle.ones([2, 3]))
