"""Plans of :func:`parallelize`: what to do with a layer along the mesh dimension ``"mp"``.

A plan has ``apply(layer, process_mesh, shard_param_list)``, which places the layer's parameters and registers hooks on
its inputs and outputs. Sums over ranks need no hooks: they are made where a value is used that is still to be summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.distributed.semi_auto import reshard, shard_tensor
from argosy.nn.layer import Layer
from argosy_autoparallel import Placement, ProcessMesh, Replicate, Shard
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "ColWiseParallel", "ConvParallel", "PlanBase", "PrepareLayerInput", "PrepareLayerOutput", "RowWiseParallel",
    "SequenceParallelBegin", "SequenceParallelDisable", "SequenceParallelEnable", "SequenceParallelEnd",
]  # fmt: skip

Hook = Callable[..., Any]
Prepare = Callable[..., Hook]


class PlanBase:
    """The base class."""

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        """Change ``layer``; ``shard_param_list`` names parameters (empty: those that the plan is for)."""
        raise NotImplementedError(f"{type(self).__name__} does not define apply()")


class ColWiseParallel(PlanBase):
    """Weights are split along their last axis and biases with them, so the output is split along its last axis.

    For Linear and Embedding. ``gather_output``: every rank gets the whole output.
    """

    def __init__(self, gather_output: bool = False) -> None:
        self.gather_output = gather_output

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        """See :class:`PlanBase`. Raises ValueError for parameters of more than two axes."""
        for name in shard_param_list or ("weight", "bias"):
            _split_parameter(layer, name, process_mesh, lambda ndim: ndim - 1)
        if self.gather_output:
            layer.register_forward_post_hook(self.gather_output_hook(process_mesh))

    def gather_output_hook(self, process_mesh: ProcessMesh) -> Hook:
        """The hook that gathers outputs."""
        return lambda layer, inputs, outputs: _change_first(outputs, lambda x: _lay_out(x, process_mesh, None))


class RowWiseParallel(PlanBase):
    """Weights are split along their first axis, so the output is a sum over ranks; biases stay whole.

    For Linear and Embedding. ``is_input_parallel``: the input is split along its last axis already; otherwise it is
    split first.
    """

    def __init__(self, is_input_parallel: bool = True) -> None:
        self.is_input_parallel = is_input_parallel

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        """See :class:`PlanBase`. Raises ValueError for weights that do not have two axes."""
        for name in [name for name in shard_param_list if name != "bias"] or ["weight"]:
            _split_parameter(layer, name, process_mesh, lambda ndim: 0)
        if not self.is_input_parallel:
            layer.register_forward_pre_hook(self.split_input_hook(process_mesh))

    def split_input_hook(self, process_mesh: ProcessMesh) -> Hook:
        """The hook that splits inputs along their last axis."""
        return lambda layer, inputs: _change_first(inputs, lambda x: _lay_out(x, process_mesh, x.ndim - 1))


class ConvParallel(PlanBase):
    """The input of a convolution is split along its last spatial axis, its width; what windows read of other ranks'
    parts is brought, and the output is split as well. Weights stay whole."""

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        """See :class:`PlanBase`."""
        layer.register_forward_pre_hook(self.conv_parallel_start(process_mesh, layer._data_format))

    def conv_parallel_start(self, process_mesh: ProcessMesh, data_format: str) -> Hook:
        """The hook that splits inputs; channels are last in a ``data_format`` that ends with C."""
        last = 2 if data_format.endswith("C") else 1
        return lambda layer, inputs: _change_first(inputs, lambda x: _lay_out(x, process_mesh, x.ndim - last))


class PrepareLayerInput(PlanBase):
    """``fn(process_mesh=mesh)`` gives a hook ``(layer, inputs) -> inputs``."""

    def __init__(self, fn: Prepare | None = None) -> None:
        self.fn = _check_hook(fn, "PrepareLayerInput")

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        """See :class:`PlanBase`."""
        layer.register_forward_pre_hook(self.fn(process_mesh=process_mesh))


class PrepareLayerOutput(PlanBase):
    """``fn(process_mesh=mesh)`` gives a hook ``(layer, inputs, outputs) -> outputs``."""

    def __init__(self, fn: Prepare | None = None) -> None:
        self.fn = _check_hook(fn, "PrepareLayerOutput")

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        """See :class:`PlanBase`."""
        layer.register_forward_post_hook(self.fn(process_mesh=process_mesh))


class _SequenceParallel(PlanBase):
    """Activations ``[B, S, H]`` are split along the sequence S outside of attention and perceptron (Korthikanti et al.,
    2022); with ``need_transpose`` they are ``[S, B, H]`` while they are split.
    """

    def __init__(self, need_transpose: bool = True) -> None:
        self.need_transpose = need_transpose

    def _split(self, x: Any, mesh: ProcessMesh) -> Any:
        x = x.transpose([1, 0, 2]) if self.need_transpose else x
        return _lay_out(x, mesh, _sequence_axis(x, mesh, self.need_transpose))

    def _join(self, x: Any, mesh: ProcessMesh) -> Any:
        x = _lay_out(x, mesh, None)
        return x.transpose([1, 0, 2]) if self.need_transpose else x

    def sequence_parallel_begin(self, process_mesh: ProcessMesh) -> Hook:
        """The hook that splits: what comes out of the layer, or goes in where there is no output yet."""
        return lambda layer, *given: _change_first(given[-1], lambda x: self._split(x, process_mesh))

    def sequence_parallel_end(self, process_mesh: ProcessMesh) -> Hook:
        """The hook that puts sequences together."""
        return lambda layer, *given: _change_first(given[-1], lambda x: self._join(x, process_mesh))


class SequenceParallelBegin(_SequenceParallel):
    """From the output of this layer on sequences are split."""

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        """See :class:`PlanBase`."""
        layer.register_forward_post_hook(self.sequence_parallel_begin(process_mesh))


class SequenceParallelEnd(_SequenceParallel):
    """From the input of this layer on sequences are whole."""

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        """See :class:`PlanBase`."""
        layer.register_forward_pre_hook(self.sequence_parallel_end(process_mesh))


class SequenceParallelEnable(_SequenceParallel):
    """Within this layer sequences are split."""

    def __init__(self) -> None:
        super().__init__(True)

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        """See :class:`PlanBase`."""
        layer.register_forward_pre_hook(self.sequence_parallel_begin(process_mesh))
        layer.register_forward_post_hook(self.sequence_parallel_end(process_mesh))


class SequenceParallelDisable(_SequenceParallel):
    """Within this layer sequences are whole."""

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Sequence[str]) -> None:
        """See :class:`PlanBase`."""
        layer.register_forward_pre_hook(self.sequence_parallel_end(process_mesh))
        layer.register_forward_post_hook(self.sequence_parallel_begin(process_mesh))


# ---- what plans are made of


def _check_hook(fn: Any, name: str) -> Prepare:
    if not callable(fn):
        raise TypeError(f"{name} takes a function of the mesh that gives a hook, not {type(fn).__name__}")
    return fn  # type: ignore[no-any-return]


def _split_parameter(layer: Layer, name: str, mesh: ProcessMesh, axis: Callable[[int], int]) -> None:
    parameter: Any = getattr(layer, name, None)
    if parameter is None or parameter.placements is not None:  # one that layers share is placed by the first
        return
    if parameter.ndim not in (1, 2):
        raise ValueError(f"{parameter.name} has shape {list(parameter.shape)}; plans split parameters of 1 or 2 axes")
    shard_tensor(parameter, mesh, _placements(parameter, mesh, axis(parameter.ndim)))


def _placements(x: Any, mesh: ProcessMesh, axis: int | None) -> list[Placement]:
    """Those of ``x`` with the dimension ``"mp"`` splitting ``axis`` (None: nothing)."""
    found = list(x.placements) if x.process_mesh == mesh else [Replicate()] * mesh.ndim
    found[mesh.dim_names.index("mp")] = Replicate() if axis is None else Shard(axis)
    return found


def _lay_out(x: Tensor, mesh: ProcessMesh, axis: int | None) -> Tensor:
    return reshard(x, mesh, _placements(x, mesh, axis))


def _sequence_axis(x: Any, mesh: ProcessMesh, transposed: bool) -> int:
    """The axis of the sequence: the one of the first two that the data-parallel dimension does not split."""
    if "dp" in mesh.dim_names and x.process_mesh == mesh:
        batch = x.placements[mesh.dim_names.index("dp")]
        if batch in (Shard(0), Shard(1)):
            return 1 - batch.get_dim()  # type: ignore[no-any-return]
    return 0 if transposed else 1


def _change_first(given: Any, change: Callable[[Any], Any]) -> Any:
    """``given``, a tensor or a tuple or list of them, with its first tensor changed."""
    if isinstance(given, (tuple, list)):
        return type(given)([change(given[0]), *given[1:]])
    return change(given)
