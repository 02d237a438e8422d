"""Recurrent cells: one step of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from argosy.argument_checks import TensorLike, validate_call
from argosy.framework.param_attr import ParamAttr
from argosy.nn import functional as F
from argosy.nn.initializer import Constant, Uniform
from argosy.nn.layer import Layer

__all__ = ["GRUCell", "LSTMCell", "RNNCellBase", "SimpleRNNCell"]


class RNNCellBase(Layer):
    """The base of cells: ``forward(inputs, states)`` gives (outputs, new states)."""

    def get_initial_states(
        self, batch_ref: Any, shape: Any = None, dtype: Any = None, init_value: float = 0.0, batch_dim_idx: int = 0
    ) -> Any:
        """States filled with ``init_value`` for as many samples as ``batch_ref`` has."""
        shape = self.state_shape if shape is None else shape
        kind = self._kind_of_states(batch_ref) if dtype is None else dtype
        batch = batch_ref.shape[batch_dim_idx]
        if isinstance(shape[0], (list, tuple)):
            return tuple(F.full([batch, *one], init_value, dtype=kind) for one in shape)
        return F.full([batch, *shape], init_value, dtype=kind)

    def _kind_of_states(self, batch_ref: Any) -> Any:
        own = type(self).state_dtype is not RNNCellBase.state_dtype
        return self.state_dtype if own else batch_ref.dtype

    @property
    def state_shape(self) -> Any:
        """The shape of a state without its batch, or of each of several."""
        raise NotImplementedError(f"{type(self).__name__} does not define state_shape")

    @property
    def state_dtype(self) -> Any:
        """The dtype of states; the built-in cells take that of their inputs."""
        raise NotImplementedError(f"{type(self).__name__} does not define state_dtype")


class _GatedCell(RNNCellBase):
    """A cell of ``gates`` affine maps of input and state.

    weight_ih [gates * hidden, input], weight_hh [gates * hidden, state] and biases start uniform within
    1 / sqrt(hidden).
    """

    gates: ClassVar[int]
    weight_ih: Any
    weight_hh: Any
    bias_ih: Any
    bias_hh: Any

    def _make(self, input_size: int, hidden_size: int, attrs: Sequence[Any], state_size: int | None = None) -> None:
        if hidden_size <= 0:
            raise ValueError(f"{type(self).__name__}: hidden_size must be positive, got {hidden_size}")
        self.input_size, self.hidden_size = input_size, hidden_size
        bound = 1.0 / math.sqrt(hidden_size)
        start, rows = Uniform(-bound, bound), self.gates * hidden_size
        sizes = ([rows, input_size], [rows, state_size or hidden_size], [rows], [rows])
        for name, size, attr in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), sizes, attrs, strict=True):
            setattr(self, name, self._part(size, attr, name[0] == "b", start))

    def _part(self, size: list[int], attr: Any, is_bias: bool, start: Any) -> Any:
        """A parameter; with ``attr=False`` one that stays at 0 (a weight at 1), which checkpoints hold as Paddle's."""
        if attr is not False:
            return self.create_parameter(size, attr, is_bias=is_bias, default_initializer=start)
        still = Constant(0.0 if is_bias else 1.0)
        return self.create_parameter(size, ParamAttr(trainable=False), default_initializer=still)

    def _from_input(self, x: Any) -> Any:
        return F.matmul(x, self.weight_ih, transpose_y=True) + self.bias_ih

    def _from_state(self, h: Any) -> Any:
        return F.matmul(h, self.weight_hh, transpose_y=True) + self.bias_hh

    def _sigmoid(self, gate: Any) -> Any:
        return F.sigmoid(gate)

    @property
    def state_shape(self) -> Any:
        """(hidden size,)."""
        return (self.hidden_size,)

    def extra_repr(self) -> str:
        """Sizes."""
        return f"{self.input_size}, {self.hidden_size}"


class SimpleRNNCell(_GatedCell):
    """``h = activation(W_ih x + b_ih + W_hh h + b_hh)`` (Elman, 1990)."""

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        activation: str = "tanh",
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if activation not in ("tanh", "relu"):
            raise ValueError(f"SimpleRNNCell: activation is 'tanh' or 'relu', got {activation!r}")
        self.activation = activation
        self._make(input_size, hidden_size, (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr))
        self.activation, self._activation = activation, getattr(F, activation)

    @validate_call
    def forward(self, inputs: TensorLike, states: TensorLike | None = None) -> Any:
        """inputs [N, input], states [N, hidden]: (h, h)."""
        h = self.get_initial_states(inputs) if states is None else states
        h = self._activation(self._from_input(inputs) + self._from_state(h))
        return h, h

    def extra_repr(self) -> str:
        """Sizes, and the activation if it is not tanh."""
        return super().extra_repr() + (f", activation={self.activation}" if self.activation != "tanh" else "")


class LSTMCell(_GatedCell):
    """Gates i, f, g, o in this order: ``c = f c + i g; h = o tanh(c)`` (Hochreiter and Schmidhuber, 1997).

    ``proj_size`` maps h to fewer numbers with weight_ho [hidden, proj_size].
    """

    gates = 4
    weight_ho: Any

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        proj_size: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if not 0 <= proj_size < hidden_size:
            raise ValueError(f"LSTMCell: proj_size must be in [0, hidden_size {hidden_size}), got {proj_size}")
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        self._make(input_size, hidden_size, attrs, proj_size or hidden_size)
        self.proj_size = proj_size
        if proj_size:
            bound = 1.0 / math.sqrt(hidden_size)
            start = Uniform(-bound, bound)
            self.weight_ho = self.create_parameter([hidden_size, proj_size], weight_hh_attr, default_initializer=start)

    @validate_call
    def forward(self, inputs: TensorLike, states: TensorLike | None = None) -> Any:
        """inputs [N, input], states (h, c): (h, (h, c))."""
        h, c = self.get_initial_states(inputs) if states is None else states
        i, f, g, o = (self._from_input(inputs) + self._from_state(h)).chunk(4, axis=-1)
        keep, enter, leave = (self._sigmoid(gate) for gate in (f, i, o))
        c = keep * c + enter * F.tanh(g)
        h = leave * F.tanh(c)
        if self.proj_size:
            h = F.matmul(h, self.weight_ho)
        return h, (h, c)

    @property
    def state_shape(self) -> Any:
        """Those of h and c."""
        return ((self.proj_size or self.hidden_size,), (self.hidden_size,))


class GRUCell(_GatedCell):
    """Gates r, z and candidate c in this order: ``h = z h + (1 - z) c``, ``c = tanh(x_c + r h_c)`` (Cho et al.,
    2014).
    """

    gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._make(input_size, hidden_size, (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr))

    @validate_call
    def forward(self, inputs: TensorLike, states: TensorLike | None = None) -> Any:
        """inputs [N, input], states [N, hidden]: (h, h)."""
        h = self.get_initial_states(inputs) if states is None else states
        x_r, x_z, x_c = self._from_input(inputs).chunk(3, axis=-1)
        h_r, h_z, h_c = self._from_state(h).chunk(3, axis=-1)
        z = F.sigmoid(x_z + h_z)
        candidate = F.tanh(x_c + F.sigmoid(x_r + h_r) * h_c)
        h = (h - candidate) * z + candidate
        return h, h
