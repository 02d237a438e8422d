"""Layers on a mesh whose data changes: other dtypes, mixed precision, values put back."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy.distributed.debug import run_ranks
from argosy_autoparallel import count_collectives

SPLIT, WHOLE = [dist.Shard(0)], [dist.Replicate()]


def _layer():
    paddle.seed(0)
    mesh = dist.ProcessMesh([0, 1], ["x"])
    return dist.shard_layer(paddle.nn.Linear(5, 3), mesh, lambda _, layer, mesh: _split(layer.weight, mesh))


def _split(weight, mesh):
    dist.shard_tensor(weight, mesh, SPLIT)


def _decorated(layer):
    return paddle.amp.decorate(layer, level="O2", dtype="bfloat16")


@pytest.mark.parametrize("convert", [lambda layer: layer.to(dtype="bfloat16"), paddle.nn.Layer.bfloat16, _decorated])
def test_another_dtype_keeps_the_layout(convert):
    """Each rank converts its part: nothing is communicated, and no rank holds the whole afterwards."""

    def program():
        layer = _layer()
        before = layer.weight.numpy()
        with count_collectives() as counts:
            layer = convert(layer)
        found = layer.weight.placements, layer.bias.placements, layer.weight._local_shape, counts.calls
        return found, layer.weight.dtype.name, layer.weight.is_parameter, layer.weight.astype("float32").numpy(), before

    rows = (3, 2)
    for rank, (found, dtype, parameter, after, before) in enumerate(run_ranks(program, 2)):
        assert found == (SPLIT, WHOLE, [rows[rank], 3], {})
        assert (dtype, parameter) == ("bfloat16", True)
        np.testing.assert_allclose(after, before, rtol=1e-2)


def test_values_of_another_layer_go_from_part_to_part():
    """A state dict of a layer on the same mesh is put back without gathering; one of another layout and dtype fits."""

    def program():
        source, same, other = _layer(), _layer(), _layer()
        source.weight.set_value(np.arange(15, dtype=np.float32).reshape(5, 3))
        with count_collectives() as counts:
            same.set_state_dict(source.state_dict())
        dist.shard_tensor(other.weight, source.weight.process_mesh, [dist.Shard(1)])
        other.to(dtype="float64").set_state_dict(source.state_dict())
        values = [layer.weight.numpy() for layer in (same, other)]
        return values, other.weight.placements, other.weight.dtype.name, counts.calls

    for values, placements, dtype, calls in run_ranks(program, 2):
        for value in values:
            np.testing.assert_array_equal(value, np.arange(15).reshape(5, 3))
        assert (placements, dtype, calls) == ([dist.Shard(1)], "float64", {})
