"""What is refused is refused with the name of the argument, what came and what was expected: operators, indices, and
what stands around a network (data, metrics, precision, programs, files).
"""

from __future__ import annotations

import numpy as np
import pytest

import argosy as paddle

F, nn, io = paddle.nn.functional, paddle.nn, paddle.io


class Numbers(io.Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return np.float32(i)


DATA, X, LINEAR = Numbers(), paddle.ones([2, 3]), nn.Linear(3, 2)

OPERATORS = {
    "shapes": (lambda: paddle.subtract(X, paddle.ones([2, 4])), ["x=float32 [2, 3]", "y=float32 [2, 4]"]),
    "dtypes": (lambda: paddle.subtract(X, paddle.ones([2, 3], "bool")), ["subtract: ", "y=bool [2, 3]"]),
    "axis": (lambda: paddle.flatten(X, 31), ["start_axis=31", "x=float32 [2, 3]"]),
    "list": (lambda: paddle.concat([X, paddle.ones([3])]), ["x=[float32 [2, 3], float32 [3]]", "axis=0"]),
    "kernel": (lambda: paddle.argmax(paddle.ones([3, 0])), ["x=float32 [3, 0]"]),
    "composed": (lambda: paddle.quantile(X, 0.5, axis=5), ["axis=5", "x=float32 [2, 3]"]),
    "without_operands": (lambda: paddle.zeros([-1]), ["shape=(-1,)"]),
    "random": (lambda: paddle.randn([2, -3]), ["shape=(2, -3)"]),
    "attribute": (lambda: paddle.uniform([2], min="a"), ["argument 'min' should be float, got str 'a'"]),
    "optional": (lambda: F.linear(X, paddle.ones([4, 4])), ["x=float32 [2, 3]", "weight=float32 [4, 4]"]),
    "in_place": (lambda: F.relu_("text"), ["argument 'x' must be a Tensor, got str 'text'"]),
    "index": (lambda: X[1.5], ["float 1.5", "expected integers, slices"]),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_name_what_they_were_given(name):
    """The first call and later ones, which take a short way, say the same."""
    call, parts = OPERATORS[name]
    texts = set()
    for _ in range(3):
        with pytest.raises((ValueError, TypeError)) as info:
            call()
        texts.add(str(info.value))
        assert all(part in str(info.value) for part in parts)
        assert str(info.value).count("[given ") <= 1
        assert "counter" not in str(info.value)
    assert len(texts) == 1


SETUP = {
    "activation": (lambda: paddle.nn.TransformerEncoderLayer(8, 2, 16, activation="zz"), "activation should be"),
    "num_layers": (lambda: paddle.nn.LSTM(3, 4, 0), "num_layers should be at least 1, got 0"),
    "SpectralNorm": (lambda: paddle.nn.SpectralNorm([3, 4], 5), "dim 5 is not an axis of weight_shape [3, 4]"),
    "group": (lambda: paddle.optimizer.SGD(0.1, parameters=[{"p": []}]), "a dict with 'params', got {'p': []}"),
    "optimizer's state": (
        lambda: paddle.optimizer.SGD(0.1, parameters=[]).set_state_dict(3), "'state_dict' must be a dictionary, got 3",
    ),
    "schedule's state": (
        lambda: paddle.optimizer.lr.StepDecay(0.1, 2).set_state_dict(3), "'state_dict' must be a dictionary, got 3",
    ),
    "Accuracy": (lambda: paddle.metric.Accuracy().update(3), "expected a last axis of at least 1, got []"),
    "Precision": (lambda: paddle.metric.Precision().update("a", "b"), "takes tensors or arrays of numbers, not str"),
    "step": (lambda: paddle.amp.GradScaler().step(3), "argument 'optimizer' must be an Optimizer, got 3"),
    "Compose": (lambda: paddle.vision.transforms.Compose([3]), "'transforms' must be a list of functions, got [3]"),
    "register_hook": (lambda: X.register_hook(3), "argument 'hook' must be a function, got 3"),
    "saved_tensors_hooks": (
        lambda: paddle.autograd.saved_tensors_hooks(abs, 4), "argument 'unpack_hook' must be a function, got 4",
    ),
    "jit.save of a number": (lambda: paddle.jit.save(3, "x"), "argument 'layer' must be a Layer or a function, got 3"),
    "jit.save to a number": (lambda: paddle.jit.save(LINEAR, 3), "argument 'path' must be a path, got 3"),
    "ChainDataset of no streams": (
        lambda: io.ChainDataset([DATA]),
        "argument 'datasets' must hold IterableDatasets, got Numbers()",
    ),
    "ChainDataset": (lambda: io.ChainDataset(3), "argument 'datasets' must be a sequence of data sets, got 3"),
    "ComposeDataset": (lambda: io.ComposeDataset([DATA, 3]), "argument 'datasets' must hold data sets, got 3"),
    "ConcatDataset": (lambda: io.ConcatDataset([]), "argument 'datasets' must hold at least one"),
    "TensorDataset": (lambda: io.TensorDataset([1, 2]), "argument 'tensors' must hold tensors or arrays, got 1"),
    "Subset": (lambda: io.Subset(DATA, 3), "argument 'indices' must be a sequence of integers, got 3"),
    "WeightedRandomSampler": (
        lambda: io.WeightedRandomSampler([0.5], -3), "argument 'num_samples' must not be negative, got -3",
    ),
    "random_split": (lambda: io.random_split(DATA, [3, 4]), "sum to 7"),
    "GradScaler": (lambda: paddle.amp.GradScaler(init_loss_scaling=-1), "'init_loss_scaling' must be positive, got -1"),
    "scale": (lambda: paddle.amp.GradScaler().scale("x"), "argument 'var' must be a Tensor, got 'x'"),
    "minimize": (lambda: paddle.amp.GradScaler().minimize(3), "argument 'optimizer' must be an Optimizer, got 3"),
    "to_static": (lambda: paddle.jit.to_static(LINEAR, input_spec=3), "argument 'input_spec' must be a list"),
    "jit.load": (lambda: paddle.jit.load(3), "argument 'path' must be a path, got 3"),
    "save": (lambda: paddle.save(X, 3), "argument 'path' must be a path or a file object, got 3"),
    "load": (lambda: paddle.load(3), "argument 'path' must be a path or a file object, got 3"),
    "add_sublayer": (lambda: LINEAR.add_sublayer(3, LINEAR), "argument 'name' must be a string, got 3"),
    "create_parameter": (lambda: LINEAR.create_parameter("a"), "argument 'shape' of a parameter must be a sequence"),
    "BatchNorm2D": (lambda: nn.BatchNorm2D(3)(X), "argument 'input' must have 4 axes, got shape [2, 3]"),
    "BatchNorm1D": (lambda: nn.BatchNorm1D(3)(paddle.ones([2, 3, 4, 5])), "must have 2 or 3 axes"),
    "Bilinear": (lambda: nn.Bilinear(-3, 2, 2), "argument 'in1_features' must be positive, got -3"),
    "L2Decay": (lambda: paddle.regularizer.L2Decay("a"), "argument 'coeff' must be a number, got 'a'"),
    "Constant": (lambda: nn.initializer.Constant("a"), "argument 'value' must be a number, got 'a'"),
    "clip_grad_norm_": (
        lambda: nn.utils.clip_grad_norm_(LINEAR.parameters(), "a"), "argument 'max_norm' must be a number, got 'a'",
    ),
    "clipped_parameters": (lambda: nn.utils.clip_grad_norm_(3, 1.0), "argument 'parameters' must hold tensors, got 3"),
    "parameters_to_vector": (lambda: nn.utils.parameters_to_vector(3), "argument 'parameters' must hold tensors"),
    "summary": (lambda: paddle.summary(LINEAR, "a"), "argument 'input_size' must be a shape"),
    "prepare": (lambda: paddle.Model(LINEAR).prepare(optimizer=3), "optimizer must be an Optimizer, not int"),
    "grad": (lambda: paddle.grad(3, X), "argument 'outputs' or 'tensors' must be a Tensor"),
    "to_tensor": (lambda: paddle.to_tensor([[1], [2, 3]]), "cannot make a tensor of [[1], [2, 3]]: nested sequences"),
    "item": (lambda: X.item(5, 2), "item(): index [5, 2] is out of range"),
    "Recall": (lambda: paddle.metric.Recall().update(np.ones(3), np.ones(4)), "[given preds="),
}  # fmt: skip


@pytest.mark.parametrize("name", SETUP)
def test_what_stands_around_a_network_names_its_arguments(name):
    call, text = SETUP[name]
    with pytest.raises((ValueError, TypeError, IndexError)) as info:
        call()
    assert text in str(info.value)
