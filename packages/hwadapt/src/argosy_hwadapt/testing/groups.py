"""Level 5: the optional groups, as the device declares them; an undeclared one is skipped, its default is
tested elsewhere.
"""

import numpy as np

from argosy_hwadapt.device import LaunchArgument
from argosy_hwadapt.kernel import Scalar
from argosy_hwadapt.optional import OPTIONAL_GROUPS
from argosy_hwadapt.testing.kernels import KitKernel, usable_form
from argosy_hwadapt.testing.suite import CheckSkipped, Subject, check, require


def _need(subject: Subject, group: str) -> None:
    """Skip unless the runtime has the whole group; fail if it has only a part of one that belongs together."""
    offered = [method for method in OPTIONAL_GROUPS[group] if subject.device.offers(method)]
    if not offered:
        raise CheckSkipped(f"the device does not offer group {group!r}")
    missing = set(OPTIONAL_GROUPS[group]) - set(offered)
    require(not missing, f"group {group!r} is offered without {', '.join(sorted(missing))}")


@check(5)
def synchronises_streams_by_events(subject: Subject) -> None:
    """Work on a second stream that waits for an event sees what was written before it."""
    _need(subject, "streams")
    device = subject.device
    first, second = device.call("stream_create"), device.call("stream_create")
    buffer, out = device.allocate(1 << 20), np.zeros(1 << 18, np.float32)
    kernel = KitKernel(device, usable_form(device), "affine_float32")
    device.memset(buffer, 0)
    device.synchronize()
    for _ in range(20):
        arguments: list[LaunchArgument] = [buffer, buffer, Scalar("f", 1), Scalar("f", 1), Scalar("q", 1 << 18)]
        kernel.launch((1 << 18,), arguments, stream=first)
    device.call("stream_wait_event", second, device.call("event_record", first))
    device.copy(out, buffer, stream=second)
    device.synchronize(second)
    require(set(out) == {20}, "the second stream did not wait")
    for stream in (first, second):
        device.call("stream_destroy", stream)


@check(5)
def replays_captured_work(subject: Subject) -> None:
    """A captured launch has no effect until it is replayed, and then each time."""
    _need(subject, "graph_capture")
    device = subject.device
    buffer, out = device.allocate(4), np.zeros(1, np.float32)
    kernel = KitKernel(device, usable_form(device), "affine_float32")
    device.copy(buffer, out)
    device.call("capture_begin")
    kernel.launch((1,), [buffer, buffer, Scalar("f", 1), Scalar("f", 1), Scalar("q", 1)])
    graph = device.call("capture_end")
    for _ in range(3):
        device.call("capture_replay", graph)
    device.copy(out, buffer)
    device.synchronize()
    require(out[0] == 3, f"three replays gave {out[0]}")


@check(5)
def reports_profile_events(subject: Subject) -> None:
    """Between start and stop each copy leaves an event with sensible times."""
    _need(subject, "profiler")
    device, buffer = subject.device, subject.device.allocate(1 << 20)
    device.call("profiler_start")
    device.copy(buffer, bytes(1 << 20))
    device.synchronize()
    device.call("profiler_stop")
    events = device.call("profiler_drain")
    require(events and all(event.end_ns >= event.start_ns for event in events), f"events are {events}")


@check(5)
def lists_its_operators(subject: Subject) -> None:
    """An operator library names what it has."""
    _need(subject, "operators")
    require(subject.device.call("ops"), "the operator library is empty")


@check(5)
def explains_what_it_does_not_compile(subject: Subject) -> None:
    """A graph compiler answers with a reason."""
    _need(subject, "graph_compile")
    require(isinstance(subject.device.call("supports", ""), str), "supports() must answer with a string")


@check(5)
def communicates(subject: Subject) -> None:
    """The device's own communicator reduces over its ranks."""
    _need(subject, "collectives")
    comm = subject.device.call("communicator", None)
    out = np.zeros(3, np.float32)
    comm.all_reduce(np.ones(3, np.float32), out)
    require(set(out) == {comm.size}, f"the sum of ones over {comm.size} ranks is {out.tolist()}")


@check(5)
def answers_that_it_is_healthy(subject: Subject) -> None:
    """health, offered or default, passes on a device that works."""
    subject.device.call("health")
