"""Tensors on a device whose memory the host cannot see: how they come there and back, and what counts as a plug-in."""

import gc

import numpy as np
import pytest

import argosy as paddle
from argosy.device import places
from argosy.jit import lowering
from argosy_cinn import CinnCompiler
from argosy_hwadapt import DeviceNotFound, device, plugins, registry
from argosy_hwadapt.virtual import VirtualRuntime
from argosy_phi_ops.compiler import get_compiler
from argosy_tensorcore.place import Place

there = pytest.mark.parametrize("bring", [lambda x: x.cpu(), lambda x: x.to("cpu"), lambda x: x.to(paddle.CPUPlace())])


@there
def test_cpu_gives_a_copy_on_the_host(bring):
    """It computes there, and the tensor stays where it is; what is on the host comes back itself."""
    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]], place="virtual:1")
    y = bring(x)
    assert y.place.is_cpu_place()
    assert x.place.is_custom_place()
    assert (y + 1).tolist() == [[2.0, 3.0], [4.0, 5.0]]
    x.payload.fill_from(np.zeros((2, 2), np.float32))
    assert y.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert bring(y) is y
    assert x.to("cpu", "float64").dtype == paddle.float64


def test_a_strided_view_and_an_empty_tensor_come_to_the_host():
    """The elements of a view alone."""
    x = paddle.to_tensor(np.arange(6, dtype="int64").reshape(2, 3), place="virtual")
    turned = paddle.Tensor._wrap(x.payload.view((3, 2), (1, 3)))
    assert turned.cpu().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert paddle.to_tensor(np.zeros((0, 2), "float32"), place="virtual").cpu().shape == [0, 2]


@there
def test_gradients_go_back_through_the_copy(bring):
    """The copy is part of the graph, as in Paddle."""
    x = paddle.to_tensor([1.0, 2.0], place="virtual", stop_gradient=False)
    y = bring(x)
    assert not y.stop_gradient
    y.square().sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    with paddle.no_grad():
        assert bring(x).stop_gradient


def test_a_layer_brings_its_tensors_to_the_host():
    """cpu() and to() of a layer take the places that tensors take."""
    layer = paddle.nn.Linear(2, 2)
    layer.register_buffer("scale", paddle.to_tensor([2.0, 3.0], place="virtual"))
    weight = layer.weight
    for place in (paddle.CPUPlace(), "cpu"):
        assert layer.to(place) is layer
    assert layer.weight is weight
    assert (layer.scale * 2).tolist() == [4.0, 6.0]
    assert layer.to("virtual").weight.place == Place("virtual")
    with pytest.raises(DeviceNotFound, match="no device plug-in is named 'cuda'"):
        layer.to("gpu")


def test_memory_is_pinned_for_the_current_device(monkeypatch):
    """By the plug-in, which gets it back when the last tensor is gone; gradients go through."""
    given = []
    allocate = lambda self, ctx, n: given.append(n) or bytearray(n)  # noqa: E731
    monkeypatch.setattr(VirtualRuntime, "pinned_alloc", allocate, raising=False)
    monkeypatch.setattr(VirtualRuntime, "pinned_free", lambda self, ctx, memory: given.append("free"), raising=False)
    monkeypatch.setattr(device("virtual"), "_methods", {})
    x = paddle.to_tensor([1.0, 2.0], place="virtual", stop_gradient=False)
    with pytest.raises(NotImplementedError, match="set_device"):
        x.pin_memory()
    with paddle.device.device_guard("virtual"):
        pinned = x.pin_memory()
    assert (pinned.tolist(), str(pinned.place)) == ([1.0, 2.0], "Place(cpu)")
    (pinned * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    part = pinned[1:].detach()
    del pinned
    gc.collect()
    assert (given, part.tolist()) == ([8], [2.0])
    del part
    gc.collect()
    assert given == [8, "free"]


def test_a_gpu_that_is_not_there_is_named():
    with pytest.raises(DeviceNotFound, match="no device plug-in is named 'cuda'"):
        paddle.to_tensor([1.0]).cuda()


def test_a_device_is_chosen_by_its_name():
    """By a part of what its vendor calls it, the first of these."""
    name = device("virtual").info.name.split()[0].upper()
    assert paddle.to_tensor([1.0], place=f"virtual:{name}").place == Place("virtual", 0)
    with pytest.raises(DeviceNotFound, match="no device of 'virtual' has 'h100' in its name; there are: virtual"):
        paddle.to_tensor([1.0], place="virtual:H100")


def test_what_is_built_in_for_tests_is_no_custom_device(monkeypatch):
    """Only what a distribution registers is; a plug-in that does not load is none, either."""
    assert not paddle.is_compiled_with_custom_device("virtual")
    assert not paddle.is_compiled_with_custom_device("cpu")
    assert "virtual" not in paddle.device.get_all_device_type()
    points = [Point("chip", "argosy_hwadapt.virtual:create"), Point("broken", "argosy_hwadapt.virtual:missing")]
    monkeypatch.setattr(plugins, "_entry_points", lambda group: {point.name: [point] for point in points})
    for table in ("_runtimes", "_failures"):
        monkeypatch.setattr(registry, table, {})
    assert paddle.is_compiled_with_custom_device("chip")
    assert not paddle.is_compiled_with_custom_device("broken")
    assert paddle.device.get_all_custom_device_type() == ["chip"]
    assert paddle.device.get_all_device_type() == ["cpu", "chip"]


class Point:
    """An entry point of a distribution."""

    dist = None

    def __init__(self, name, value):
        self.name, self.value = name, value

    def load(self):
        module, _, attribute = self.value.partition(":")
        return getattr(__import__(module, fromlist=[attribute]), attribute)


def test_captured_programs_are_compiled_for_the_device_of_new_tensors(monkeypatch):
    """That is the rank's; tensors that the host cannot see decide before it."""
    asked = []

    class Compiler:
        def compile(self, program, where, *rest):
            asked.append(where)
            return get_compiler("reference").compile(program, device("cpu"), *rest)

    monkeypatch.setattr(lowering, "get_compiler", lambda name: Compiler())
    monkeypatch.setattr(places._current, "value", Place("cpu"))
    x = paddle.ones([2])
    assert paddle.jit.to_static(lambda x: x * 2, full_graph=True)(x).tolist() == [2.0, 2.0]
    places._current.value = Place("virtual", 1)
    assert paddle.jit.to_static(lambda x: x * 3, full_graph=True)(x).tolist() == [3.0, 3.0]
    assert asked == [device("cpu"), device("virtual", 1)]
    assert lowering.device_of([x, paddle.to_tensor([1.0], place="virtual")]) is device("virtual")


def test_code_does_not_grow_with_shapes(monkeypatch):
    """The first shape has code of its own, all others of its rank share one, which is built once; derivatives, too."""
    compiled, compile_program = [], CinnCompiler.compile

    def counted(self, program, where, *rest, **options):
        if not where.is_host:
            compiled.append(program.name)
        return compile_program(self, program, where, *rest, **options)

    monkeypatch.setattr(CinnCompiler, "compile", counted)
    x = np.random.default_rng(0).standard_normal((40, 90)).astype("float32")
    for rows, columns in ((17, 31), (33, 20), (16, 90), (40, 18), (33, 20)):
        part = np.ascontiguousarray(x[:rows, :columns])
        there = paddle.to_tensor(part, place="virtual", stop_gradient=False)
        made = paddle.nn.functional.log_sigmoid(there)
        made.backward(paddle.to_tensor(part * 2, place="virtual"))
        np.testing.assert_allclose(made.numpy(), -np.log1p(np.exp(-part)), rtol=1e-5)
        np.testing.assert_allclose(there.grad.numpy(), 2 * part / (1 + np.exp(part)), rtol=1e-5)
    assert compiled == ["log_sigmoid", "log_sigmoid_grad"] * 2


def test_tensors_are_made_on_the_device_that_a_call_names():
    leaf = paddle.zeros([2, 3], device="virtual", requires_grad=True)
    made = [
        leaf,
        paddle.ones([2], device=Place("virtual")),
        paddle.full_like(paddle.ones([3]), 2.0, device="virtual", requires_grad=True),
        paddle.asarray([1.0, 2.0], device="virtual"),
        paddle.hann_window(8, device="virtual"),
        leaf.new_full([2], 3.0),
        paddle.ones([1]).new_zeros(2, device="virtual"),
        paddle.from_dlpack(paddle.ones([2]), device="virtual"),
        paddle.ones([2])._copy_to("virtual"),
    ]
    assert [t.place for t in made] == [Place("virtual")] * len(made)
    assert made[2].is_leaf
    assert not made[2].stop_gradient
    (leaf * made[2]).sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), np.full((2, 3), 2.0, np.float32))
    paddle.seed(5)
    drawn = paddle.rand([4], device="virtual").numpy()
    paddle.seed(5)
    np.testing.assert_array_equal(drawn, paddle.rand([4]).numpy())  # the same numbers on every device
    paddle.disable_static("virtual")
    try:
        assert paddle.ones([1]).place == Place("virtual")
        assert paddle.ones([1], device="cpu").place == Place("cpu")
    finally:
        paddle.set_device("cpu")
    with pytest.raises(DeviceNotFound):
        paddle.zeros([1], device="gpu")


def test_layers_are_made_on_the_device_that_they_are_given():
    for layer in (
        paddle.nn.Conv2D(3, 4, 3, device="virtual"),
        paddle.nn.LayerNorm(4, device="virtual"),
        paddle.nn.GroupNorm(2, 4, device="virtual"),
        paddle.nn.Embedding(4, 2, padding_idx=1, device="virtual"),
        paddle.compat.nn.Linear(3, 2, device="virtual"),
    ):
        assert {p.place for p in layer.parameters()} == {Place("virtual")}
    known = Place("virtual").device().info.dtypes
    assert paddle.amp.is_bfloat16_supported("virtual") is ("bfloat16" in known)
    assert paddle.amp.is_float16_supported()


def test_features_of_regions_are_made_where_the_features_are():
    """What is made of boxes on the host is brought there: results and gradients are the CPU's."""
    from argosy.vision import ops

    rng, found = np.random.default_rng(0), []
    arrays = [rng.standard_normal(s).astype("float32") for s in ((1, 4, 5, 5), (1, 18, 3, 3), (2, 4, 3, 3))]
    for place in ("cpu", "virtual"):
        x, offset, weight = (paddle.to_tensor(a, place=place) for a in arrays)
        boxes, count = paddle.to_tensor([[0.0, 0.0, 2.5, 3.0]], place=place), paddle.to_tensor([1], "int32", place)
        x.stop_gradient = False
        made = [f(x, boxes, count, 2) for f in (ops.roi_align, ops.roi_pool, ops.psroi_pool)]
        made.append(ops.deform_conv2d(x, offset, weight))
        sum((y * y).sum() for y in made).backward()
        assert {str(y.place) for y in made} == {str(x.place)}
        found.append([y.numpy() for y in (*made, x.grad)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_detectors_are_decoded_where_their_predictions_are():
    from argosy.vision import ops

    rng, found = np.random.default_rng(0), []
    x = rng.standard_normal((2, 14, 8, 8)).astype("float32")
    boxes, labels = rng.random((2, 3, 4)).astype("float32") * 0.4 + 0.1, rng.integers(0, 2, (2, 3)).astype("int32")
    for place in ("cpu", "virtual"):
        cells, true, kinds = (paddle.to_tensor(a, place=place) for a in (x, boxes, labels))
        size = paddle.full([2, 2], 64, "int32").to(place)
        made = [*ops.yolo_box(cells, size, [10, 13, 16, 30], 2, 0.01, 8)]
        made.append(ops.yolo_loss(cells, true, kinds, [10, 13, 16, 30, 33, 23], [0, 1], 2, 0.7, 8))
        assert {str(y.place) for y in made} == {str(cells.place)}
        found.append([y.numpy() for y in made])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-4)
