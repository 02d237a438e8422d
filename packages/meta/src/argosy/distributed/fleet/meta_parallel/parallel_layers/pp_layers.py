"""Models written as lists of layers, cut into stages."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any
from weakref import ref

from argosy.distributed.collective import broadcast
from argosy.distributed.environment import get_rank
from argosy.distributed.fleet.base.topology import CommunicateTopology, groups
from argosy.distributed.fleet.meta_parallel.pp_utils.forward_backward_overlap_utils import ScheduleChunk
from argosy.distributed.fleet.recompute import recompute
from argosy.distributed.group import Group
from argosy.distributed.objects import all_gather_object
from argosy.distributed.pipeline.marks import enter_stage
from argosy.framework.random import get_rng_state, seed, set_rng_state
from argosy.framework.serialization import load, save
from argosy.nn.container import LayerDict
from argosy.nn.layer import Layer
from argosy.nn.lazy import initialize, leave_empty
from argosy.optimizer.optimizer import Optimizer
from argosy_phi_ops.context import RankState
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "LayerDesc",
    "LocalSharedLayerDesc",
    "PipelineLayer",
    "PipelineLayerChunk",
    "SharedLayerDesc",
    "complete_stages",
]


_SEED = 1234

_made: RankState[list[ref[PipelineLayer]]] = RankState("argosy.pipeline_layers", list)
"""The models of this rank."""


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
    """A layer that shares its weights within a rank, as that of a schedule that goes to and fro."""


class PipelineLayer(Layer):
    """Layers, descriptions of layers and functions, called one after the other, ``num_virtual_pipeline_stages`` stages
    of them on each of ``num_stages`` ranks.

    ``seg_method``: "uniform", "cost" (the most parameters of a stage are least), or "layer:Name" to cut after
    layers of a class, evenly (``Name`` is a regular expression that is found in the name of the class), last stages
    having what does not divide; or the numbers of the layers with which stages begin, and perhaps the number of
    layers. ``loss_fn`` is kept for the training loop. With ``recompute_interval`` of n, n layers of a stage at a
    time are one recomputed region. As in Paddle, layer number i is made with the generator seeded to 1234 + i;
    every rank makes all of them, and gives up what others have at the first step, unless they are made within
    :class:`argosy.LazyGuard`: then each rank fills those of its stages, with the same values, when
    ``fleet.distributed_model`` is called, and touches no memory of the others. Parameters and states are those of this
    rank's stages; :meth:`whole_parameters` are all.

    With ``use_dualpipev`` each rank has two stages, the second of rank r the one before that of rank r - 1.

    Raises ValueError without ``num_stages`` or ``topology``, for fewer layers than stages and for shared weights that
    their layer does not have.
    """

    def __init__(
        self,
        layers: Iterable[Any],
        num_stages: int | None = None,
        topology: CommunicateTopology | None = None,
        loss_fn: Any = None,
        seg_method: str | Sequence[int] = "uniform",
        recompute_interval: int = 0,
        recompute_ctx: Mapping[str, Any] | None = None,
        num_virtual_pipeline_stages: int | None = None,
        use_cudagraph: bool = False,
        use_dualpipev: bool = False,
    ) -> None:
        super().__init__()
        ranks = _checked_stages(num_stages, topology)
        topology = _grid_of(ranks) if topology is None else topology
        self._use_dualpipev = use_dualpipev
        self._loss_fn = loss_fn if isinstance(loss_fn, list) else [loss_fn]
        self._topo, self._num_stages, self._virtual = (
            topology,
            ranks,
            2 if use_dualpipev else num_virtual_pipeline_stages or 1,
        )
        self._stage_id = 0 if topology is None or ranks == 1 else topology.get_coord(get_rank()).pipe
        self._recompute_interval, self.recompute_ctx = recompute_interval, recompute_ctx
        self._layers_desc = list(layers)
        self._num_layers = len(self._layers_desc)
        vars(self)["_pipeline_stages"] = ranks * self._virtual
        self.shared_layers = LayerDict()
        self._first_numbers: dict[Layer, int] = {}
        self.run_function: list[Callable[..., Any]] = [
            self._build_layer(*numbered) for numbered in enumerate(self._layers_desc)
        ]
        self.segment_parts = _segments(self._layers_desc, seg_method, ranks * self._virtual, self.run_function)
        self._start_pos, self._end_pos = self.segment_parts[self._stage_id], self.segment_parts[self._stage_id + 1]
        _made.value = [*(each for each in _made.value if each() is not None), ref(self)]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """Names and parameters of this rank's stages."""
        own = self._own_ids()
        for name, parameter in super().named_parameters(*args, **kwargs):
            if own is None or id(parameter) in own:
                yield name, parameter

    def parameters(self, include_sublayers: bool = True) -> list[Tensor]:
        """The parameters of this rank's stages."""
        return [parameter for _, parameter in self.named_parameters(include_sublayers=include_sublayers)]

    def whole_parameters(self) -> list[Tensor]:
        """The parameters of all stages."""
        return [parameter for _, parameter in super().named_parameters()]

    def _own_ids(self) -> set[int] | None:
        """Parameters and buffers of this rank's stages by identity; None where all are."""
        if self._num_stages == 1 or self._topo is None:
            return None
        return {id(x) for _, layer in self._own_layers() for x in (*layer.parameters(), *layer.buffers())}

    def _build_layer(self, number: int, given: Any) -> Callable[..., Any]:
        seed(_SEED + number)
        if isinstance(given, SharedLayerDesc):
            if given.layer_name not in self.shared_layers:
                self.shared_layers[given.layer_name] = given.build_layer()
                self._first_numbers[self.shared_layers[given.layer_name]] = number
            shared: Layer = self.shared_layers[given.layer_name]
            if missing := [name for name in given.shared_weight_attr if not hasattr(shared, name)]:
                raise ValueError(f"SharedLayerDesc {given.layer_name!r}: {type(shared).__name__} has no {missing}")
            return shared if given.forward_func is None else partial(given.forward_func, shared)
        made = given.build_layer() if isinstance(given, LayerDesc) else given
        if isinstance(made, Layer):
            self.add_sublayer(str(number), made)
            self._first_numbers.setdefault(made, number)
        return made

    def initialize_stages(self) -> None:
        """Fill what was made within ``LazyGuard`` of this rank's stages, and leave what others have untouched. The
        generator is as before."""
        before = get_rng_state()
        for _, layer in self._own_layers():
            waiting = [p for p in layer.parameters() if not p._is_initialized()]
            if waiting:
                seed(_SEED + self._first_numbers[layer])
                for parameter in waiting:
                    initialize(parameter)
        set_rng_state(before)
        for parameter in self.whole_parameters():
            leave_empty(parameter)

    def get_stage_from_index(self, layer_idx: int) -> int:
        """The rank of the pipeline that has a layer. Raises IndexError for a layer that is not there."""
        if not 0 <= layer_idx < self._num_layers:
            raise IndexError(f"PipelineLayer: there is no layer {layer_idx} among {self._num_layers}")
        chunk, place = divmod(self._stage_of(layer_idx), self._num_stages)
        return self._num_stages - 1 - place if self._use_dualpipev and chunk else place

    def _stage_of(self, layer: int) -> int:
        return bisect_right(self.segment_parts, layer) - 1

    def _synchronize_shared_weights(self) -> None:
        """Give all stages the first one's values of shared layers, for models that draw parameters anew."""
        made = groups.value
        if made is None or made.get_pipe_parallel_world_size() == 1:
            return
        stages = made.get_pipe_parallel_group()
        for parameter in self.shared_layers.parameters():
            broadcast(parameter, stages.ranks[0], stages)

    def shared_weights(self) -> list[Tensor]:
        """What descriptions of shared layers name."""
        shared = [given for given in self._layers_desc if isinstance(given, SharedLayerDesc)]
        return [getattr(self.shared_layers[x.layer_name], name) for x in shared for name in x.shared_weight_attr]

    def _state_dict_impl(
        self, destination: dict[str, Tensor] | None = None, include_sublayers: bool = True,
        structured_name_prefix: str = "", *args: Any, **kwargs: Any,
    ) -> dict[str, Tensor]:  # fmt: skip
        """The states of this rank's layers, as in Paddle: other stages' are other ranks'."""
        found = super()._state_dict_impl(None, include_sublayers, structured_name_prefix, *args, **kwargs)
        if (own := self._own_ids()) is not None:
            names = {name for name, x in (*self.named_parameters(), *self.named_buffers()) if id(x) in own}
            found = {name: x for name, x in found.items() if name.removeprefix(structured_name_prefix) in names}
        if destination is None:
            return found
        destination.update(found)
        return destination

    def save_state_dict(self, path: str) -> None:
        """Save this rank's layers, a file each, in the folder ``path``: ``layer_03-tensor_00-model_states.pdparams`` is
        layer 3 of the first part of split layers. Each rank calls; copies of a pipeline write nothing."""
        if self._topo is not None and self._topo.get_coord(get_rank()).data:
            return
        Path(path).mkdir(parents=True, exist_ok=True)
        for number, layer in self._own_layers():
            save(layer.state_dict(), Path(path, f"layer_{number:02d}-tensor_{self._part():02d}-model_states.pdparams"))

    def set_state_dir(self, path: str) -> None:
        """Read what :meth:`save_state_dict` wrote, by any number of stages; each rank calls. Raises FileNotFoundError
        for a folder without one of the layers."""
        parts = 1 if self._topo is None else self._topo.get_dim("model")
        for number, layer in self._own_layers():
            files = sorted(Path(path).glob(f"layer_{number:02d}-*model_states.pdparams"))
            if not files:
                raise FileNotFoundError(f"PipelineLayer.set_state_dir: {path} has no file of layer {number}")
            layer.set_state_dict(load(files[self._part() * len(files) // parts]))
        self._synchronize_shared_weights()

    def _own_layers(self) -> list[tuple[int, Layer]]:
        """The layers with a state that this rank has, by number."""
        own = [i for i in range(self._num_layers) if self.get_stage_from_index(i) == self._stage_id]
        made = [(i, f.args[0] if isinstance(f := self.run_function[i], partial) else f) for i in own]
        return [(i, layer) for i, layer in made if isinstance(layer, Layer)]

    def _part(self) -> int:
        return 0 if self._topo is None else int(self._topo.get_coord(get_rank()).model)

    def get_num_virtual_stages(self) -> int:
        """How many stages a rank has."""
        return self._virtual

    def get_model_chunks(self) -> list[PipelineLayerChunk] | None:
        """The stages of this rank as layers; None where it has one."""
        if self._virtual == 1:
            return None
        bounds = [self._bounds(chunk) for chunk in range(self._virtual)]
        return [PipelineLayerChunk(self.run_function[start:end]) for start, end in bounds]

    def allreduce_shared_weight_gradients(self) -> None:
        """Nothing: gradients of shared weights are those of all stages when ``forward_backward_pipeline`` returns."""

    def get_schedule_chunk(self, chunk_id: int | None) -> ScheduleChunk:
        """The layers of a chunk of this rank (None: the first) as nodes with a forward and a backward pass, which they
        make by their ``build_schedule_node()``. Raises ValueError for a chunk that is not there."""
        return self.build_schedule_nodes(*self._bounds(chunk_id or 0))

    def build_schedule_nodes(self, start: int, end: int) -> ScheduleChunk:
        """Layers ``start`` to ``end`` as nodes. Raises TypeError for a layer without ``build_schedule_node``,
        ValueError with a ``recompute_interval``."""
        if self._recompute_interval:
            raise ValueError("PipelineLayer.build_schedule_nodes: recompute_interval should be 0")
        made = []
        for layer in self.run_function[start:end]:
            if not hasattr(layer, "build_schedule_node"):
                raise TypeError(f"PipelineLayer: {type(layer).__name__} has no build_schedule_node()")
            made.append(layer.build_schedule_node())
        return ScheduleChunk(made)

    def _bounds(self, chunk: int) -> tuple[int, int]:
        """The layers of a chunk of this rank."""
        if not 0 <= chunk < self._virtual:
            raise ValueError(f"PipelineLayer: there is no chunk_id {chunk!r} among {self._virtual} chunks")
        place = self._num_stages - 1 - self._stage_id if self._use_dualpipev and chunk else self._stage_id
        stage = chunk * self._num_stages + place
        return self.segment_parts[stage], self.segment_parts[stage + 1]

    def forward_function(self, start: int, end: int) -> Callable[..., Any]:
        """Layers ``start`` to ``end`` as one function; a tuple goes from one to the next as it is."""

        def run(*x: Any) -> Any:
            result: Any = x[0] if len(x) == 1 else x
            for number in range(start, end):
                enter_stage(self._stage_of(number))
                result = self.run_function[number](result)
            return result

        return run

    def forward(self, input: Any, chunk_id: int | None = None) -> Any:
        """The result of the last layer, or of those of chunk ``chunk_id`` of this rank. Raises ValueError for a chunk
        that it does not have."""
        if chunk_id is not None:
            return self.forward_function(*self._bounds(chunk_id))(input)
        step = self._recompute_interval
        if step == 0:
            return self.forward_function(0, len(self.run_function))(input)
        for first, last in pairwise(self.segment_parts):
            for start in range(first, last, step):
                end = min(start + step, last)
                given = input if isinstance(input, tuple) else (input,)
                function = self.forward_function(start, end)
                input = recompute(function, *given) if self._needs_recompute(start, end, given) else function(*given)
        return input

    def _needs_recompute(self, start: int, end: int, inputs: Sequence[Any]) -> bool:
        """Whether a region has parameters and an input that wants a gradient."""
        wanted = any(isinstance(x, Tensor) and not x.stop_gradient for x in inputs)
        return wanted and any(isinstance(f, Layer) and f.parameters() for f in self.run_function[start:end])


class PipelineLayerChunk(Layer):
    """One of several stages of a rank: layers and functions that are called one after the other."""

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        super().__init__()
        self.run_function = list(functions)
        for number, function in enumerate(functions):
            layer = function.args[0] if isinstance(function, partial) else function
            if isinstance(layer, Layer):
                self.add_sublayer(str(number), layer)

    def get_run_function(self) -> list[Callable[..., Any]]:
        """The layers and functions."""
        return self.run_function

    def forward(self, *x: Any) -> Any:
        """The last one's result; a tuple goes from one to the next as it is."""
        result: Any = x[0] if len(x) == 1 else x
        for function in self.run_function:
            result = function(result)
        return result


def _checked_stages(stages: int | None, topology: CommunicateTopology | None) -> int:
    """The number of ranks that the model is cut for."""
    if stages is None and topology is None:
        raise ValueError("PipelineLayer: give num_stages or topology")
    count = stages if topology is None else topology.get_dim("pipe")
    if count is None or count < 1:
        raise ValueError(f"PipelineLayer: num_stages is a number from 1, not {stages!r}")
    return count


def _grid_of(stages: int) -> CommunicateTopology | None:
    """The grid that fleet was initialised with, where it has as many stages."""
    if groups.value is None:
        return None
    grid = groups.value.topology()
    fits = "pipe" in grid.get_hybrid_group_names() and grid.get_dim("pipe") == stages
    return grid if fits else None


def _segments(
    layers: Sequence[Any], method: str | Sequence[int], stages: int, built: Sequence[Callable[..., Any]]
) -> list[int]:
    """The number of the first layer of each stage, and the number of layers. ``built`` are the layers themselves."""
    if method == "cost" and len(layers) >= stages:
        return _balanced([_cost(each) for each in built], stages)
    if not isinstance(method, str):
        made = list(method)
        made += [len(layers)] * (len(made) == stages)
        if len(made) != stages + 1 or made != sorted(set(made)) or (made[0], made[-1]) != (0, len(layers)):
            raise ValueError(
                f"PipelineLayer: seg_method {made} is not {stages + 1} increasing numbers from 0 to {len(layers)}"
            )
        return made
    kind, _, name = method.partition(":")
    if kind not in ("uniform", "cost", "layer"):
        raise ValueError(f"PipelineLayer: seg_method is 'uniform', 'cost', 'layer:Name' or a list, not {method!r}")
    chosen = [i for i, layer in enumerate(layers) if kind != "layer" or _matches(layer, name)]
    if len(chosen) < stages:
        what = "layers" if kind != "layer" else f"layers of class {name}"
        raise ValueError(f"PipelineLayer: {len(chosen)} {what} do not make {stages} stages")
    each, more = divmod(len(chosen), stages)
    lasts = [stage * each + max(0, stage - (stages - more)) - 1 for stage in range(1, stages)]
    return [0, *(chosen[last] + 1 for last in lasts), len(layers)]


def _cost(function: Callable[..., Any]) -> int:
    """How many numbers a row meets in a layer: the elements of its parameters; 1 for a function without any."""
    layer = function.args[0] if isinstance(function, partial) else function
    return 1 + sum(p.size for p in layer.parameters()) if isinstance(layer, Layer) else 1


def _balanced(costs: Sequence[int], stages: int) -> list[int]:
    """Where stages begin, each with a layer at least, so that the most that one of them costs is least."""
    total = [0, *accumulate(costs)]
    best: dict[int, tuple[int, list[int]]] = {end: (total[end], [0, end]) for end in range(1, len(total))}
    for stage in range(2, stages + 1):
        best = {
            end: min((max(best[i][0], total[end] - total[i]), [*best[i][1], end]) for i in range(stage - 1, end))
            for end in range(stage, len(total))
        }
    return best[len(costs)][1]


def _matches(layer: Any, pattern: str) -> bool:
    """Whether a regular expression is found in the name of a layer's class, in letters of either case."""
    return re.search(pattern, _class_name(layer), re.IGNORECASE) is not None


def _class_name(layer: Any) -> str:
    return (
        layer.layer_func.__name__ if isinstance(layer, LayerDesc) else getattr(layer, "__name__", type(layer).__name__)
    )


def complete_stages(optimizer: Optimizer, stages: Group) -> None:
    """Let an optimizer of this rank's stages have those of the other ranks', in the groups in which they have them: all
    ranks of a pipeline capture one update, of which each has its part. All of them call."""
    given = {id(p): number for number, group in enumerate(optimizer._groups) for p in group.params}
    for model in (made for each in _made.value if (made := each()) is not None):
        whole = model.whole_parameters()
        if model._num_stages == 1 or not any(id(p) in given for p in whole):
            continue
        found: list[dict[int, int]] = []
        all_gather_object(found, {i: given[id(p)] for i, p in enumerate(whole) if id(p) in given}, stages)
        numbers = {i: number for each in found for i, number in each.items()}
        inside = {id(p) for p in whole}
        for number, group in enumerate(optimizer._groups):
            ordered = [whole[i] for i in sorted(numbers) if numbers[i] == number]
            group.params = [*ordered, *(p for p in group.params if id(p) not in inside)]
