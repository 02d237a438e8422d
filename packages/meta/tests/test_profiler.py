"""The profiler: operators, kernels of compiled programs by thread, schedules, traces and tables."""

import json
import threading
import time

import numpy as np
import pytest

import argosy as paddle
from argosy import profiler
from argosy.profiler import Profiler, ProfilerState, RecordEvent, TracerEventType

pytestmark = pytest.mark.usefixtures("own_programs")


def recorded(work, **options):
    """The events of ``work`` under a profiler."""
    with Profiler(on_trace_ready=lambda p: None, **options) as found:
        work()
    return found


def test_eager_operators_and_marked_stretches_are_recorded():
    x = paddle.ones([3, 4])

    def work():
        with RecordEvent("mine"):
            paddle.tanh(x) + x

    events = recorded(work, record_shapes=True).profiler_result.events
    by_name = {e.name: e for e in events}
    assert by_name["tanh"].details == {"shapes": [[3, 4]]}
    mine = by_name["mine"]
    assert mine.kind is TracerEventType.PythonUserDefined
    assert mine.start <= by_name["tanh"].start <= by_name["tanh"].end <= by_name["add"].start <= mine.end


def test_nothing_is_recorded_before_and_after():
    event = RecordEvent("early")
    event.begin()
    event.end()
    found = recorded(lambda: None)
    paddle.tanh(paddle.ones([2]))
    assert found.profiler_result.events == []


def test_kernels_of_compiled_programs_are_slices_and_nothing_is_captured_again():
    weight = paddle.ones([64, 64])

    @paddle.jit.to_static
    def program(x):
        return paddle.nn.functional.softmax(x @ weight) * 2

    x = paddle.ones([200, 64])
    before = program(x).numpy()
    with paddle.jit.count_compiles() as compiles:
        found = recorded(lambda: program(x))
    assert compiles.value == 0
    kernels = [e for e in found.profiler_result.events if e.kind is TracerEventType.Kernel]
    whole = [e for e in found.profiler_result.events if e.kind is TracerEventType.Program]
    assert "product_200x64x64" in {e.name for e in kernels}
    assert [e.name for e in whole] == ["program"]
    assert all(whole[0].start <= e.start <= e.end <= whole[0].end for e in kernels)
    assert {e.lane for e in kernels} == {"kernels"}
    assert (program(x).numpy() == before).all()


def _looped(x):
    i = paddle.zeros([], "int32")
    while i < 3:
        x, i = paddle.tanh(x) + 1, i + 1
    return x


def _trained(x):
    (slope,) = paddle.grad(paddle.nn.functional.softmax(x.T @ x).square().sum(), x)
    return slope


KINDS = {
    "a call of the host": lambda x: paddle.linalg.eigvalsh(x @ x.T) * 2,
    "a gradient": _trained,
    "a loop": _looped,
    "random numbers": lambda x: paddle.nn.functional.dropout(x, 0.5) * 2,
    "sorting": lambda x: paddle.sort(x * 2, axis=-1),
    "sums along both axes": lambda x: (x * x).sum(0) * x.exp().sum(1).mean(),
}


@pytest.mark.parametrize("sizes", [[48, 48], [None, 48]], ids=["known sizes", "any number of rows"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_program_of_each_kind_gives_the_same_while_it_is_recorded(kind, sizes):
    program = paddle.jit.to_static(KINDS[kind], full_graph=True, input_spec=[paddle.static.InputSpec(sizes)])
    rng = np.random.default_rng(0)
    x = paddle.to_tensor(rng.standard_normal((48, 48)).astype("float32"), stop_gradient=kind != "a gradient")
    paddle.seed(3)
    before = program(x).numpy()
    results = []

    def work():
        paddle.seed(3)
        results.append(program(x).numpy())

    events = recorded(work).profiler_result.events
    np.testing.assert_array_equal(results[0], before)
    ran = [e for e in events if e.kind is TracerEventType.Kernel]
    whole = [e for e in events if e.kind is TracerEventType.Program]
    assert ran
    for kernel in ran:
        assert any(e.start <= kernel.start <= kernel.end <= e.end for e in whole)


def test_a_trace_has_a_lane_for_python_and_one_for_kernels_of_each_thread(tmp_path):
    program = paddle.jit.to_static(lambda x: paddle.tanh(x) @ x)
    x = paddle.ones([8, 8])

    def work():
        program(x)
        paddle.exp(x)

    found = recorded(work)
    found.export(str(tmp_path / "deep" / "trace.json"))
    trace = json.loads((tmp_path / "deep" / "trace.json").read_text())["traceEvents"]
    lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace if e["name"] == "thread_name"}
    me = threading.get_ident()
    assert {f"python (thread {me})", f"kernels (thread {me})"} <= set(lanes.values())
    slices = {e["name"]: e for e in trace if e["ph"] == "X"}
    assert lanes[slices["exp"]["pid"], slices["exp"]["tid"]] == f"python (thread {me})"
    assert all(e["dur"] >= 0 for e in slices.values())
    again = profiler.load_profiler_result(str(tmp_path / "deep" / "trace.json"))
    assert [(e.name, e.kind, e.lane) for e in again.events] == [
        (e.name, e.kind, e.lane) for e in found.profiler_result.events
    ]


@pytest.mark.parametrize("count", [1, 3])
def test_each_kernel_has_a_lane_of_its_own_on_each_thread(tmp_path, count):
    program = paddle.jit.to_static(lambda x: paddle.nn.functional.softmax(x @ x, -1) @ x)
    x = paddle.ones([64, 64])
    program(x)

    def work():
        threads = [threading.Thread(target=lambda: [program(x) for _ in range(2)]) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found = recorded(work)
    found.export(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kernels = [e for e in found.profiler_result.events if e.kind is TracerEventType.Kernel]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace if e["name"] == "thread_name"}
    own = [e for e in trace if e["ph"] == "X" and e["cat"] == "KernelLane"]
    assert len(own) == len(kernels) >= 2 * count
    lanes = {((e["pid"], e["tid"]), e["name"], e["args"]["thread"]) for e in own}
    ran = {(e.name, e.thread) for e in kernels}
    assert len(lanes) == len({lane for lane, _, _ in lanes}) == len(ran)
    assert {(name, thread) for _, name, thread in lanes} == ran
    for e in own:
        several = len({k.thread for k in kernels}) > 1
        shown = f"{e['name']} (thread {e['args']['thread']})" if several else e["name"]
        assert names[e["pid"], e["tid"]] == shown
    assert len(profiler.load_profiler_result(str(tmp_path / "trace.json")).events) == len(found.profiler_result.events)


def test_schedules_choose_steps():
    state = profiler.make_scheduler(closed=1, ready=1, record=2, repeat=1, skip_first=1)
    names = ["CLOSED", "CLOSED", "READY", "RECORD", "RECORD_AND_RETURN", "CLOSED", "CLOSED"]
    assert [state(i).name for i in range(7)] == names
    traces = []
    x = paddle.ones([2])
    with Profiler(scheduler=(2, 4), on_trace_ready=lambda p: traces.append(p.profiler_result.events)) as p:
        for _ in range(6):
            paddle.tanh(x)
            p.step()
    assert p.current_state is ProfilerState.CLOSED
    ((*events,),) = traces
    assert [e.name for e in events if e.kind is TracerEventType.ProfileStep] == ["ProfileStep#2", "ProfileStep#3"]
    assert sum(e.name == "tanh" for e in events) == 2


def test_summaries_show_calls_and_totals(capsys):
    x = paddle.ones([2])
    found = recorded(lambda: [paddle.tanh(x) for _ in range(3)])
    found.summary(time_unit="us", sorted_by=profiler.SortedKeys.CPUMax)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("tanh")]
    assert line.split()[1] == "3"
    found.summary(views=profiler.SummaryView.KernelView)
    assert "tanh" not in capsys.readouterr().out
    with pytest.raises(ValueError, match="time_unit"):
        found.summary(time_unit="h")


def test_steps_are_timed_without_recording():
    with Profiler(timer_only=True) as p:
        for _ in range(3):
            time.sleep(0.01)
            p.step(num_samples=5)
    assert "samples/s" in p.step_info()
    assert p.step_info() == "no step was done"
    with pytest.raises(RuntimeError, match="nothing has been recorded"):
        p.export("x.json")


def test_traces_go_to_a_folder(tmp_path):
    with Profiler(on_trace_ready=profiler.export_chrome_tracing(str(tmp_path), "me")):
        paddle.tanh(paddle.ones([2]))
    (path,) = tmp_path.glob("me_time_*.paddle_trace.json")
    assert any(e.name == "tanh" for e in profiler.load_profiler_result(str(path)).events)


def test_what_is_not_there_says_so(tmp_path):
    with pytest.raises(NotImplementedError, match="profile_memory"):
        Profiler(profile_memory=True)
    with pytest.raises(NotImplementedError, match="export_chrome_tracing"):
        profiler.export_protobuf(str(tmp_path))
    with pytest.warns(UserWarning, match="GPU"):
        Profiler(targets=[profiler.ProfilerTarget.CPU, profiler.ProfilerTarget.GPU])
    with pytest.raises(ValueError, match="record > 0"):
        profiler.make_scheduler(closed=1, ready=1, record=0)
    with Profiler(on_trace_ready=lambda p: None), pytest.raises(RuntimeError, match="already"):
        Profiler(on_trace_ready=lambda p: None).start()
    (tmp_path / "x").write_text("[]")
    with pytest.raises(ValueError, match="no trace"):
        profiler.load_profiler_result(str(tmp_path / "x"))


def test_queues_copies_and_fallbacks_of_a_device_have_lanes(tmp_path, monkeypatch):
    monkeypatch.setenv("ARGOSY_FALLBACK", "silent-counted")
    x = paddle.to_tensor(np.eye(3, dtype="float32"), place="virtual")
    found = recorded(lambda: [paddle.exp(x).numpy(), paddle.linalg.eigvals(x)])
    found.export(str(tmp_path / "trace.json"))
    events = profiler.load_profiler_result(str(tmp_path / "trace.json")).events
    lanes = {lane: [e for e in events if e.lane == lane] for lane in ("virtual:0", "virtual:0-copies", "fallbacks")}
    assert {e.kind for e in lanes["virtual:0"]} == {TracerEventType.Kernel}
    assert {e.kind for e in lanes["virtual:0-copies"]} == {TracerEventType.Memcpy}
    assert all(found.profiler_result.events[0].start <= e.end for e in lanes["virtual:0"])
    (fallen,) = lanes["fallbacks"]
    assert (fallen.name, fallen.details["device"], fallen.details["bytes"] > 0) == ("prim.eig", "virtual:0", True)
    before = len(found.profiler_result.events)
    paddle.linalg.eigvals(x)
    assert len(found.profiler_result.events) == before
