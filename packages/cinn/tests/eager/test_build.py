"""The native build of eager execution: its shared object, made without a linker."""

from __future__ import annotations

import ctypes
import platform
import sys

import numpy as np
import pytest

from argosy_cinn.eager import build
from argosy_cinn.eager.arithmetic import kernel_name
from argosy_cinn.eager.shared_object import shared_object
from argosy_cinn.eager.slot_offsets import SlotOffsets
from argosy_cinn.runtime.jit import compile_object
from argosy_cinn.target import Target
from argosy_hwadapt.cpu.c_bindings import open_shared_object, symbol_address
from argosy_hwadapt.cpu.features import cpu_features

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or "avx2" not in cpu_features(),
    reason="the native build is for x86-64 with AVX2 on Linux",
)


class _Anywhere(dict):
    """Every slot at the same place: the code is not run on objects here."""

    def __missing__(self, name: str) -> int:
        return 16


@pytest.fixture(scope="module")
def library():
    layout = SlotOffsets({})
    layout.offsets = _Anywhere()
    code = build._compile(layout)
    return open_shared_object(code)


def test_everything_is_exported_and_state_starts_as_zeros(library):
    addresses = {name: symbol_address(library, name) for name in build.EXPORTS}
    assert len(set(addresses.values())) == len(build.EXPORTS)
    words = (ctypes.c_uint64 * len(build.NativeBuild.state)).from_address(addresses["state"])
    assert not any(words)
    with pytest.raises(AttributeError, match="nothing"):
        symbol_address(library, "nothing")


@pytest.mark.parametrize("operator", ["add", "subtract", "multiply", "divide"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [0, 1, 3, 8, 29])
def test_kernels_give_numpys_bits(library, operator, dtype, count):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, count)).astype(dtype)
    result = np.full(count + 1, 7, dtype)
    kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(
        symbol_address(library, kernel_name(operator, dtype))
    )
    kernel(result.ctypes.data, x.ctypes.data, y.ctypes.data, count)
    np.testing.assert_array_equal(result[:count], getattr(np, operator)(x, y))
    assert result[count] == 7


def test_what_is_no_object_file_is_refused():
    with pytest.raises(ValueError, match="not an object file"):
        shared_object(b"\x7fELF nothing of that kind", ["f"])


def test_objects_loaded_one_after_the_other_are_different_ones():
    """Their files are anonymous and may get the same descriptor."""
    target, answers = Target.from_name(build.TARGET), []
    for k in range(3):
        text = f"define dso_local i32 @answer() {{\n ret i32 {k}\n}}\n"
        loaded = open_shared_object(shared_object(compile_object(text, target), ["answer"]))
        answers.append((loaded, ctypes.CFUNCTYPE(ctypes.c_int32)(symbol_address(loaded, "answer"))))
    assert [answer() for _, answer in answers] == [0, 1, 2]
