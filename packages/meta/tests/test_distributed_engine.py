"""``auto_parallel.Engine``, and ``DistModel`` with metrics and specs: the figures of one process."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed.auto_parallel import Engine
from argosy.distributed.debug import run_ranks
from argosy.distributed.pipeline.marks import SplitPoint, split_model
from argosy.io import TensorDataset
from argosy.metric import Accuracy
from argosy.static import InputSpec

ROWS, WIDTH, CLASSES = 24, 8, 3


def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, WIDTH)).astype(np.float32)
    y = rng.integers(0, CLASSES, (ROWS, 1))
    return TensorDataset([paddle.to_tensor(x), paddle.to_tensor(y)])


def make(annotate=False):
    paddle.seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, CLASSES))
    if annotate:
        mesh = dist.ProcessMesh([[0, 1]], ["dp", "mp"])
        dist.shard_tensor(model[0].weight, mesh, [dist.Replicate(), dist.Shard(1)])
        dist.shard_layer(model, mesh)
    optimizer = paddle.optimizer.AdamW(0.01, parameters=model.parameters())
    return Engine(model, nn.CrossEntropyLoss(), optimizer, Accuracy())


def work(folder=None, annotate=False):
    """What the loops of an engine give."""
    engine = make(annotate)
    history = engine.fit(data(), batch_size=6, epochs=2, valid_data=data(), verbose=0)
    found = {name: np.ravel(values).tolist() for name, values in history.history.items()}
    evaluated = engine.evaluate(data(), batch_size=12, verbose=0)
    outputs = engine.predict(data(), 1, batch_size=12, steps=1, verbose=0)
    assert len(outputs) == len(outputs[0]) == 1
    if folder is not None:
        engine.save(f"{folder}/model")
        engine.fit(data(), batch_size=6, steps_per_epoch=2, verbose=0)
        engine.load(f"{folder}/model")
    other = engine.run(engine_batch(), mode="eval")
    return found, evaluated, outputs[0][0], float(other["loss"])


def engine_batch():
    return dict(zip(("x", "label"), data().tensors, strict=True))


@pytest.fixture(scope="module")
def expected():
    return run_ranks(work, 1)[0]


@pytest.mark.parametrize("annotate", [False, True], ids=["copies", "split"])
def test_an_engine_trains_evaluates_predicts_and_saves(expected, annotate, tmp_path):
    """Copies of a model that nobody annotated, with a part of each batch, and a model split over ranks."""
    for found in run_ranks(lambda: work(tmp_path, annotate), 2):
        for name, values in expected[0].items():
            np.testing.assert_allclose(found[0][name], values, rtol=1e-5, err_msg=name)
        np.testing.assert_allclose(found[1]["loss"], expected[1]["loss"], rtol=1e-5)
        assert found[1]["acc"] == expected[1]["acc"]
        np.testing.assert_allclose(found[2], expected[2], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found[3], expected[3], rtol=1e-5)


def test_an_engine_says_what_a_step_takes():
    """Of the parameters, their gradients, two moments and what else a step has: the same on both ranks."""

    def program():
        engine = make()
        with pytest.raises(RuntimeError, match="the first call with a batch makes it"):
            engine.cost(mode="train")
        engine.prepare(InputSpec([6, WIDTH], "float32"), InputSpec([6, 1], "int64"))
        engine.fit(data(), batch_size=6, steps_per_epoch=1, verbose=0)
        with pytest.raises(NotImplementedError, match="no program makes them"):
            assert engine.startup_program
        assert engine.get_dist_main_program("train") is engine.main_program
        count = sum(p.size for p in engine.network.parameters())
        return engine.cost(), count, len(engine.inputs), len(engine.labels)

    (cost, count, inputs, labels), other = run_ranks(program, 2)
    assert cost == other[0]
    assert cost[0] is None
    assert 4 * 4 * count < cost[1] < 4 * 4 * count + 20_000
    assert (inputs, labels) == (1, 1)


def test_what_an_engine_does_not_take_is_refused():
    def program():
        with pytest.raises(TypeError, match="optimizer is an Optimizer, not str"):
            Engine(nn.Linear(2, 2), None, "sgd")
        engine = Engine(nn.Linear(2, 2))
        with pytest.raises(ValueError, match="mode is one of"):
            engine.to_mode("test")
        with pytest.raises(RuntimeError, match="needs a loss"):
            engine.run([paddle.ones([2, 2])], mode="train")
        with pytest.raises(NotImplementedError, match=r"run\(fetch_list\)"):
            engine.run([paddle.ones([2, 2])], fetch_list=["loss"])
        with pytest.raises(NotImplementedError, match=r"prepare\(inputs, main_program\)"):
            engine.prepare(inputs=[1], main_program=1)
        with pytest.raises(TypeError, match="a Dataset or an iterable"):
            engine.predict(3)

    run_ranks(program, 1)


def test_specs_say_what_batches_look_like():
    """Shapes and dtypes; and where entries lie, which come as ordinary tensors."""

    def program():
        mesh = dist.ProcessMesh([0, 1], ["dp"])
        model = dist.shard_layer(nn.Linear(4, 2), mesh)
        spec = InputSpec([None, 4], "float32")
        spec.mesh, spec.placements = mesh, [dist.Shard(0)]
        step = dist.to_static(model, loss=nn.MSELoss(), input_spec=[[spec], [InputSpec([-1, 2], "float32")]])
        x, y = paddle.ones([6, 4]), dist.shard_tensor(paddle.ones([6, 2]), mesh, [dist.Shard(0)])
        assert step(x, y).numpy() == step(dist.shard_tensor(x, mesh, [dist.Shard(0)]), y).numpy()
        with pytest.raises(ValueError, match=r"entry 0 of the batch has shape \[6, 3\], input_spec says \[None, 4\]"):
            step(paddle.ones([6, 3]), y)
        with pytest.raises(ValueError, match="entry 0 of the batch is float64, not float32 as in input_spec"):
            step(paddle.ones([6, 4], "float64"), y)
        with pytest.raises(ValueError, match="the batch has no entry 1"):
            step(x)

    run_ranks(program, 2)


def test_metrics_of_a_step_are_those_of_its_batch():
    """Before the update, as the loss is."""

    def program():
        paddle.seed(0)
        mesh = dist.ProcessMesh([0, 1], ["dp"])
        model = dist.shard_layer(nn.Linear(WIDTH, CLASSES), mesh)
        x, y = (dist.shard_tensor(t, mesh, [dist.Shard(0)]) for t in data().tensors)
        right = float((model(x).argmax(-1) == y.reshape([-1])).astype("float32").mean())
        metric = Accuracy()
        optimizer = paddle.optimizer.SGD(0.5, parameters=model.parameters())
        step = dist.DistModel(model, None, nn.CrossEntropyLoss(), optimizer, metrics=[metric])
        step(x, y)
        assert metric.accumulate() == pytest.approx(right)

    run_ranks(program, 2)


def test_metrics_of_a_pipeline_are_those_of_its_batch():
    """On every rank, of all microbatches, in training and evaluation."""

    def program():
        paddle.seed(0)
        model = nn.Sequential(nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, CLASSES))
        split_model(model, {"1": SplitPoint.BEGINNING})
        x, y = data().tensors
        wanted, metric = [model(x).numpy()], Accuracy()
        optimizer = paddle.optimizer.SGD(0.5, parameters=model.parameters())
        strategy = dist.Strategy({"pipeline": {"enable": True, "accumulate_steps": 4}})
        step = dist.DistModel(model, None, nn.CrossEntropyLoss(), optimizer, strategy, [metric])
        step(x, y)
        found = [metric.accumulate()]
        metric.reset()
        step.eval()
        step(x, y)
        found.append(metric.accumulate())
        step.predict()
        wanted.append(step(x).numpy())
        rates = [float((logits.argmax(-1) == y.numpy().ravel()).mean()) for logits in wanted]
        return found, rates

    for found, rates in run_ranks(program, 2):
        assert rates[0] != rates[1]
        np.testing.assert_allclose(found, rates)


def test_rows_of_a_pipelines_batch_keep_their_order_when_ranks_share_them():
    """A microbatch has rows of every rank's part: labels go with them, also where each rank has all, and outputs and
    metrics are those of the batch's order."""

    def program():
        paddle.seed(0)
        mesh = dist.ProcessMesh([[0, 1], [2, 3]], ["pp", "dp"])
        dist.set_mesh(mesh)
        first, last = (mesh.get_mesh_with_dim("pp", stage) for stage in range(2))
        model = nn.Sequential(nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, CLASSES))
        split_model(model, {"1": SplitPoint.BEGINNING})
        x, y = data().tensors
        logits, metric = model(x), Accuracy()
        wanted = float(nn.functional.cross_entropy(logits, y)), float(metric.compute(logits, y).mean())
        strategy = dist.Strategy({"pipeline": {"enable": True, "accumulate_steps": 4}})
        step = dist.DistModel(model, None, nn.CrossEntropyLoss(), None, strategy, [metric])
        rows = dist.shard_tensor(x, first, [dist.Shard(0)])
        found = []
        for labels in (y, dist.shard_tensor(y, last, [dist.Shard(0)]), dist.shard_tensor(y, last, [dist.Replicate()])):
            metric.reset()
            found.append((float(step(rows, labels)), metric.accumulate()))
        step.predict()
        return found, [wanted] * 3, step(rows).numpy(), logits.numpy()

    for found, wanted, outputs, logits in run_ranks(program, 4):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
        np.testing.assert_allclose(outputs, logits, rtol=1e-5, atol=1e-6)
