"""Copies whose stores go past the caches, of any size, to and from any address."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy_cinn.runtime.streaming_copy import make_streaming_copy
from argosy_cinn.target import Target
from argosy_hwadapt.cpu.streaming import copy_function

pytestmark = pytest.mark.skipif(not Target.host().is_x86, reason="there is code for x86 only")


@settings(deadline=None)
@given(st.integers(0, 700), st.integers(0, 130), st.integers(0, 130))
def test_bytes_arrive_and_none_beside_them(nbytes, to, start):
    source = np.random.default_rng(nbytes).integers(1, 256, 1024).astype(np.uint8)
    target = np.zeros(1024, np.uint8)
    make_streaming_copy()(target.ctypes.data + to, source.ctypes.data + start, nbytes)
    assert target[to : to + nbytes].tobytes() == source[start : start + nbytes].tobytes()
    assert not target[:to].any()
    assert not target[to + nbytes :].any()


def test_ranks_that_share_memory_find_it():
    x, y = np.zeros(1000, np.float32), np.arange(1000, dtype=np.float32)
    copy = copy_function()
    copy(x, y)
    assert copy is not np.copyto
    assert (x == y).all()
