"""The conformance kit passes on the devices we ship, and finds what is wrong with bad ones."""

import json
import shutil
import subprocess
import sys

import pytest

from argosy_hwadapt.device import Device
from argosy_hwadapt.testing import Subject, ablate, run_checks
from argosy_hwadapt.testing.ablation import REQUIRED
from argosy_hwadapt.testing.memory import _round_trip
from argosy_hwadapt.virtual import VirtualRuntime


@pytest.mark.parametrize("name", ["cpu", "virtual"])
def test_our_devices_conform(name):
    """No check fails; what is skipped says why; the exit status is 0."""
    command = [sys.executable, "-m", "argosy_hwadapt.testing", name, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    report = json.loads(done.stdout)
    assert [c for c in report["checks"] if c["status"] == "failed"] == []
    assert done.returncode == 0
    assert report["passed"] >= 30
    assert {c["level"] for c in report["checks"]} == {0, 1, 2, 5, 6}
    assert all(c["detail"] for c in report["checks"] if c["status"] == "skipped")


def test_the_text_report_ends_with_the_count():
    """One level may be run alone, with the ablation, in text."""
    command = [sys.executable, "-m", "argosy_hwadapt.testing", "virtual", "--level", "0", "--ablation"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "6 passed, 0 failed, 0 skipped" in done.stdout
    assert "interfaces by ablation: " in done.stdout


def subject_of(runtime):
    return Subject("bad", runtime, Device("bad", 0, runtime.devices()[0], runtime))


def failed(runtime, level):
    return {o.name for o in run_checks(subject_of(runtime), [level]) if o.status == "failed"}


def test_a_healthy_virtual_device_is_the_control():
    """What the next tests find is not there without the faults."""
    for level in (0, 1, 2):
        assert failed(VirtualRuntime(), level) <= {"refuses_an_unknown_index"}


def test_wrong_copies_are_found():
    """A device that forgets offsets or the last byte fails level 1."""

    class ForgetsOffsets(VirtualRuntime):
        def copy(self, ctx, dst, dst_off, src, src_off, nbytes, stream=None):
            super().copy(ctx, dst, 0, src, src_off, nbytes)

    class ForgetsTheLastByte(VirtualRuntime):
        def copy(self, ctx, dst, dst_off, src, src_off, nbytes, stream=None):
            super().copy(ctx, dst, dst_off, src, src_off, nbytes - 1)

    assert "honours_offsets" in failed(ForgetsOffsets(), 1)
    assert "moves_small_sizes" in failed(ForgetsTheLastByte(), 1)
    with pytest.raises(Exception, match="came back changed"):
        _round_trip(subject_of(ForgetsTheLastByte()), 100)


def test_wrong_kernels_are_found():
    """A device that swaps the grid and the block or drops launches fails level 2."""

    class DropsLaunches(VirtualRuntime):
        def launch(self, *args):
            pass

    class NewBlobEachTime(VirtualRuntime):
        count = 0

        def build(self, ctx, form, source, options):
            self.count += 1
            blob = super().build(ctx, form, source, options)
            return blob + bytes([self.count % 256]) if form == "native-object" else blob

    assert {"covers_the_grid", "trains_the_reference_network"} <= failed(DropsLaunches(), 2)
    if shutil.which("cc") is None:
        pytest.skip("no C compiler to write kernels whose blobs may differ")
    assert "builds_the_same_blob_twice" in failed(NewBlobEachTime(), 2)


def test_a_device_that_does_not_say_it_died_is_found():
    """Level 6 catches a runtime that swallows its death."""

    class Optimist(VirtualRuntime):
        def faulty(self, **faults):
            return Optimist(**{k: v for k, v in faults.items() if k == "memory_bytes"})

    assert {"stays_dead_after_a_loss", "ends_a_hang"} <= failed(Optimist(), 6)


def test_interfaces_are_counted_by_taking_them_away():
    """The virtual device needs at most ten interfaces, and each needed one is of the contract's nine."""
    ablation = ablate("virtual", VirtualRuntime)
    assert ablation.required == 10
    assert ablation.strict_count <= 10
    assert set(ablation.needed) | set(ablation.unused) == set(REQUIRED)
    assert set(ablation.unused) <= {"free"}
    assert ablation.offered == ()
