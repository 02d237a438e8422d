"""Parameters that are filled when asked to; parameters outside of layers; layers by other names."""

import copy

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy_hwadapt import DeviceNotFound
from argosy_tensorcore import rng


def test_parameters_made_within_the_guard_are_filled_by_initialize():
    """The values are those of the initializer, and a second call changes nothing."""
    with paddle.LazyGuard():
        layer = nn.Linear(3, 4, weight_attr=nn.initializer.Constant(2.5))
    for parameter in layer.parameters():
        parameter.initialize()
    assert (layer.weight.numpy() == 2.5).all()
    assert (layer.bias.numpy() == 0).all()
    layer.weight.set_value(np.ones([3, 4], np.float32))
    layer.weight.initialize()
    assert (layer.weight.numpy() == 1).all()
    assert nn.Linear(2, 2, weight_attr=nn.initializer.Constant(3.0)).weight.numpy()[0, 0] == 3.0


def test_what_is_not_filled_yet_has_no_values():
    """Computing with it and reading it are errors; a state dict fills it; a row of padding is zero."""
    with paddle.LazyGuard():
        layer, table = nn.Linear(3, 4), nn.Embedding(3, 2, padding_idx=1)
        stack = nn.LSTM(3, 4)
    assert [p._is_initialized() for p in layer.parameters()] == [False, False]
    assert "not initialized" in repr(layer.weight)
    weight = layer.weight
    for use in (lambda: layer(paddle.ones([2, 3])), weight.numpy, lambda: weight + 1, lambda: weight.reshape([-1])):
        with pytest.raises(RuntimeError, match=r"shape \[3, 4\] made within LazyGuard"):
            use()
    copied = copy.deepcopy(layer)
    layer.set_state_dict({"weight": np.ones([3, 4], "float32"), "bias": np.zeros([4], "float32")})
    assert layer(paddle.ones([1, 3])).tolist() == [[3.0] * 4]
    assert not copied.weight._is_initialized()
    copied.weight.set_value(np.ones([3, 4], "float32"))
    assert copied.weight.sum() == 12
    for parameter in [*table.parameters(), *stack.parameters()]:
        parameter.initialize()
    assert (table.weight.numpy() == 0).all(1).tolist() == [False, True, False]
    assert stack(paddle.ones([1, 2, 3]))[0].shape == [1, 2, 4]


def test_each_rank_fills_its_part_of_a_parameter_that_waits(monkeypatch):
    """On any mesh with the values of one process, and no rank draws more than its part and a little."""
    initializer, lengths = nn.initializer, []
    drawn = rng.philox_bits
    monkeypatch.setattr(rng, "philox_bits", lambda *at: lengths.append(np.prod(at[2])) or drawn(*at))
    monkeypatch.setattr(rng, "_MOST_WORDS", 8)

    def build():
        paddle.seed(3)
        with paddle.LazyGuard():
            layers = [nn.Linear(5, 6, weight_attr=kind, bias_attr=initializer.Constant(2.0)) for kind in (
                initializer.Uniform(), initializer.XavierNormal(), initializer.TruncatedNormal(std=2.0),
                initializer.Orthogonal())]  # fmt: skip
            return [*layers, nn.Embedding(4, 3, padding_idx=1)]

    def rank(mesh, *placements):
        layers = build()

        def place(name, layer, mesh):
            for p in layer._parameters.values():
                dist.shard_tensor(p, mesh, placements if p.ndim > 1 else [])

        model = dist.shard_layer(nn.LayerList(layers), mesh, place)
        weight = layers[0].weight
        assert tuple(weight.placements) == placements
        return [dist.unshard_dtensor(p).numpy() for p in model.parameters()]

    alone = build()
    for p in nn.LayerList(alone).parameters():
        p.initialize()
    expected = [p.numpy() for p in nn.LayerList(alone).parameters()]
    line, square = dist.ProcessMesh([0, 1], dim_names=["x"]), dist.ProcessMesh([[0, 1], [2, 3]])
    for mesh, ranks, *placements in (
        (line, 2, dist.Shard(0)), (line, 2, dist.Shard(1)), (line, 2, dist.Partial()), (line, 2, dist.Replicate()),
        (square, 4, dist.Shard(1), dist.Shard(0)), (square, 4, dist.Shard(1), dist.Shard(1)),
    ):  # fmt: skip
        lengths.clear()
        for found in run_ranks(lambda mesh=mesh, placements=placements: rank(mesh, *placements), ranks):
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)
        if any(p.is_shard() for p in placements):
            assert max(lengths) < 30


def test_a_function_of_ones_own_fills_a_parameter_once():
    """set_init_func is a method of parameters, as initialize is; plain tensors have nothing to fill."""
    parameter = nn.Parameter(paddle.zeros([2]))
    parameter.set_init_func(lambda p, block: p.set_value(p + 3.0))
    assert parameter.tolist() == [0.0, 0.0]
    parameter.initialize()
    nn.Parameter.initialize(parameter)
    assert parameter.tolist() == [3.0, 3.0]
    assert parameter.trainable
    parameter.trainable = False
    assert parameter.stop_gradient
    with pytest.raises(TypeError, match="obj should be a function"):
        parameter.set_init_func(3)
    for call in (lambda: paddle.ones([1]).initialize(), lambda: paddle.ones([1]).set_init_func(print)):
        with pytest.raises(TypeError, match="is for parameters"):
            call()


def test_parameter_of_data():
    """nn.Parameter marks a tensor that a layer takes as its own."""
    layer = nn.Layer()
    layer.scale = nn.Parameter(paddle.ones([2]))
    layer.fixed = nn.Parameter.from_tensor(paddle.ones([3]), requires_grad=False)
    assert [name for name, _ in layer.named_parameters()] == ["scale", "fixed"]
    assert isinstance(layer.scale, nn.Parameter)
    assert not isinstance(paddle.ones([1]), nn.Parameter)
    assert layer.fixed.stop_gradient
    assert not layer.scale.stop_gradient
    with pytest.raises(TypeError, match="colour"):
        nn.Parameter([1.0], colour="red")


def test_names_in_other_manners_are_the_same_classes():
    """Module is Layer, Conv2d is Conv2D, and so on."""
    assert nn.Module is nn.Layer
    assert nn.ModuleList is nn.LayerList
    assert nn.Conv2d is nn.Conv2D
    assert nn.ReflectionPad1d is nn.ReflectionPad1D
    assert nn.AdaptiveMaxPool3d is nn.AdaptiveMaxPool3D


def test_settings_of_layers_can_be_read():
    """What a layer was made with stands in properties."""
    fold = nn.Fold([4, 5], [2, 3], paddings=1)
    assert (fold.output_size, fold.kernel_size, fold.stride, fold.padding, fold.dilation) == ([4, 5], [2, 3], 1, 1, 1)
    assert nn.Embedding(5, 2, padding_idx=-1).padding_idx == 4
    assert nn.CosineSimilarity(axis=2).dim == 2
    assert (nn.PairwiseDistance(3.0).norm, nn.PairwiseDistance().eps) == (3.0, 1e-6)
    assert nn.AdaptiveMaxPool2D(3, return_mask=True).return_indices
    assert nn.AdaptiveAvgPool2D(3).output_size == nn.AdaptiveAvgPool3D(3).output_size == 3
    assert nn.Hardshrink(0.7).lambd == nn.Softshrink(0.7).lambd == 0.7
    assert nn.GLU(1).dim == 1


def test_layers_convert_and_refuse():
    """Conversions give the layer back; devices that are not there and backward() are refused."""
    layer = nn.Linear(2, 2)
    assert layer.half() is layer
    assert layer.weight.dtype == paddle.float16
    assert layer.type("float64").cpu().weight.dtype == paddle.float64
    for move in (layer.cuda, layer.xpu):
        with pytest.raises(DeviceNotFound, match=r"no device plug-in is named .*; installed: cpu"):
            move()
    with pytest.raises(ValueError, match="backward"):
        layer.backward()
    with pytest.raises(RuntimeError, match="get_extra_state"):
        layer.get_extra_state()
    assert list(layer.sharded_state_dict("net.")) == ["net.weight", "net.bias"]
    assert [name for name, _ in layer.full()] == ["weight", "bias"]
    assert layer.create_tensor("t").shape == layer.create_variable("v").shape == [0]
    assert nn.LayerNorm(3, dtype="float64", device="cpu").weight.dtype == paddle.float64
    with pytest.raises(DeviceNotFound, match="cuda"):
        nn.Conv2D(3, 3, 1, device="gpu")


def test_names_of_sublayers_that_are_not_there():
    """set_sublayer says which part of the name is missing."""
    layer = nn.Sequential(nn.ReLU())
    with pytest.raises(AttributeError, match="missing"):
        layer.set_sublayer("missing.0", nn.ReLU())
    with pytest.raises(AttributeError, match="7"):
        layer.set_sublayer("7", nn.ReLU(), strict=True)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: nn.utils.weight_norm(nn.Linear(2, 2), dim=2), "dim 2"),
        (lambda: nn.utils.weight_norm(nn.Linear(2, 2), "scale"), "scale"),
        (lambda: nn.utils.remove_weight_norm(nn.Linear(2, 2)), "not normalised"),
        (lambda: nn.utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0), "n_power_iterations"),
        (lambda: nn.utils.vector_to_parameters(paddle.ones([3]), [paddle.ones([2])]), "3 elements"),
        (lambda: nn.utils.parameters_to_vector([]), "no parameters"),
        (lambda: nn.utils.clip_grad_norm_([], 1.0, 3.0), "norm_type"),
        (lambda: nn.initializer.Dirac(0), "groups"),
        (lambda: nn.Conv2D(3, 3, 1, padding_mode="mirror"), "padding_mode"),
        (lambda: nn.Linear(3, 4, weight_attr=nn.initializer.Dirac()), "Dirac"),
        (lambda: nn.Embedding(3, 4, _weight=paddle.ones([2, 2])), "_weight"),
    ],
)
def test_what_does_not_fit_is_refused(call, said):
    """Wrong settings are named."""
    with pytest.raises(ValueError, match=said):
        call()


def test_a_second_normalisation_is_refused():
    """One weight is normalised once."""
    for normalise in (nn.utils.weight_norm, nn.utils.spectral_norm):
        layer = normalise(nn.Linear(2, 2))
        with pytest.raises(RuntimeError, match="already"):
            normalise(layer)


def test_norms_that_are_not_finite_stop_when_asked():
    """clip_grad_norm_ raises on request."""
    w = paddle.ones([1])
    w.stop_gradient = False
    (w * float("inf")).backward()
    with pytest.raises(RuntimeError, match="inf"):
        nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)
