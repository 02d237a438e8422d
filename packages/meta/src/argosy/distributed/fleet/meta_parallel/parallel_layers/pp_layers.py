"""Models written as lists of layers, which Paddle cuts into stages; here of one stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from argosy.distributed.fleet.base.topology import CommunicateTopology
from argosy.distributed.fleet.recompute import recompute
from argosy.nn.container import LayerDict
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["LayerDesc", "LocalSharedLayerDesc", "PipelineLayer", "SharedLayerDesc"]


class LayerDesc:
    """A layer to be made of a class and what it is called with. Raises TypeError for what is no class of layers."""

    def __init__(self, layer_func: type[Layer], *inputs: Any, **kwargs: Any) -> None:
        if not (isinstance(layer_func, type) and issubclass(layer_func, Layer)):
            raise TypeError(f"LayerDesc: argument 'layer_func' must be a class derived from Layer, got {layer_func!r}")
        self.layer_func, self.inputs, self.kwargs = layer_func, inputs, kwargs

    def build_layer(self, **extra_kwargs: Any) -> Layer:
        """The layer."""
        return self.layer_func(*self.inputs, **{**self.kwargs, **extra_kwargs})

    def __repr__(self) -> str:
        given = [*map(repr, self.inputs), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"{self.layer_func.__name__}({', '.join(given)})"


class SharedLayerDesc(LayerDesc):
    """A layer that is made once for all descriptions of the same ``key``, and called through ``forward_func``, if one
    is given, as ``forward_func(layer, x)``."""

    def __init__(
        self,
        key: str,
        layer_func: type[Layer],
        forward_func: Callable[..., Any] | None = None,
        shared_weight_attr: str | Sequence[str] = "weight",
        *inputs: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(layer_func, *inputs, **kwargs)
        self.layer_name, self.forward_func = key, forward_func
        self.shared_weight_attr = [shared_weight_attr] if isinstance(shared_weight_attr, str) else shared_weight_attr


class LocalSharedLayerDesc(SharedLayerDesc):
    """A layer that shares its weights within a stage of a schedule that is not implemented: :class:`PipelineLayer`
    refuses it."""


class PipelineLayer(Layer):
    """Layers, descriptions of layers and functions, called one after the other; the one stage of a pipeline.

    ``loss_fn`` is kept for the training loop. With ``recompute_interval`` of n, n layers at a time are one recomputed
    region. As in Paddle, layer number i is made with the generator seeded to 1234 + i. Raises ValueError without
    ``num_stages`` or ``topology``; NotImplementedError for several stages.
    """

    def __init__(
        self,
        layers: Iterable[Any],
        num_stages: int | None = None,
        topology: CommunicateTopology | None = None,
        loss_fn: Any = None,
        seg_method: str = "uniform",
        recompute_interval: int = 0,
        recompute_ctx: Mapping[str, Any] | None = None,
        num_virtual_pipeline_stages: int | None = None,
        use_cudagraph: bool = False,
        use_dualpipev: bool = False,
    ) -> None:
        super().__init__()
        _check_one_stage(num_stages, topology, num_virtual_pipeline_stages, use_dualpipev)
        self._loss_fn = loss_fn if isinstance(loss_fn, list) else [loss_fn]
        self._topo, self._num_stages, self._stage_id = topology, 1, 0
        self._recompute_interval, self.recompute_ctx = recompute_interval, recompute_ctx
        self._layers_desc = list(layers)
        self._num_layers = len(self._layers_desc)
        self._start_pos, self._end_pos = 0, self._num_layers
        self.shared_layers = LayerDict()
        self.run_function: list[Callable[..., Any]] = [
            self._built(*numbered) for numbered in enumerate(self._layers_desc)
        ]

    def _built(self, number: int, given: Any) -> Callable[..., Any]:
        from argosy.framework.random import seed

        seed(1234 + number)
        if isinstance(given, LocalSharedLayerDesc):
            raise NotImplementedError("PipelineLayer: LocalSharedLayerDesc is not implemented; use SharedLayerDesc")
        if isinstance(given, SharedLayerDesc):
            if given.layer_name not in self.shared_layers:
                self.shared_layers[given.layer_name] = given.build_layer()
            shared: Layer = self.shared_layers[given.layer_name]
            return shared if given.forward_func is None else partial(given.forward_func, shared)
        made = given.build_layer() if isinstance(given, LayerDesc) else given
        if isinstance(made, Layer):
            self.add_sublayer(str(number), made)
        return made

    def get_stage_from_index(self, layer_idx: int) -> int:
        """The stage of a layer: 0. Raises IndexError for a layer that is not there."""
        if not 0 <= layer_idx < self._num_layers:
            raise IndexError(f"PipelineLayer: there is no layer {layer_idx} among {self._num_layers}")
        return 0

    def get_num_virtual_stages(self) -> int:
        """1: the stage is not cut further."""
        return 1

    def forward_function(self, start: int, end: int) -> Callable[..., Any]:
        """Layers ``start`` to ``end`` as one function; a tuple goes from one to the next as it is."""

        def run(*x: Any) -> Any:
            result: Any = x[0] if len(x) == 1 else x
            for function in self.run_function[start:end]:
                result = function(result)
            return result

        return run

    def forward(self, input: Any, chunk_id: int | None = None) -> Any:
        """The result of the last layer. Raises ValueError for a ``chunk_id``: there is one chunk."""
        if chunk_id is not None:
            raise ValueError(f"PipelineLayer: argument 'chunk_id' is for virtual stages, got {chunk_id}")
        count, step = len(self.run_function), self._recompute_interval
        if step == 0:
            return self.forward_function(0, count)(input)
        for start in range(0, count, step):
            end = min(start + step, count)
            given = input if isinstance(input, tuple) else (input,)
            function = self.forward_function(start, end)
            input = recompute(function, *given) if self._worth(start, end, given) else function(*given)
        return input

    def _worth(self, start: int, end: int, inputs: Sequence[Any]) -> bool:
        """Whether a region has parameters and an input that wants a gradient."""
        wanted = any(isinstance(x, Tensor) and not x.stop_gradient for x in inputs)
        return wanted and any(isinstance(f, Layer) and f.parameters() for f in self.run_function[start:end])


def _check_one_stage(stages: int | None, topology: CommunicateTopology | None, virtual: int | None, dual: bool) -> None:
    if stages is None and topology is None:
        raise ValueError("PipelineLayer: give num_stages or topology")
    count = stages if topology is None else topology.get_dim("pipe")
    if count != 1 or (virtual or 1) > 1 or dual:
        raise NotImplementedError(
            f"PipelineLayer: {count} stages with {virtual or 1} virtual ones are not implemented; one stage is, and "
            "distributed.parallelize cuts a model by layer names"
        )
