"""What is shown at the prompt and in notebooks: optimizers, schedules, captured functions, tensors, layers."""

import base64
import io
import re
import time
import zlib
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
import argosy_infer
from argosy.hapi.callbacks import History
from argosy.notebook.pictures import as_image, png_source
from argosy_tensorcore.wait_notice import announce_wait, count_steps


def test_optimizers_and_schedules_say_what_they_are() -> None:
    """Their settings, how many parameters, the rate now."""
    schedule = paddle.optimizer.lr.StepDecay(0.5, step_size=3, gamma=0.5)
    assert repr(schedule) == "StepDecay(base_lr=0.5, step_size=3, gamma=0.5): 0.5 in epoch 0"
    model = paddle.nn.Linear(3, 4)
    adam = paddle.optimizer.Adam(schedule, parameters=model.parameters(), weight_decay=0.01)
    shown = repr(adam)
    assert shown.startswith("Adam(learning_rate=StepDecay(")
    assert "beta1=0.9" in shown
    assert "weight_decay=0.01" in shown
    assert shown.endswith("16 parameters in 2 tensors")
    assert repr(paddle.optimizer.SGD(0.1, parameters=[])) == "SGD(learning_rate=0.1): 0 parameters in 0 tensors"


def test_captured_functions_say_how_often_they_are_captured() -> None:
    """And their name."""

    @paddle.jit.to_static(full_graph=True)
    def double(x: paddle.Tensor) -> paddle.Tensor:
        return x * 2

    assert repr(double) == "<StaticFunction double: not captured yet>"
    double(paddle.ones([2]))
    assert repr(double) == "<StaticFunction double: 1 capture>"


def test_meshes_and_programs_have_a_repr() -> None:
    """That says what they hold."""
    mesh = paddle.distributed.ProcessMesh([[0, 1], [2, 3]], dim_names=["dp", "mp"])
    assert repr(mesh) == "ProcessMesh([[0, 1], [2, 3]], dim_names=['dp', 'mp'])"
    program = paddle.static.Program()
    assert "<details" in program._repr_html_()


def test_tensors_in_notebooks() -> None:
    """Facts and a table; a vector also as a line, what may be an image as one."""
    page = paddle.to_tensor([[1.5, 2.0], [3.0, 4.0]])._repr_html_()
    assert "float32 [2, 2]" in page
    assert page.count("<td>") == 4
    assert "<svg" in paddle.arange(100)._repr_html_()
    assert "data:image/png" in paddle.rand([3, 16, 16])._repr_html_()
    assert "data:image/png" not in paddle.rand([4, 4])._repr_html_()
    long = paddle.ones([100, 100])._repr_html_()
    assert long.count("<tr>") == 7
    assert "⋮" in long
    for odd in (paddle.to_tensor(3.0), paddle.zeros([0, 3]), paddle.ones([2], "bfloat16"), paddle.ones([2], "bool")):
        assert "Tensor" in odd._repr_html_()
    assert "<script" not in page


def test_pictures_are_png_of_the_values() -> None:
    """Read back: width, height and bytes."""
    values = np.arange(64, dtype=np.float32).reshape(8, 8)
    data = base64.b64decode(png_source(as_image(values)).partition(",")[2])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(data[16:20], "big") == int.from_bytes(data[20:24], "big") == 8
    start = data.index(b"IDAT") + 4
    rows = np.frombuffer(zlib.decompress(data[start:]), np.uint8).reshape(8, 9)
    assert rows[:, 0].tolist() == [0] * 8
    assert rows[0, 1] == 0
    assert rows[7, 8] == 255


def test_layers_in_notebooks() -> None:
    """A tree with settings and sizes."""
    net = paddle.nn.Sequential(paddle.nn.Linear(3, 4), paddle.nn.Sequential(paddle.nn.ReLU(), paddle.nn.Linear(4, 2)))
    page = net._repr_html_()
    assert "26 parameters" in page
    assert "in_features=3" in page
    assert page.count("<details") == page.count("</details>") == 4
    assert "<code>weight</code> float32 [3, 4]" in page


def test_schedules_and_histories_are_drawn() -> None:
    """By matplotlib; the schedule stays where it is."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    schedule = paddle.optimizer.lr.StepDecay(1.0, step_size=2, gamma=0.1)
    axes = schedule.plot(6)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [1, 1, 0.1, 0.1, 0.01, 0.01])
    assert (schedule.last_epoch, schedule.last_lr) == (0, 1.0)
    history = History()
    history.on_epoch_end(0, {"loss": [0.5], "step": 3})
    history.on_epoch_end(1, {"loss": [0.25], "step": 3})
    drawn = history.plot()
    np.testing.assert_allclose(drawn.lines[0].get_ydata(), [0.5, 0.25])
    assert repr(history) == "History of 2 epochs: loss=[0.25]"
    with pytest.raises(KeyError, match="no 'accuracy'; it has loss"):
        history.plot(["accuracy"])
    pyplot.close("all")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_takes_long_is_announced_on_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the line goes away; what is quick, and files, see nothing."""
    monkeypatch.setattr("argosy_tensorcore.wait_notice.PATIENCE", 0.01)
    terminal, file = _Terminal(), io.StringIO()
    with announce_wait("compiling 'step'", terminal):
        while "compiling" not in terminal.getvalue():
            time.sleep(0.01)
    assert re.search(r"compiling 'step': \d+ s", terminal.getvalue())
    assert terminal.getvalue().endswith("\r")
    with announce_wait("nothing", file):
        time.sleep(0.05)
        assert list(count_steps(range(3), "tensors")) == [0, 1, 2]
    assert file.getvalue() == ""
    monkeypatch.setattr("argosy_tensorcore.wait_notice.PATIENCE", 60.0)
    quick = _Terminal()
    with announce_wait("nothing", quick):
        pass
    assert quick.getvalue() == ""


def test_what_is_announced_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what it is within, too, on one line."""
    monkeypatch.setattr("argosy_tensorcore.wait_notice.PATIENCE", 0.001)
    monkeypatch.setattr("argosy_tensorcore.wait_notice._PERIOD", 0.001)
    terminal = _Terminal()

    def wait_for(text: str) -> None:
        while text not in terminal.getvalue().rpartition("\r")[2]:
            time.sleep(0.001)

    with announce_wait("quantising", terminal):
        for done in count_steps([0, 1, 2], "layers"):
            wait_for(f" quantising: {done} of 3 layers: 0 s")
            with announce_wait("compiling 'step'", terminal):
                for functions in count_steps(iter([0, 1]), "functions"):
                    wait_for(f" quantising: {done} of 3 layers: compiling 'step': {functions} functions: 0 s")
        wait_for(" quantising: 0 s")
    assert terminal.getvalue().endswith("\r")


def test_objects_show_what_made_them() -> None:
    """By the arguments that they keep, other than defaults; a long one is shortened."""
    transforms, io = paddle.vision.transforms, paddle.io
    shown = {
        "Normal(std=0.02)": paddle.nn.initializer.Normal(0.0, 0.02),
        "Compose(\n    Resize(size=8, keys=('image',))\n)": transforms.Compose([transforms.Resize(8)]),
        "BatchSampler(sampler=SequenceSampler(data_source=[1, 2, 3]), batch_size=2)": io.BatchSampler(
            [1, 2, 3], batch_size=2
        ),
        "SequenceSampler(data_source=[0, 1, 2, 3, ...])": io.SequenceSampler(list(range(1000))),
        "ParameterList(0: float32 [2])": paddle.nn.ParameterList([paddle.create_parameter([2], "float32")]),
        "BeamSearchDecoder(cell=GRUCell(2, 2), start_token=0, end_token=1, beam_size=3)": paddle.nn.BeamSearchDecoder(
            paddle.nn.GRUCell(2, 2), 0, 1, 3
        ),
        "<Program: 0 operations, 0 parameters>": paddle.static.Program(),
        "GPTConfig(width=8, heads=2, hidden=32)": paddle.models.GPTConfig(width=8, heads=2),
    }
    assert {text: repr(value) for text, value in shown.items()} == {text: text for text in shown}


def test_loading_and_saving_are_announced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As what runs long is: by the name of the file."""
    announced: list[str] = []

    def announce(what: str) -> AbstractContextManager[None]:
        announced.append(what)
        return nullcontext()

    for module in ("framework.serialization", "distributed.checkpoint.saving", "distributed.checkpoint.loading"):
        monkeypatch.setattr(f"argosy.{module}.announce_wait", announce)
    for module in ("export", "predictor"):
        monkeypatch.setattr(f"argosy_infer.{module}.announce_wait", announce)
    path, folder, program = tmp_path / "x.pdparams", tmp_path / "checkpoint", tmp_path / "program"
    paddle.save({"x": paddle.ones([2])}, path)
    paddle.load(path)
    paddle.distributed.save_state_dict({"x": paddle.ones([2])}, folder)
    paddle.distributed.load_state_dict({"x": paddle.ones([2])}, folder)
    assert announced == [f"{act} {where}" for where in (path, folder) for act in ("saving", "loading")]
    paddle.jit.save(paddle.nn.Linear(2, 1), program, input_spec=[paddle.static.InputSpec([None, 2], "float32", "x")])
    argosy_infer.Predictor(program)
    assert announced[4:6] == [f"saving {program}.pir", f"loading {program}.pir"]
    assert re.fullmatch(r"compiling '\w+', \d+ operations", announced[6])
