"""The conformance kit's levels 3 and 4: what they find on devices, and that they find what is wrong."""

import json

import numpy as np
import pytest

from argosy.device import testing
from argosy.device.performance import measure, report_text
from argosy_hwadapt import why

without_opencl = pytest.mark.skipif(why("opencl") is not None, reason="no OpenCL runtime")
on_devices = pytest.mark.parametrize("name", ["virtual", pytest.param("opencl", marks=without_opencl)])


@on_devices
def test_operators_are_those_of_the_cpu(name):
    """Of each sort of kernel: maps, rows, products, scans, orders, scatters, random numbers, complex numbers,
    transforms, loops, decompositions, what is looked up."""
    names = "gelu softmax matmul cumsum argsort put_along_axis uniform conv2d polar fft_r2c lcm lu_factor".split()
    names += ["gather_mm", "paged_attention", "svd", "eigh"]
    found = list(testing.check_operators(name, names))
    assert [o for o in found if o.status != "passed"] == []
    assert {o.name for o in found} == set(names)


@without_opencl
def test_what_has_no_code_is_told_with_its_reason():
    (first, *_) = testing.check_operators("opencl", ["eigvals"])
    assert (first.status, first.level) == ("fallback", 3)
    assert "prim.eig has no code for opencl:0 (the compiler has no kernel for it)" in first.detail


def test_what_differs_is_found(monkeypatch):
    """The control: operands on the device are other ones."""
    given = testing._place_argument
    monkeypatch.setattr(
        testing,
        "_place_argument",
        lambda x, place: given(x + 1 if place != "cpu" and isinstance(x, np.ndarray) else x, place),
    )
    assert {o.status for o in testing.check_operators("virtual", ["exp"])} == {"failed"}


@on_devices
def test_models_train_and_generate_without_falling_back(name):
    """Losses are the CPU's, and so are greedy tokens."""
    found = list(testing.check_models(name))
    assert [o for o in found if o.status != "passed"] == []
    assert len(found) == 9


def test_the_command_reports(monkeypatch, capsys):
    outcome = testing.Outcome(4, "a model", "fallback", "a reason")
    monkeypatch.setitem(testing._LEVELS, 4, [lambda place: iter([outcome])])
    assert testing.main(["virtual", "--level", "4", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == [outcome._asdict()]
    assert testing.main(["virtual", "--level", "4"]) == 1
    assert "L4 fallback a model  a reason" in capsys.readouterr().out


@on_devices
def test_figures_are_of_the_device_and_of_the_cpu(name):
    figures = list(measure(name, size=8))
    assert [
        f.name.split()[0] for f in figures
    ] == "operator launch copy copy gelu softmax rms_norm matmul attention".split()
    assert all((f.found > 0 or f.name.startswith("launch")) and (f.host is None or f.host > 0) for f in figures)
    head, *lines = report_text(name, iter(figures)).splitlines()
    assert head.split() == [name, "cpu"]
    assert len(lines) == len(figures)


def test_cases_of_onnx_are_counted_and_what_is_left_out_has_its_reason(monkeypatch):
    pytest.importorskip("onnx", reason="onnx is not installed")
    from argosy_infer.onnx import testing as onnx_testing

    names = ["test_gelu_tanh_1", "test_bernoulli", "test_sequence_insert_at_back", "test_lstm_defaults"]
    chosen = [case for case in onnx_testing.cases() if case.name in names]
    if not chosen:
        pytest.skip("this onnx is not installed with its cases of nodes")
    monkeypatch.setattr(onnx_testing, "cases", lambda: chosen)
    found = list(testing.check_onnx_cases("virtual"))
    assert [o.status for o in found] == ["excluded", "passed", "passed", "excluded"]
    first, *reasons = testing._share_of_cases(found)
    assert first == "ONNX node set: 2 of 3 cases of plain tensors pass (66.7%)"
    assert [r.split(": ", 1)[1] for r in reasons] == ["random numbers of another generator", "not counted: sequences"]
