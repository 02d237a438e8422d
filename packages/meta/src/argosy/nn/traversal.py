"""Walking a tree of layers, and showing it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["describe", "find_layer", "find_member", "named_children", "named_layers", "named_members"]


def named_children(layer: Any) -> Iterator[tuple[str, Any]]:
    """Pairs (name, direct sublayer), each layer once."""
    seen = set()
    for name, child in layer._sub_layers.items():
        if child is not None and child not in seen:
            seen.add(child)
            yield name, child


def named_layers(
    layer: Any, prefix: str, include_self: bool, seen: set[Any] | None, once: bool
) -> Iterator[tuple[str, Any]]:
    """Pairs (dotted name, layer), depth first; a layer met before is skipped when ``once``."""
    seen = set() if seen is None else seen
    if once and layer in seen:
        return
    seen.add(layer)
    if include_self:
        yield prefix, layer
    for name, child in layer._sub_layers.items():
        if child is not None:
            yield from named_layers(child, f"{prefix}.{name}" if prefix else name, True, seen, once)


def named_members(layer: Any, kind: str, prefix: str, deep: bool, once: bool) -> Iterator[tuple[str, Any]]:
    """Pairs (dotted name, tensor) of one kind (``_parameters``, ``_buffers``), each tensor once when ``once``."""
    seen: set[int] = set()
    layers = named_layers(layer, prefix, True, None, once) if deep else iter([(prefix, layer)])
    for path, owner in layers:
        for name, tensor in owner.__dict__[kind].items():
            if tensor is None or (once and id(tensor) in seen):
                continue
            seen.add(id(tensor))
            yield f"{path}.{name}" if path else name, tensor


def find_layer(layer: Any, target: str) -> Any:
    """The layer of that dotted name; the empty name is the layer itself."""
    found = layer
    for part in target.split(".") if target else ():
        child = found._sub_layers.get(part)
        if child is None:
            raise AttributeError(f"{type(found).__name__} has no sublayer {part!r} (looking for {target!r})")
        found = child
    return found


def find_member(layer: Any, target: str, kind: str) -> Any:
    """The parameter or buffer of that dotted name."""
    path, _, name = target.rpartition(".")
    owner = find_layer(layer, path)
    found = owner.__dict__[kind].get(name)
    if found is None:
        raise AttributeError(f"{type(owner).__name__} has no {kind[1:-1]} {name!r} (looking for {target!r})")
    return found


def describe(layer: Any) -> str:
    """The nested representation that ``print(layer)`` shows."""
    extra = layer.extra_repr()
    lines = []
    for name, child in layer._sub_layers.items():
        lines.append(f"({name}): " + "\n  ".join(repr(child).split("\n")))
    head = type(layer).__name__
    if not lines:
        return f"{head}({extra})"
    opening = "\n  " + extra.replace("\n", "\n  ") if "\n" in extra else extra  # one line stands beside the name
    body = "\n  ".join(lines)
    return f"{head}({opening}\n  {body}\n)"
