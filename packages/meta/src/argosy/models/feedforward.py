"""Perceptrons of language models: gated ones, and mixtures of them of which each token takes a few.

Shapes: N tokens, D width of the model, F width within, E experts, C chosen ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import argosy as paddle
from argosy import nn
from argosy.models.configuration import ExpertsConfig, FeedForwardConfig
from argosy.nn import functional as F
from argosy.nn.layer import Layer
from argosy_phi_ops.declare.operator import get_operator

__all__ = ["ACTIVATIONS", "Experts", "GatedFeedForward", "MixtureOfExperts", "Router", "gather_mm"]

gather_mm: Any = get_operator("gather_mm")

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "silu": F.silu,
    "swish": F.silu,
    "relu": F.relu,
    "relu2": lambda x: F.relu(x).square(),
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate=True),
    "gelu_pytorch_tanh": partial(F.gelu, approximate=True),
    "tanh": paddle.tanh,
}
"""Activations by the names that ``config.json`` uses."""


class GatedFeedForward(Layer):
    """``down(activation(gate(x)) * up(x))`` (Shazeer, 2020). x [..., D] -> [..., D]."""

    def __init__(self, width: int, config: FeedForwardConfig) -> None:
        super().__init__()
        self.config = config
        bias = None if config.bias else False
        self.gate_proj = nn.Linear(width, config.width, bias_attr=bias)
        self.up_proj = nn.Linear(width, config.width, bias_attr=bias)
        self.down_proj = nn.Linear(config.width, width, bias_attr=bias)

    def forward(self, x: Any) -> Any:
        """The perceptron's output."""
        return self.down_proj(ACTIVATIONS[self.config.activation](self.gate_proj(x)) * self.up_proj(x))


class Router(Layer):
    """The experts of each token and their weights: x_ND -> (weights_NC float32, experts_NC int64)."""

    weight: Any
    bias: Any
    e_score_correction_bias: Any

    def __init__(self, width: int, config: ExpertsConfig) -> None:
        super().__init__()
        self.config = config
        self.weight = self.create_parameter([width, config.experts])
        if config.scoring == "softmax-chosen":
            self.bias = self.create_parameter([config.experts], is_bias=True)
        if config.correction:
            self.e_score_correction_bias = self.create_parameter([config.experts], dtype="float32", is_bias=True)
            self.e_score_correction_bias.stop_gradient = True  # set by the balance of loads, not by the loss

    def forward(self, x_ND: Any) -> tuple[Any, Any]:
        """Scores in float32; the choice by corrected scores within the best groups; weights by the scores alone."""
        config = self.config
        logits_NE = paddle.matmul(x_ND.astype("float32"), self.weight.astype("float32"))
        if config.scoring == "softmax-chosen":
            chosen_NC, experts_NC = paddle.topk(logits_NE + self.bias.astype("float32"), config.chosen, axis=-1)
            return F.softmax(chosen_NC, axis=-1), experts_NC
        scores_NE = F.sigmoid(logits_NE) if config.scoring == "sigmoid" else F.softmax(logits_NE, axis=-1)
        ranked_NE = scores_NE + self.e_score_correction_bias if config.correction else scores_NE
        if config.groups > 1:
            ranked_NE = self._within_best_groups(ranked_NE)
        _, experts_NC = paddle.topk(ranked_NE, config.chosen, axis=-1)
        weights_NC = (F.one_hot(experts_NC, config.experts) * scores_NE.unsqueeze(1)).sum(-1)
        if config.normalise:
            total_N1 = weights_NC.sum(-1, keepdim=True)
            weights_NC = weights_NC / (total_N1.clip(min=config.least_sum) if config.least_sum else total_N1)
        return weights_NC * config.factor, experts_NC

    def _within_best_groups(self, ranked_NE: Any) -> Any:
        """Ranks with those outside of the best groups at -inf."""
        config = self.config
        each = config.experts // config.groups
        grouped_NGe = ranked_NE.reshape([-1, config.groups, each])
        best, _ = paddle.topk(grouped_NGe, 1 if config.group_score == "max" else 2, axis=-1)
        _, groups_Ng = paddle.topk(best.sum(-1), config.chosen_groups, axis=-1)
        seen_NG = F.one_hot(groups_Ng, config.groups).sum(1) > 0
        worst = paddle.full([], float("-inf"), ranked_NE.dtype)
        return paddle.where(seen_NG.unsqueeze(-1), grouped_NGe, worst).reshape([-1, config.experts])


class Experts(Layer):
    """The perceptrons of a mixture, their weights side by side: gate and up [E, D, 2 F], down [E, F, D].

    Each token is multiplied with the weights of its experts alone, all tokens of an expert at once (`gather_mm`).
    """

    gate_up_proj: Any
    down_proj: Any
    gate_up_proj_bias: Any
    down_proj_bias: Any

    def __init__(self, width: int, config: ExpertsConfig) -> None:
        super().__init__()
        self.config = config
        self.gate_up_proj = self.create_parameter([config.experts, width, 2 * config.width])
        self.down_proj = self.create_parameter([config.experts, config.width, width])
        if config.bias:
            self.gate_up_proj_bias = self.create_parameter([config.experts, 2 * config.width], is_bias=True)
            self.down_proj_bias = self.create_parameter([config.experts, width], is_bias=True)

    def forward(self, x_ND: Any, weights_NC: Any, experts_NC: Any) -> Any:
        """The sum [N, D] of the chosen experts' outputs by their weights."""
        x_NCD = x_ND.unsqueeze(1).expand([-1, self.config.chosen, -1])
        hidden_NCF = self._multiply(x_NCD, experts_NC, "gate_up_proj")
        out_NCD = self._multiply(self._gate(hidden_NCF), experts_NC, "down_proj")
        return (out_NCD * weights_NC.unsqueeze(-1).astype(out_NCD.dtype)).sum(1)

    def _multiply(self, x: Any, experts_NC: Any, name: str) -> Any:
        return gather_mm(x, experts_NC, getattr(self, name), getattr(self, f"{name}_bias", None))

    def _gate(self, hidden_NCF: Any) -> Any:
        gate, up = paddle.chunk(hidden_NCF, 2, axis=-1)
        if not self.config.clamped:
            return ACTIVATIONS[self.config.activation](gate) * up
        limit = self.config.limit
        gate, up = gate.clip(max=limit), up.clip(min=-limit, max=limit)
        return gate * F.sigmoid(gate * self.config.alpha) * (up + 1.0)


class MixtureOfExperts(Layer):
    """A router, its experts and a perceptron that every token takes. x [..., D] -> [..., D]."""

    def __init__(self, width: int, config: ExpertsConfig) -> None:
        super().__init__()
        self.config, self.width = config, width
        self.gate = Router(width, config)
        self.experts = Experts(width, config)
        if config.shared_width:
            self.shared_experts = GatedFeedForward(width, FeedForwardConfig(config.shared_width, config.activation))
        if config.shared_gate:
            self.shared_expert_gate = nn.Linear(width, 1, bias_attr=False)

    def forward(self, x: Any) -> Any:
        """The weighted sum of the chosen experts, and what all tokens take."""
        x_ND = x.reshape([-1, self.width])
        out_ND = self.experts(x_ND, *self.gate(x_ND))
        if self.config.shared_width:
            shared_ND = self.shared_experts(x_ND)
            if self.config.shared_gate:
                shared_ND = F.sigmoid(self.shared_expert_gate(x_ND)) * shared_ND
            out_ND = out_ND + shared_ND
        return out_ND.reshape(x.shape)
