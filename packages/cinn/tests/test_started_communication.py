"""Collectives that are started and waited for in compiled programs: host calls, with native code between them."""

import numpy as np
import pytest

from argosy_cinn import CinnCompiler
from argosy_hwadapt import device, why
from argosy_hwadapt.inproc import run_ranks
from argosy_hwadapt.testing.device_buffers import AddressedCommunicator
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.eager.staging import staged
from argosy_pir import Builder, Program, TensorType
from argosy_tensorcore.storage import StridedArray

CASES = [
    ("all_reduce", {"size": 2}, lambda all, rank: sum(all)),
    ("all_gather", {"size": 2, "axis": 1}, lambda all, rank: np.concatenate(all, 1)),
    ("reduce_scatter", {"size": 2, "axis": 0}, lambda all, rank: np.split(sum(all), 2)[rank]),
    ("reduce_scatter", {"size": 2, "axis": 1}, lambda all, rank: np.split(sum(all), 2, 1)[rank]),
    ("all_to_all", {"size": 2, "axis": 0, "concat_axis": 1},
     lambda all, rank: np.concatenate([np.split(x, 2)[rank] for x in all], 1)),
    ("broadcast_rank", {"size": 2, "root": 1}, lambda all, rank: all[1]),
    ("permute", {"pairs": ((0, 1), (1, 0))}, lambda all, rank: all[1 - rank]),
]  # fmt: skip


PLACES = [
    "cpu", "virtual", "virtual, by address",
    pytest.param("opencl", marks=pytest.mark.skipif(why("opencl") is not None, reason="no OpenCL runtime")),
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("name", "attributes", "expected"), CASES, ids=[case[0] for case in CASES])
def test_native_code_runs_between_start_and_wait(name, attributes, expected, place, monkeypatch):
    """The operand's memory may be used again after the start; the result comes with the wait, call after call. On
    devices communicators get buffers where they take them, and nothing falls back."""
    monkeypatch.setenv("ARGOSY_FALLBACK", "error")
    place, direct = place.removesuffix(", by address"), place.endswith("address")
    staged.clear()
    program = Program("overlapped")
    x = program.add_input(TensorType((4, 6), "float32"))
    with emit_at(Builder.at_end(program.block)):
        doubled = x + x
        y, handle, token = prim.start(doubled, prim.create_token(), collective=name, **attributes)
        meanwhile = prim.exp(x * 0.5) * x
        y, token = prim.wait(y, handle, token)
        program.set_outputs([y * 3.0, meanwhile])
    rng = np.random.default_rng(0)
    calls = [[rng.integers(0, 9, (4, 6)).astype(np.float32) for _ in range(2)] for _ in range(2)]

    def rank(communicator):
        communicator = AddressedCommunicator(communicator) if direct else communicator
        executable = CinnCompiler().compile(program, device(place), [communicator])
        host_calls = executable.report()["host_calls"]
        assert host_calls["prim.start"] == host_calls["prim.wait"] == 1
        given = [[StridedArray.from_array(xs[communicator.rank], device(place))] for xs in calls]
        return [[out.to_host() for out in executable.run(inputs, [])] for inputs in given]

    for r, results in enumerate(run_ranks(rank, 2)):
        for xs, (y, meanwhile) in zip(calls, results, strict=True):
            np.testing.assert_array_equal(y, 3 * expected([2 * x for x in xs], r))
            np.testing.assert_allclose(meanwhile, np.exp(xs[r] * 0.5) * xs[r], rtol=1e-5)
    assert bool(staged) == (place != "cpu" and not direct)


@pytest.mark.parametrize("place", PLACES)
def test_native_code_runs_while_a_message_is_on_its_way(place, monkeypatch):
    """A receipt begins before the message is sent: nobody waits for it there."""
    monkeypatch.setenv("ARGOSY_FALLBACK", "error")
    place, direct = place.removesuffix(", by address"), place.endswith("address")
    program = Program("received")
    x = program.add_input(TensorType((4, 6), "float32"))
    with emit_at(Builder.at_end(program.block)):
        got, handle, token = prim.start_recv(prim.create_token(), shape=(4, 6), dtype="float32", peer=0)
        token = prim.send(x + x, token, peer=0)
        meanwhile = prim.exp(x * 0.5) * x
        got, token = prim.wait(got, handle, token)
        program.set_outputs([got * 3.0, meanwhile])

    def rank(communicator):
        communicator = AddressedCommunicator(communicator) if direct else communicator
        executable = CinnCompiler().compile(program, device(place), [communicator])
        assert executable.report()["host_calls"]["prim.start_recv"] == 1
        return [out.to_host() for out in executable.run([StridedArray.from_array(given, device(place))], [])]

    given = np.arange(24, dtype=np.float32).reshape(4, 6) / 24
    ((got, meanwhile),) = run_ranks(rank, 1)
    np.testing.assert_array_equal(got, 6 * given)
    np.testing.assert_allclose(meanwhile, np.exp(given * 0.5) * given, rtol=1e-5)
