"""Methods that are properties, operators that read sizes or values while capturing."""

import numpy as np
import pytest

import argosy as paddle
import argosy.nn.functional as F
from argosy import geometric, nn
from argosy.incubate.nn.functional import fused_rotary_position_embedding as rotary
from argosy.static import InputSpec


class Camera(nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear, self.rate = nn.Linear(2, 2), 25

    @paddle.jit.to_static(input_spec=[InputSpec([None, 2])])
    def forward(self, x):
        return self.linear(x)

    @paddle.jit.to_static(property=True)
    def fps(self):
        """Frames per second."""
        return self.rate

    @paddle.jit.to_static(property=True)
    def labels(self):
        return ["a", "b"]


def test_properties_are_exported_with_their_values(tmp_path):
    """They run as Python before, and give the values of the time of the export from the loaded layer."""
    camera = Camera()
    camera.rate = 30
    assert (camera.fps(), camera.labels()) == (30, ["a", "b"])
    assert Camera.fps.is_property
    assert Camera.fps.__doc__ == "Frames per second."
    paddle.jit.save(camera, str(tmp_path / "m"))
    loaded = paddle.jit.load(str(tmp_path / "m"))
    assert (loaded.fps(), loaded.labels()) == (30, ["a", "b"])
    np.testing.assert_allclose(loaded(paddle.ones([3, 2])).numpy(), camera(paddle.ones([3, 2])).numpy(), rtol=1e-6)


@pytest.mark.parametrize("value", [None, [], {"a": 1}, [1, "a"], np.float32(1)])
def test_a_property_that_cannot_be_written_is_named(value, tmp_path):
    """jit.save refuses other values than numbers, texts and lists of them."""
    camera = Camera()
    camera.rate = value
    with pytest.raises(TypeError, match="property 'fps' should be"):
        paddle.jit.save(camera, str(tmp_path / "m"))
    with pytest.raises(TypeError, match="property=True"):
        paddle.jit.to_static(camera, property=True)


SEGMENTS = [geometric.segment_sum, geometric.segment_mean, geometric.segment_max, geometric.segment_min]


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda f: f.__name__)
def test_segments_by_ids_of_a_closure_are_captured(segment):
    """Ids that the function finds are part of the program, which is made anew when they are written."""
    ids, x = paddle.to_tensor([0, 0, 1, 1, 2]), paddle.arange(15, dtype="float32").reshape([5, 3])
    run = paddle.jit.to_static(lambda x: segment(x, ids) * 2, full_graph=True)
    for given in (None, None, [0, 1, 1, 3, 3], None):
        if given is not None:
            ids.set_value(paddle.to_tensor(given))
        np.testing.assert_allclose(run(x).numpy(), (segment(x, ids) * 2).numpy(), rtol=1e-6)
    assert len(run.compiled) == 2


def _open(*last):
    return InputSpec([None, None, *last])


QKV = [_open(2, 8)] * 3
TABLES = [InputSpec([1, 32, 1, 8])] * 2
EXPORTED = {
    "rotary": (lambda q, k, v: rotary(q, k, v), QKV),
    "rotary_time_major": (lambda q: rotary(q, time_major=True)[0], QKV[:1]),
    "rotary_halves": (lambda q, s, c: rotary(q, None, None, s, c, use_neox_rotary_style=False)[0], [QKV[0], *TABLES]),
    "rotary_open_tables": (lambda q, s, c: rotary(q, None, None, s, c)[0], [QKV[0], *[InputSpec([1, None, 1, 8])] * 2]),
    "flash": (lambda q, k, v: F.flash_attention.flash_attention(q, k, v)[0], QKV),
    "flash_causal": (lambda q, k, v: F.flash_attention.flash_attention(q, k, v, causal=True)[0], QKV),
}


@pytest.mark.parametrize("name", EXPORTED)
def test_attention_and_rotary_embeddings_are_exported_with_open_sizes(name, tmp_path):
    """One program gives the eager results for several batches and lengths."""
    f, specs = EXPORTED[name]
    layer = nn.Layer()
    layer.forward = f
    paddle.jit.save(layer, str(tmp_path / "m"), specs)
    loaded = paddle.jit.load(str(tmp_path / "m"))
    for batch, length in ((2, 5), (1, 1), (3, 7)):
        sizes = [[m if n == -1 else n for n, m in zip(s.shape, (batch, length, 2, 8), strict=True)] for s in specs]
        given = [paddle.randn(shape) for shape in sizes]
        made, expected = ([t for t in _tuple(g(*given)) if t is not None] for g in (loaded, f))
        for a, b in zip(made, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


def _tuple(x):
    return x if isinstance(x, (list, tuple)) else (x,)
