"""Blockings chosen by time: the clock and what it measures are made up, so that nothing here depends on timing."""

import json
import subprocess
import sys

import numpy as np
import pytest
from programs import build, values

from argosy_cinn import CinnCompiler
from argosy_cinn.contraction.blocking import candidates, chooser, estimate_blocking
from argosy_cinn.contraction.problem import Contraction, Matrix
from argosy_cinn.printers.types import I64, PTR, Value
from argosy_cinn.runtime import ObjectCache
from argosy_cinn.target import Target
from argosy_cinn.tuning import tuner as tuning
from argosy_cinn.tuning.measure_product import Shape
from argosy_cinn.tuning.tuner import Tuner
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_tensorcore.storage import StridedArray

NULL = Value(PTR, "null")


def problem(m=512, n=512, k=900, element="float"):
    """A product without memory: enough to choose for."""
    matrices = Matrix(NULL, k, 1, element), Matrix(NULL, n, 1, element)
    return Contraction(m, n, k, *matrices, lambda b, cells: None)


class Costs:
    """A clock that advances by what a blocking costs whenever it runs; ``runs`` are those that were prepared."""

    def __init__(self, cost):
        self.now, self.cost, self.runs = 0.0, cost, []

    def clock(self):
        return self.now

    def prepare(self, shape, blocking, target):
        self.runs.append(blocking)

        def run():
            self.now += self.cost(blocking, len(self.runs))

        return run

    def tuner(self, folder):
        return Tuner(ObjectCache(folder), self.clock, self.prepare)


def test_the_fastest_blocking_is_chosen(tmp_path):
    """Every candidate is run, and the one of least time is used."""
    options = candidates(problem(), Target.host())
    assert len(options) > 2
    costs = Costs(lambda blocking, _: 50.0 if blocking == options[2] else 100.0)
    assert costs.tuner(tmp_path).choose_blocking(problem(), Target.host()) == options[2]
    assert costs.runs == options


def test_a_gain_within_the_noise_changes_nothing(tmp_path):
    """Another blocking must be clearly better than the estimated one."""
    first = estimate_blocking(problem(), Target.host())
    costs = Costs(lambda blocking, _: 100.0 if blocking == first else 99.0)
    assert costs.tuner(tmp_path).choose_blocking(problem(), Target.host()) == first


def test_a_product_is_measured_once_for_a_machine(tmp_path):
    """What was chosen is read from disk in the next process; a damaged entry is measured again."""
    options = candidates(problem(), Target.host())
    first = Costs(lambda blocking, _: 50.0 if blocking == options[1] else 100.0)
    first.tuner(tmp_path).choose_blocking(problem(), Target.host())
    second = Costs(lambda blocking, _: 100.0)
    assert second.tuner(tmp_path).choose_blocking(problem(), Target.host()) == options[1]
    assert second.runs == []
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(entry.read_bytes()[:-3])
    assert second.tuner(tmp_path).choose_blocking(problem(), Target.host()) == options[0]
    assert second.runs == options


@pytest.mark.parametrize(
    "changes", [{"index": -1}, {"index": 99}, {"index": "1"}, {"nanoseconds": []}, {"nanoseconds": "ab"}, {"more": 1}]
)
def test_a_record_that_is_whole_but_senseless_is_measured_again(tmp_path, changes):
    costs = Costs(lambda blocking, _: 100.0)
    costs.tuner(tmp_path).choose_blocking(problem(), Target.host())
    store = ObjectCache(tmp_path)
    (name,) = store.names("tuned-")
    store.put(name, json.dumps(json.loads(store.get(name)) | changes).encode())
    costs.runs.clear()
    assert costs.tuner(tmp_path).choose_blocking(problem(), Target.host()) == costs.runs[0]
    assert costs.runs == candidates(problem(), Target.host())


@pytest.mark.parametrize(
    "other",
    [problem(8, 8, 8), problem(Value(I64, "%m")), problem(1 << 20, 1 << 20, 1 << 10)],
    ids=["small", "unknown size", "too large"],
)
def test_what_cannot_be_measured_is_estimated(other, tmp_path):
    """Small products are not worth it, unknown sizes have no time, huge ones would take too long."""
    costs = Costs(lambda blocking, _: 1.0)
    assert costs.tuner(tmp_path).choose_blocking(other, Target.host()) is None
    assert costs.runs == []


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_every_candidate_gives_the_same_bits(dtype):
    """A choice decides about time alone."""
    a, w = values(np.random.default_rng(0), (70, 700), dtype), values(np.random.default_rng(1), (700, 200), dtype)
    exact = {"accumulate": "int32"} if dtype == "int8" else {}

    def program(a, w):
        return prim.dot_general(a, w, lhs_contract=(1,), rhs_contract=(0,), **exact)

    def result(index):
        def choice(problem, target):
            options = candidates(problem, target)
            return options[index % len(options)]

        token = chooser.set(choice)
        try:
            made = CinnCompiler().compile(build(program, [a, w]), device("cpu"), options={"cache": ObjectCache(None)})
        finally:
            chooser.reset(token)
        return made.run([StridedArray.from_array(x) for x in (a, w)])[0].array().tobytes()

    assert len({result(i) for i in range(7)}) == 1


def test_products_are_measured_only_on_request(tmp_path, monkeypatch):
    """Without tuning nothing is timed; with it the result is the same, and what was chosen can be listed."""
    a = np.random.default_rng(0).standard_normal((130, 130)).astype(np.float32)

    def program(a):
        return prim.dot_general(a, a, lhs_contract=(1,), rhs_contract=(0,))

    def result(**options):
        made = CinnCompiler().compile(build(program, [a]), device("cpu"), options=options)
        return made.run([StridedArray.from_array(a)])[0].array().tobytes()

    monkeypatch.delenv("ARGOSY_TUNE", raising=False)
    store = ObjectCache(tmp_path / "objects")
    plain = result(cache=store)
    assert store.names("tuned-") == []
    assert result(cache=store, tune=True) == plain
    (choice,) = tuning.choices(store)
    assert choice.product == "130 x 130 x 130 nn float float"
    listed = subprocess.run(
        [sys.executable, "-m", "argosy_cinn", "tuned"],
        env={"ARGOSY_CACHE_DIR": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert listed.stdout == choice.line() + "\n"


def test_requests_are_checked(monkeypatch):
    """Errors name what came and what was expected; the option goes before the environment."""
    with pytest.raises(ValueError, match="tune is 3: expected True or False"):
        CinnCompiler().compile(build(lambda x: prim.neg(x), [np.ones(3)]), device("cpu"), options={"tune": 3})
    monkeypatch.setenv("ARGOSY_TUNE", "yes")
    with pytest.raises(ValueError, match="ARGOSY_TUNE is 'yes'"):
        tuning.TUNE.resolve({})
    monkeypatch.setenv("ARGOSY_TUNE", "1")
    assert tuning.TUNE.resolve({})
    assert not tuning.TUNE.resolve({"tune": False})


def test_shapes_tell_what_a_time_depends_on():
    """Layout, dtypes and signs are part of a shape; prologues have none."""
    shape = Shape.from_problem(problem())
    assert shape is not None
    assert str(shape) == "512 x 512 x 900 nn float float"
    turned = problem()
    turned.b = Matrix(NULL, 1, 900)
    assert Shape.from_problem(turned) != shape
    turned.b.prologue = lambda b, cells: cells.values[0]
    assert Shape.from_problem(turned) is None
