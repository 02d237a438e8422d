"""Paddle's module of containers, for code that takes layers from where Paddle defines them."""

from argosy.nn.container import LayerDict, LayerList, ParameterDict, ParameterList, Sequential

__all__ = ["LayerDict", "LayerList", "ParameterDict", "ParameterList", "Sequential"]
