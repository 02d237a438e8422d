"""What a plug-in has of its own, operators and a graph compiler, goes before generated kernels."""

import numpy as np
import pytest

from argosy_hwadapt import device, registry
from argosy_hwadapt.virtual import VirtualRuntime
from argosy_phi_ops import get_operator
from argosy_phi_ops.compiler import available_compilers
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor


class LibraryRuntime(VirtualRuntime):
    """A device with a library of one operator."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def ops(self, ctx):
        return {"add": {"float32"}}

    def run_op(self, ctx, name, args, attributes):
        self.calls.append((name, [a.shape for a in args]))
        x, y = (self.read(ctx, a) for a in args[:2])
        self.write(ctx, args[2], x + y + 100)  # so that it is told from a generated kernel

    def read(self, ctx, array):
        made = np.empty(array.shape, array.dtype)
        self.copy(ctx, made.reshape(-1).view(np.uint8), 0, array.handle, array.offset, made.nbytes)
        self.synchronize(ctx)
        return made

    def write(self, ctx, array, value):
        value = np.ascontiguousarray(value, array.dtype)
        self.copy(ctx, array.handle, array.offset, value.reshape(-1).view(np.uint8), 0, value.nbytes)


class GraphRuntime(LibraryRuntime):
    """One that takes products of matrices whole, by their text."""

    def ops(self, ctx):
        return {}

    def supports(self, ctx, subgraph):
        return "" if subgraph.count("prim.") == 1 and "prim.dot_general" in subgraph else "it multiplies matrices only"

    def compile_graph(self, ctx, graph):
        return f"compiled {len(graph)}"

    def run_graph(self, ctx, graph, args):
        self.calls.append(graph)
        x, y = (self.read(ctx, a) for a in args[:2])
        self.write(ctx, args[2], x @ y + 100)


@pytest.fixture
def vendor(monkeypatch):
    """A runtime as the plug-in ``vendor``."""

    def install(runtime):
        monkeypatch.setitem(registry._runtimes, "vendor", runtime)
        monkeypatch.delitem(registry._devices, ("vendor", 0), raising=False)
        return device("vendor"), runtime.calls

    yield install
    registry._devices.pop(("vendor", 0), None)


def on(place, values, dtype=np.float32):
    return Tensor._wrap(StridedArray.from_array(np.array(values, dtype), place))


def test_an_operator_of_the_library_goes_first(vendor):
    """For its dtypes; operands come in row-major order, on any stream."""
    place, calls = vendor(LibraryRuntime())
    add, x = get_operator("add"), on(place, [[1, 2], [3, 4]])
    assert add(x, x).payload.to_host().tolist() == [[102, 104], [106, 108]]
    assert add(x, 1.0).payload.to_host().tolist() == [[102, 103], [104, 105]]
    assert calls == [("add", [(2, 2), (2, 2), (2, 2)]), ("add", [(2, 2), (), (2, 2)])]
    turned = get_operator("transpose")(x, [1, 0])
    with pytest.warns(RuntimeWarning, match="not adjacent"):
        doubled = add(turned, turned)
    assert doubled.payload.to_host().tolist() == [[102, 106], [104, 108]]
    del calls[:]
    if available_compilers()[0] != "reference":
        whole = on(place, [1, 2], np.int32)
        assert add(whole, whole).payload.to_host().tolist() == [2, 4]
        assert calls == []


@pytest.mark.skipif(available_compilers()[0] == "reference", reason="programs are compiled by argosy-cinn")
def test_a_program_that_the_device_takes_whole_is_a_graph(vendor):
    place, calls = vendor(GraphRuntime())
    x, matmul = on(place, [[1, 2], [3, 4]]), get_operator("matmul")
    assert matmul(x, x).payload.to_host().tolist() == [[107, 110], [115, 122]]
    assert len(calls) == 1
    assert calls[0].startswith("compiled ")
    assert get_operator("exp")(x).payload.to_host()[0, 0] == pytest.approx(np.e)
    assert len(calls) == 1
