"""The whole way of a model through the packages: eager, captured, differentiated, compiled, exported, served."""

import json
import subprocess
import sys

import numpy as np
import pytest

import argosy as paddle
from argosy.models.gpt import GPT, GPTConfig
from argosy_infer import Generator
from argosy_phi_ops.capture.tracer import Tracer
from argosy_pir.passes import PassManager
from argosy_pir.program import Program, from_bytes
from argosy_pir.serialization import to_bytes
from argosy_pir.types import TensorType

F = paddle.nn.functional
SIZES = {"vocabulary": 19, "positions": 12, "width": 12, "layers": 2, "heads": 3}
IDS = np.random.default_rng(0).integers(0, 19, (4, 9))


def training(dropout=0.0):
    """A GPT and one training step of it: forward, backward, clipping, AdamW."""
    paddle.seed(7)
    model = GPT(GPTConfig(dropout=dropout, **SIZES))
    clip = paddle.nn.ClipGradByGlobalNorm(1.0)
    optimizer = paddle.optimizer.AdamW(1e-2, parameters=model.parameters(), weight_decay=0.1, grad_clip=clip)

    def step(x, y):
        loss = F.cross_entropy(model(x).reshape([-1, 19]), y.reshape([-1]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return model, step


def losses(run, count=6):
    x, y = paddle.to_tensor(IDS[:, :-1].copy()), paddle.to_tensor(IDS[:, 1:].copy())
    return [float(run(x, y)) for _ in range(count)]


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_eager_interpreted_and_compiled_training_agree(dropout):
    """Dropout included: a draw is a function of seed, counter and index wherever it is made."""
    eager = losses(training(dropout)[1])
    assert eager[-1] < eager[0]
    for backend in ("reference", "CINN"):
        compiled = paddle.jit.to_static(training(dropout)[1], full_graph=True, backend=backend)
        np.testing.assert_allclose(losses(compiled), eager, rtol=2e-5, err_msg=backend)


def test_programs_print_parse_and_serialise_back_after_every_pass():
    _, step = training(dropout=0.2)
    type = TensorType((4, 8), "int64")
    with Tracer("step") as tracer:
        captured = tracer.finish([step(tracer.input(type, "x"), tracer.input(type, "y"))])
    program = captured.program
    for name in (None, "decompose", "expand-gradients", "cse", "dce", "canonicalize"):
        if name is not None:
            PassManager(name).run(program)
        program.verify()
        text = str(program)
        assert str(Program.parse(text)) == text, name
        assert str(from_bytes(to_bytes(program))) == text, name


def count_calls():
    """Names of the Python functions that one call of a compiled training step enters, and what was compiled for it."""
    _, step = training()
    compiled = paddle.jit.to_static(step, full_graph=True)
    with paddle.jit.count_compiles() as compiles:
        losses(compiled)
    x, y = paddle.to_tensor(IDS[:, :-1].copy()), paddle.to_tensor(IDS[:, 1:].copy())
    calls = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    compiled(x, y)
    sys.setprofile(None)
    return {"compiled": compiles.names, "calls": calls}


def test_a_compiled_step_is_one_compilation_and_few_python_calls():
    """Counted in a process of its own: layers that other tests pushed would be asked on every call."""
    made = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    counted = json.loads(made.stdout)
    assert counted["compiled"] == ["step"]
    assert 0 < len(counted["calls"]) < 30, counted["calls"]


@pytest.mark.parametrize("compiler", ["reference", "cinn"])
def test_an_exported_model_generates_what_the_model_itself_would(tmp_path, compiler):
    model, step = training()
    losses(paddle.jit.to_static(step, full_graph=True), 3)
    model.eval()
    paddle.jit.save(model, str(tmp_path / "gpt"), input_spec=[paddle.static.InputSpec([None, None], "int64")])
    generator = Generator(tmp_path / "gpt", capacity=32, block_size=4, compiler=compiler)
    ids = [3, 1, 4]
    made = generator.generate(ids, 8)
    for _ in range(8):
        ids.append(int(np.argmax(model(paddle.to_tensor(np.array([ids]))).numpy()[0, -1])))
    assert made == ids[3:]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(count_calls()))
