"""``WrappedLayer``: a layer whose calls, states and names are those of another one, which several ranks train."""

from __future__ import annotations

from typing import Any, NamedTuple

from argosy.distributed.collective import broadcast
from argosy.distributed.group import Group
from argosy.nn.layer import Layer

__all__ = ["ExpertRanks", "WrappedLayer", "equalize", "is_expert"]


def is_expert(parameter: Any) -> bool:
    """Whether ranks have a parameter of their own each, as those of experts are: it has ``no_sync``."""
    return bool(getattr(parameter, "no_sync", False))


class ExpertRanks(NamedTuple):
    """Ranks that have all experts together: ``size`` of them, of which ``parts`` have parts of the same layers.
    ``alike`` are those with the same experts."""

    size: int
    parts: int
    alike: Group

    def divisor(self, parameter: Any) -> float:
        """By what the gradient of an expert is divided after its mean over ``alike``, to be the mean over the ranks
        whose tokens it has seen. Those of ranks with parts of the same layers are the same ones, unless the parameter
        is marked as one of split sequences."""
        return self.size / (self.parts if getattr(parameter, "sequence_parallel", False) else 1)


def equalize(model: Layer, group: Group, split_too: bool) -> None:
    """Give every member the first one's parameters and buffers, but those of experts; those of split layers where
    ``split_too``."""
    if group.nranks == 1:
        return
    for tensor in (*model.parameters(), *model.buffers()):
        if not is_expert(tensor) and (split_too or not getattr(tensor, "is_distributed", False)):
            broadcast(tensor, group.ranks[0], group)


class WrappedLayer(Layer):
    """``layers`` under another name; what is said to it is said to them."""

    def __init__(self, layers: Layer) -> None:
        super().__init__()
        if not isinstance(layers, Layer):
            raise TypeError(f"{type(self).__name__} takes a Layer, not {type(layers).__name__}")
        self._layers = layers

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What ``layers`` gives."""
        return self._layers(*inputs, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """That of ``layers``, under its own names."""
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, state_dict: Any, use_structured_name: bool = True) -> Any:
        """Put back what :meth:`state_dict` gave."""
        return self._layers.set_state_dict(state_dict, use_structured_name)

    set_dict = set_state_dict
    load_dict = set_state_dict
