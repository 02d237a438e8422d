"""Activations by name, as older layers take them (``act="hard_swish"``): Paddle's names of operators, with their
defaults, which are not always those of ``nn.functional``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argosy.nn import functional as F
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["activate"]

_FUNCTIONS = frozenset(
    "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid log_softmax mish relu relu6 selu "
    "sigmoid silu softmax softplus softshrink softsign swish tanh tanhshrink thresholded_relu".split()
)
_OPERATORS = frozenset("abs ceil cos exp expm1 floor log reciprocal round rsqrt sin sqrt square stanh tan".split())
_OLDER: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "brelu": ("hardtanh", {"min": 0.0, "max": 24.0}),
    "hard_shrink": ("hardshrink", {}),
    "hard_sigmoid": ("hardsigmoid", {"slope": 0.2, "offset": 0.5}),
    "hard_swish": ("hardswish", {}),
    "logsigmoid": ("log_sigmoid", {}),
    "tanh_shrink": ("tanhshrink", {}),
}


def activate(x: Tensor, act: str | None) -> Tensor:
    """The activation called ``act`` of ``x`` (None: ``x`` itself). Raises ValueError where there is none."""
    if act is None:
        return x
    name, settings = _OLDER.get(act, (act, {}))
    if name in _FUNCTIONS:
        function: Callable[..., Any] = getattr(F, name)
    elif name in _OPERATORS:
        function = get_operator(name)
    else:
        known = ", ".join(sorted(_FUNCTIONS | _OPERATORS | set(_OLDER)))
        raise ValueError(f"argument 'act' (activation) must be None or one of {known}; got {act!r}")
    return function(x, **settings)  # type: ignore[no-any-return]
