"""Layers and parameters in sequences and dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from argosy.argument_checks import TensorLike, validate_call
from argosy.framework.aliases import parameter_aliases
from argosy.nn.layer import Layer
from argosy_tensorcore.tensor import Tensor

__all__ = ["LayerDict", "LayerList", "ParameterDict", "ParameterList", "Sequential"]


class _OrderedContainer(Layer):
    """What Sequential and LayerList share: sublayers by position."""

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(list(self._sub_layers.values()))

    def __getitem__(self, index: int | slice | str) -> Any:
        if isinstance(index, slice):
            make: Any = type(self)
            return make(*self._pick(index)) if isinstance(self, Sequential) else make(self._pick(index))
        return self._sub_layers[self._key(index)]

    def __setitem__(self, index: int | str, layer: Layer) -> None:
        self.add_sublayer(self._key(index), layer)

    def __delitem__(self, index: int | slice) -> None:
        dropped = set(self._pick(index)) if isinstance(index, slice) else {self[index]}
        self._renumber([layer for layer in self if layer not in dropped])

    def _pick(self, index: slice) -> list[Layer]:
        return list(self._sub_layers.values())[index]

    def _key(self, index: int | str) -> str:
        if isinstance(index, str):
            return index
        count = len(self._sub_layers)
        at = index.__index__()
        if not -count <= at < count:
            raise IndexError(f"{type(self).__name__} of {count} layers has no layer {at}")
        return list(self._sub_layers)[at]

    def _renumber(self, layers: Iterable[Layer]) -> None:
        self._sub_layers.clear()
        for i, layer in enumerate(layers):
            self.add_sublayer(str(i), layer)


class Sequential(_OrderedContainer):
    """Layers called one after another. Takes layers, or pairs (name, layer)."""

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], (list, tuple)) and not _is_pair(layers[0]):
            layers = tuple(layers[0])
        for i, item in enumerate(layers):
            name, layer = item if _is_pair(item) else (str(i), item)
            self.add_sublayer(name, layer)

    def forward(self, input: TensorLike) -> Any:
        """The last layer's output."""
        for layer in self._sub_layers.values():
            input = layer(input)
        return input

    def append(self, module: Layer) -> Self:
        """Add at the end."""
        self.add_sublayer(str(len(self)), module)
        return self

    @validate_call
    def extend(self, sequential: Iterable[Layer]) -> Self:
        """Add several at the end."""
        for layer in sequential:
            self.append(layer)
        return self

    @validate_call
    def insert(self, index: int, module: Layer) -> Self:
        """Put ``module`` before position ``index``; layers are numbered anew. Raises IndexError outside of them."""
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Sequential of {len(self)} layers has no position {index}")
        layers = list(self)
        layers.insert(index, module)
        self._renumber(layers)
        return self


def _is_pair(item: object) -> bool:
    return isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str)


class LayerList(_OrderedContainer):
    """Layers in a list; calling them is left to the user."""

    @parameter_aliases(modules="sublayers")
    def __init__(self, sublayers: Iterable[Layer] | None = None) -> None:
        super().__init__()
        self.extend(sublayers or ())

    def append(self, sublayer: Layer) -> Self:
        """Add at the end."""
        self.add_sublayer(str(len(self)), sublayer)
        return self

    @validate_call
    def extend(self, sublayers: Iterable[Layer]) -> Self:
        """Add several at the end."""
        for layer in sublayers:
            self.append(layer)
        return self

    @validate_call
    def insert(self, index: int, sublayer: Layer) -> None:
        """Put ``sublayer`` before position ``index``."""
        layers = list(self)
        layers.insert(index, sublayer)
        self._renumber(layers)

    def pop(self, key: int | str) -> Layer:
        """Take a layer out; those after it move up."""
        layers = list(self)
        layer = layers.pop(int(key))
        self._renumber(layers)
        return layer


class LayerDict(Layer):
    """Layers in a dictionary."""

    @parameter_aliases(modules="sublayers")
    def __init__(self, sublayers: Mapping[str, Layer] | Iterable[tuple[str, Layer]] | None = None) -> None:
        super().__init__()
        self.update(sublayers or {})

    def __getitem__(self, key: str) -> Layer:
        return self._sub_layers[key]  # type: ignore[no-any-return]

    def __setitem__(self, key: str, layer: Layer) -> None:
        self.add_sublayer(key, layer)

    def __delitem__(self, key: str) -> None:
        del self._sub_layers[key]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sub_layers)

    def __contains__(self, key: str) -> bool:
        return key in self._sub_layers

    @validate_call
    def update(self, sublayers: Mapping[str, Layer] | Iterable[tuple[str, Layer]]) -> None:
        """Set every item of a mapping or of pairs."""
        for key, layer in sublayers.items() if isinstance(sublayers, Mapping) else sublayers:
            self.add_sublayer(key, layer)

    def keys(self) -> Any:
        """Names of the layers."""
        return self._sub_layers.keys()

    def values(self) -> Any:
        """The layers."""
        return self._sub_layers.values()

    def items(self) -> Any:
        """Pairs (name, layer)."""
        return self._sub_layers.items()

    def pop(self, key: str) -> Layer:
        """Take a layer out."""
        return self._sub_layers.pop(key)  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Take all layers out."""
        self._sub_layers.clear()


def _sizes(layer: Layer) -> str:
    """The parameters of a layer, each with dtype and shape."""
    return ", ".join(f"{name}: {p.dtype.name} {list(p.shape)}" for name, p in layer._parameters.items())


class ParameterList(Layer):
    """Parameters in a list."""

    extra_repr = _sizes

    def __init__(self, parameters: Iterable[Tensor] | None = None) -> None:
        super().__init__()
        self.extend(parameters or ())

    def __getitem__(self, index: int) -> Tensor:
        return self._parameters[str(range(len(self))[index])]  # type: ignore[no-any-return]

    def __setitem__(self, index: int, parameter: Tensor) -> None:
        self._put("_parameters", str(range(len(self))[index]), parameter)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._parameters.values())

    def append(self, parameter: Tensor) -> Self:
        """Add at the end."""
        self.add_parameter(str(len(self)), parameter)
        return self

    @validate_call
    def extend(self, parameters: Iterable[Tensor]) -> Self:
        """Add several at the end."""
        for parameter in parameters:
            self.append(parameter)
        return self


class ParameterDict(Layer):
    """Parameters in a dictionary."""

    extra_repr = _sizes

    def __init__(self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def __getitem__(self, key: str) -> Tensor:
        return self._parameters[key]  # type: ignore[no-any-return]

    def __setitem__(self, key: str, parameter: Tensor) -> None:
        self._put("_parameters", key, parameter)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    @validate_call
    def update(self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]) -> None:
        """Set every item of a mapping or of pairs."""
        for key, parameter in parameters.items() if isinstance(parameters, Mapping) else parameters:
            self[key] = parameter
