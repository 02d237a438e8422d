"""Settings of the framework, makers of tensors, and small helpers of its namespaces."""

from __future__ import annotations

from typing import Any

import numpy as np


def legacy_makers(paddle: Any, name: str) -> Any:
    """A tensor of one dtype, from data and by sizes."""
    make = getattr(paddle, name)
    return [str(make([1, 0, 1]).dtype), make([1, 0, 1]).astype("float32"), list(make(2, 3).shape)]


def makers(paddle: Any) -> Any:
    """Tensors made from arrays, numbers and tensors."""
    shared = paddle.from_numpy(np.arange(3.0))
    wanted = paddle.as_tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    called = paddle.tensor([1, 2], dtype="float32")
    empty = paddle.empty([2, 3], "int32")
    like = paddle.empty_like(empty, "float64")
    kinds = [
        f"{v.dtype}{list(v.shape)}" for v in (empty, like, paddle.asarray(1), paddle.asarray([1.5], dtype="float64"))
    ]
    return [shared, wanted.detach(), wanted.stop_gradient, called, *kinds]


def assigned_output(paddle: Any) -> Any:
    """What is assigned to a tensor brings its shape and dtype."""
    target = paddle.zeros([3, 3])
    paddle.assign(np.array([[1, 1], [3, 4], [1, 3]]), target)
    return target


def questions(paddle: Any, dtype: str) -> Any:
    """Kinds of dtypes, and their limits."""
    x = paddle.zeros([2], dtype)
    kinds = [paddle.is_complex(x), paddle.is_floating_point(x), paddle.is_integer(x), paddle.is_tensor(x)]
    if dtype.startswith("int"):
        limits = paddle.iinfo(getattr(paddle, dtype))
        return [*kinds, limits.min, limits.max, limits.bits]
    return kinds


def defaults(paddle: Any) -> Any:
    """The default dtype is that of new tensors of Python numbers."""
    first = paddle.get_default_dtype()
    paddle.set_default_dtype("float64")
    try:
        return [first, paddle.get_default_dtype(), str(paddle.to_tensor(1.5).dtype), str(paddle.ones([1]).dtype)]
    finally:
        paddle.set_default_dtype("float32")


def generator_states(paddle: Any) -> Any:
    """A state of the generator that is put back gives the same numbers again."""
    paddle.seed(5)
    state = paddle.get_rng_state()
    first = paddle.rand([4])
    paddle.set_rng_state(state)
    same = bool((paddle.rand([4]) == first).all())
    paddle.set_cuda_rng_state(paddle.get_cuda_rng_state())
    return [same, bool((paddle.rand([4]) == first).all())]


def readers(paddle: Any, drop: bool) -> Any:
    """Samples of a reader in batches."""
    found = list(paddle.batch(lambda: iter(range(5)), 2, drop_last=drop)())
    return [len(found), *[str(batch) for batch in found]]


def modes(paddle: Any) -> Any:
    """The mode of the program, and places."""
    paddle.disable_static()
    paddle.disable_signal_handler()
    flags = paddle.get_flags(["FLAGS_check_nan_inf"])
    paddle.set_flags(flags)
    return [paddle.in_dynamic_mode(), flags["FLAGS_check_nan_inf"], str(paddle.CPUPlace())]


def printed(paddle: Any, x: Any, **options: Any) -> Any:
    """Tensors as text under the settings of printing."""
    paddle.set_printoptions(**options)
    try:
        return [str(x.detach()), str(paddle.arange(12).reshape([3, 4]))]
    finally:
        paddle.set_printoptions(precision=8, threshold=1000, edgeitems=3, sci_mode=False, linewidth=80)


def sizes(paddle: Any) -> Any:
    """Shapes as text."""
    shape = paddle.zeros([2, 3]).shape
    return [str(shape), repr(shape[1:]), str(paddle.Size([4])), paddle.Size([2, 3]).numel()]


def gains(paddle: Any) -> Any:
    """How much an activation changes the scale of its input."""
    gain = paddle.nn.initializer.calculate_gain
    names = ("sigmoid", "linear", "conv2d", "tanh", "relu", "selu", "leaky_relu")
    return [np.asarray([float(gain(name)) for name in names] + [float(gain("leaky_relu", 0.3))])]


def global_initializers(paddle: Any) -> Any:
    """Initialisers for all layers made from now on."""
    init = paddle.nn.initializer
    init.set_global_initializer(init.Constant(0.5), init.Constant(0.25))
    try:
        layer = paddle.nn.Linear(2, 2)
    finally:
        init.set_global_initializer(None)
    return [layer.weight, layer.bias]


def data_pipelines(paddle: Any) -> Any:
    """Datasets one after another and side by side, and samplers of a subset and of a rank."""
    io = paddle.io

    class Numbers(io.Dataset):  # type: ignore[misc, name-defined]
        def __init__(self, first: int, count: int) -> None:
            self.first, self.count = first, count

        def __getitem__(self, index: int) -> Any:
            return (np.float32(self.first + index),)

        def __len__(self) -> int:
            return self.count

    class Stream(io.IterableDataset):  # type: ignore[misc, name-defined]
        def __init__(self, count: int) -> None:
            self.count = count

        def __iter__(self) -> Any:
            yield from range(self.count)

    chained = [v for v in iter(io.ChainDataset([Stream(2), Stream(3)]))]  # list() would ask for a length
    beside = [float(v) for v in io.ComposeDataset([Numbers(0, 3), Numbers(10, 3)])[1]]
    subset = sorted(io.SubsetRandomSampler([1, 4, 6]))
    ranks = []
    for rank in (0, 1):
        sampler = io.DistributedBatchSampler(Numbers(0, 5), 2, 2, rank, shuffle=False)
        sampler.set_epoch(3)
        ranks.append(str([list(batch) for batch in sampler]))
    loader = io.DataLoader(Numbers(0, 4), batch_size=2)
    return [chained, str(beside), subset, *ranks, *[batch[0] for batch in loader()]]


def areas(paddle: Any) -> Any:
    """The name and the areas of the curve's trapezoids."""
    auc = paddle.metric.Auc(num_thresholds=31)
    return [str(auc.name()), float(auc.trapezoid_area(1.0, 3.0, 2.0, 6.0))]


def optimizer_rates(paddle: Any) -> Any:
    """A schedule set later, and gradients cleared by their other name."""
    layer = paddle.nn.Linear(2, 1)
    optimizer = paddle.optimizer.SGD(paddle.optimizer.lr.StepDecay(0.5, 1), parameters=layer.parameters())
    optimizer.set_lr_scheduler(paddle.optimizer.lr.NaturalExpDecay(0.2, 0.1))
    layer(paddle.ones([1, 2])).sum().backward()
    optimizer.clear_grad()
    plateau = paddle.optimizer.lr.ReduceOnPlateau(0.1)
    plateau.state_keys()
    return [float(optimizer.get_lr()), layer.bias.grad is None, sorted(plateau.keys) == sorted(plateau.state_dict())]


def decorated(paddle: Any, x: Any) -> Any:
    """Functions under guards that are decorators: each call enters a guard of its own."""

    @paddle.no_grad()
    def without(v: Any) -> Any:
        return (v * 2.0).stop_gradient

    guard = paddle.set_grad_enabled(True)
    other = paddle.no_grad().clone()
    with other:
        inside = (x * 2.0).stop_gradient
    return [without(x), inside, (x * 2.0).stop_gradient, type(guard.clone()) is type(guard)]


def custom_derivative(paddle: Any, x: Any) -> Any:
    """A function with its own derivative; one of its results has none."""

    class Cube(paddle.autograd.PyLayer):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, v: Any) -> Any:
            ctx.save_for_backward(v)
            ctx.set_materialize_grads(True)
            whole = v.astype("int32")
            ctx.mark_non_differentiable(whole)
            return v**3, whole

        @staticmethod
        def backward(ctx: Any, gradient: Any, other: Any) -> Any:
            (v,) = ctx.saved_tensor()
            return gradient * 3.0 * v * v

    y, whole = Cube.apply(x)
    return [y, whole.stop_gradient]


def low_rank(paddle: Any, x: Any, function: str, **kwargs: Any) -> Any:
    """A product of few columns that is close to the matrix: its singular values."""
    paddle.seed(0)
    u, s, v = getattr(paddle.linalg, function)(x.detach(), q=4, **kwargs)
    return [list(u.shape), paddle.round(s.detach() * 1000.0) / 1000.0, list(v.shape)]


def mapped_file(paddle: Any) -> Any:
    """A file as tensors."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "numbers"
        path.write_bytes(np.arange(6, dtype="float32").tobytes())
        storage = paddle.MmapStorage(str(path), 24)
        return storage.get_slice(paddle.float32, 0, 6, 1) * 1.0


def verbose_schedule(paddle: Any) -> Any:
    """What a schedule prints."""
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        schedule = paddle.optimizer.lr.StepDecay(0.5, 1, verbose=True)
        schedule.step()
        schedule.step(5)
    return text.getvalue()


def captured_helpers(paddle: Any) -> Any:
    """Helpers of capturing: what they return and leave."""
    jit = paddle.jit
    jit.ignore_module([np])
    jit.enable_to_static(False)
    plain = jit.to_static(lambda x: x + 1.0)(paddle.ones([2]))
    jit.enable_to_static(True)

    @jit.not_to_static
    def outside(x: Any) -> Any:
        return x * 2.0

    return [plain, outside(paddle.ones([2]))]
