"""Recurrent networks over whole sequences: a cell along time, and stacks of them in one or both directions.

A built-in cell goes along time as one operator (a scan, so that captured programs do not grow with the sequence); a
cell of the user's is called step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from argosy.argument_checks import TensorLike, validate_call
from argosy.nn import functional as F
from argosy.nn.cells import GRUCell, LSTMCell, RNNCellBase, SimpleRNNCell
from argosy.nn.container import LayerList
from argosy.nn.layer import Layer
from argosy.nn.nesting import flatten, map_structure, pack_as
from argosy_tensorcore.tensor import Tensor

__all__ = ["GRU", "LSTM", "RNN", "BiRNN", "SimpleRNN"]


def _time_first(x: Any) -> Any:
    return x.transpose([1, 0, *range(2, x.ndim)])


def _simple_rnn(cell: Any, x: Any, h: Any, **options: Any) -> Any:
    weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    return F.simple_rnn(x, h, *weights, activation=cell.activation, **options)


def _lstm(cell: Any, x: Any, states: Any, **options: Any) -> Any:
    weights = (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    outputs, h, c = F.lstm(
        x, states[0], states[1], *weights, weight_ho=cell.weight_ho if cell.proj_size else None, **options
    )
    return outputs, (h, c)


def _gru(cell: Any, x: Any, h: Any, **options: Any) -> Any:
    return F.gru(x, h, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh, **options)


_WHOLE: dict[type, Callable[..., Any]] = {SimpleRNNCell: _simple_rnn, LSTMCell: _lstm, GRUCell: _gru}
"""The operator over all steps for each built-in cell."""


def _scan_cell(cell: Any, x: Any, states: Any, length: Any, reverse: bool, zero_padding: bool, more: Any) -> Any:
    """Outputs [T, N, ...] and last states of ``cell`` along x [T, N, ...]."""
    whole = _WHOLE.get(type(cell))
    if whole is None or more or cell._forward_pre_hooks or cell._forward_post_hooks:
        return _step_by_step(cell, x, states, length, reverse, more)
    return whole(cell, x, states, length=length, reverse=reverse, zero_padding=zero_padding)


def _step_by_step(cell: Any, x: Any, states: Any, length: Any, reverse: bool, more: Any) -> Any:
    steps = int(flatten(x)[0].shape[0])
    taken: list[Any] = [None] * steps
    for t in reversed(range(steps)) if reverse else range(steps):
        taken[t], new = cell(map_structure(lambda v, t=t: v[t], x), states, **more)
        if length is not None:
            new = map_structure(lambda n, old, t=t: _keep_finished(n, old, length > t), new, states)
        states = new
    if not taken:
        raise ValueError(f"RNN: {type(cell).__name__} needs a sequence of at least one step, got none")
    columns = zip(*(flatten(one) for one in taken), strict=True)
    return pack_as(taken[0], [F.stack(column) for column in columns]), states


def _keep_finished(new: Any, old: Any, going_on: Any) -> Any:
    return F.where(going_on.reshape([-1, *[1] * (new.ndim - 1)]), new, old)


class RNN(Layer):
    """``cell`` along time: inputs [N, T, ...] ([T, N, ...] with ``time_major``) give outputs and the last states.

    ``cell(inputs, states)`` gives (outputs, new states). From step ``sequence_length`` on a sample keeps its states.
    ``is_reverse`` goes from the last step to the first. Further keywords go to the cell.
    """

    def __init__(self, cell: RNNCellBase, is_reverse: bool = False, time_major: bool = False) -> None:
        super().__init__()
        if not isinstance(cell, Layer):
            raise TypeError(f"RNN(): argument 'cell' must be a Layer called with (inputs, states), got {cell!r:.80}")
        self.cell = cell
        self.is_reverse, self.time_major = is_reverse, time_major

    @validate_call
    def forward(
        self,
        inputs: TensorLike,
        initial_states: Any = None,
        sequence_length: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """(outputs, last states)."""
        return self._run(inputs, initial_states, sequence_length, False, kwargs)

    def _run(self, inputs: Any, states: Any, length: Any, zero_padding: bool, more: Any) -> Any:
        if states is None:
            states = _initial(self.cell, inputs, self.time_major)
        x = inputs if self.time_major else map_structure(_time_first, inputs)
        outputs, last = _scan_cell(self.cell, x, states, length, self.is_reverse, zero_padding, more)
        return (outputs if self.time_major else map_structure(_time_first, outputs)), last


def _initial(cell: Any, inputs: Any, time_major: bool) -> Any:
    first = flatten(inputs)[0]
    return cell.get_initial_states(first, batch_dim_idx=1 if time_major else 0)


class BiRNN(Layer):
    """``cell_fw`` forward and ``cell_bw`` backward along time: outputs side by side, and both last states."""

    def __init__(self, cell_fw: RNNCellBase, cell_bw: RNNCellBase, time_major: bool = False) -> None:
        super().__init__()
        sizes = [getattr(cell, "input_size", None) for cell in (cell_fw, cell_bw)]
        if sizes[0] != sizes[1]:
            raise ValueError(f"BiRNN: both cells take the same inputs, but their sizes are {sizes[0]} and {sizes[1]}")
        self.cell_fw, self.cell_bw = cell_fw, cell_bw
        self.time_major = time_major

    @validate_call
    def forward(
        self,
        inputs: TensorLike,
        initial_states: Any = None,
        sequence_length: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """(outputs [.., 2 units], (last states forward, last states backward))."""
        if initial_states is not None and len(initial_states) != 2:
            raise ValueError(f"BiRNN: initial states are a pair, forward and backward; got {len(initial_states)}")
        return self._run(inputs, initial_states, sequence_length, False, kwargs)

    def _run(self, inputs: Any, states: Any, length: Any, zero_padding: bool, more: Any) -> Any:
        cells = (self.cell_fw, self.cell_bw)
        starts = [_initial(cell, inputs, self.time_major) for cell in cells] if states is None else states
        x = inputs if self.time_major else map_structure(_time_first, inputs)
        ways = [
            _scan_cell(cell, x, start, length, bool(i), zero_padding, more)
            for i, (cell, start) in enumerate(zip(cells, starts, strict=True))
        ]
        outputs = map_structure(lambda a, b: F.concat([a, b], axis=-1), ways[0][0], ways[1][0])
        return (outputs if self.time_major else map_structure(_time_first, outputs)), (ways[0][1], ways[1][1])


class _Stack(LayerList):
    """Layers of one kind of cell over each other; the layers are its sublayers, their parameters also its own.

    Own names are ``weight_ih_l0``, ``weight_hh_l0``, ``bias_ih_l0``, ``bias_hh_l0``, with ``_reverse`` for the way
    back, in the order in which the cells have parameters (as Paddle hands them out, which matters for checkpoints).
    """

    components: ClassVar[int] = 1

    def _build(self, make: Callable[[int], RNNCellBase], config: dict[str, Any]) -> None:
        """Append ``num_layers`` layers of ``make(input size)``; raises ValueError for an unknown direction."""
        for name in ("input_size", "hidden_size", "num_layers", "time_major", "dropout", "direction"):
            setattr(self, name, config[name])
        self.proj_size = config.get("proj_size", 0)
        if self.direction not in ("forward", "bidirect", "bidirectional"):
            kind = type(self).__name__
            raise ValueError(f"{kind}: direction is 'forward' or 'bidirect' ('bidirectional'), got {self.direction!r}")
        if self.num_layers < 1:
            raise ValueError(f"{type(self).__name__}: num_layers should be at least 1, got {self.num_layers}")
        self.num_directions = 1 if self.direction == "forward" else 2
        self.state_components = self.components
        width = (self.proj_size or self.hidden_size) * self.num_directions
        for i in range(self.num_layers):
            cells = [make(self.input_size if i == 0 else width) for _ in range(self.num_directions)]
            way: Any = RNN if len(cells) == 1 else BiRNN
            self.append(way(*cells, time_major=self.time_major))
        parts = ["weight_ih", "weight_hh"]
        parts += [name for name in ("bias_ih", "bias_hh") if config[f"{name}_attr"] is not False]
        for name, parameter in zip(self._own_names(parts), self.parameters(), strict=False):
            setattr(self, name, parameter)

    def _own_names(self, parts: Sequence[str]) -> Iterator[str]:
        for layer in range(self.num_layers):
            for way in ("", "_reverse")[: self.num_directions]:
                for part in parts:
                    yield f"{part}_l{layer}{way}"

    def flatten_parameters(self) -> None:
        """Nothing: kernels read each parameter where it lies."""

    @validate_call
    def forward(
        self, inputs: TensorLike, initial_states: TensorLike | None = None, sequence_length: Tensor | None = None
    ) -> Any:
        """Outputs [N, T, directions * units] of the last layer ([T, N, ...] with ``time_major``), and last states.

        States are [layers * directions, N, units], for LSTM a pair (h, c) of them. From step ``sequence_length`` [N] on
        a sample keeps its states and its outputs are 0 (without a projection, as in Paddle).
        """
        states: list[Any] = [None] * self.num_layers
        if initial_states is not None:
            states = self._split(initial_states)
        last = []
        for i, layer in enumerate(self):
            if i and self.dropout:
                inputs = F.dropout(inputs, self.dropout, training=self.training)
            way: Any = layer
            inputs, final = way._run(inputs, states[i], sequence_length, not self.proj_size, {})
            last.append(final)
        return inputs, self._join_states(last)

    def _split(self, states: Any) -> list[Any]:
        """For each layer the states of its cell, or for two directions a pair of them."""
        given: list[Any] = [states] if type(states) is Tensor else list(states)
        count = self.num_layers * self.num_directions
        kind = type(self).__name__
        if len(given) != self.components:
            raise ValueError(f"{kind}: initial states are {self.components} tensor(s), got {len(given)}")
        for state in given:
            if state.ndim != 3 or state.shape[0] != count:
                raise ValueError(f"{kind}: initial states are [{count}, batch, units], got {list(state.shape)}")
        cells = [tuple(state[i] for state in given) for i in range(count)]
        flat = [one if self.components > 1 else one[0] for one in cells]
        return flat if self.num_directions == 1 else list(zip(flat[::2], flat[1::2], strict=True))

    def _join_states(self, last: list[Any]) -> Any:
        parts = flatten(last)
        joined = tuple(F.stack(parts[i :: self.components]) for i in range(self.components))
        return joined if self.components > 1 else joined[0]

    def extra_repr(self) -> str:
        """Sizes, and what is not by default."""
        more = [f"num_layers={self.num_layers}"] if self.num_layers != 1 else []
        more += [f"time_major={self.time_major}"] if self.time_major else []
        more += [f"dropout={self.dropout}"] if self.dropout else []
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *more])


class SimpleRNN(_Stack):
    """Layers of :class:`SimpleRNNCell` over a sequence; see :meth:`forward` for shapes."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        activation: str = "tanh",
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        super().__init__()
        self.activation = activation
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        self._build(lambda size: SimpleRNNCell(size, hidden_size, activation, *attrs), config)


class LSTM(_Stack):
    """Layers of :class:`LSTMCell` over a sequence; see :meth:`forward` for shapes."""

    components = 2

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        proj_size: int = 0,
        name: str | None = None,
    ) -> None:
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        super().__init__()
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        self._build(lambda size: LSTMCell(size, hidden_size, *attrs, proj_size), config)


class GRU(_Stack):
    """Layers of :class:`GRUCell` over a sequence; see :meth:`forward` for shapes."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        super().__init__()
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        self._build(lambda size: GRUCell(size, hidden_size, *attrs), config)
