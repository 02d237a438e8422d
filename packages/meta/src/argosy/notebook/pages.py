"""HTML of tensors (values, shape, a small image or line) and layers (a tree with sizes)."""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np

from argosy.notebook.pictures import as_image, line, png_source
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["layer_html", "tensor_html"]

_EDGE = 3
"""How many rows and columns of a table are shown at either end."""


def tensor_html(x: Tensor) -> str:
    """The dtype and shape of a tensor, its values as a table, and what they look like where that tells something."""
    if type(x.payload) is not StridedArray:
        return f"<pre>{html.escape(repr(x))}</pre>"
    facts = [f"<b>Tensor</b> {x.dtype.name} {list(x.shape)}", str(x.device)]
    if not x.stop_gradient:
        facts.append("wants a gradient")
    values = x.detach().astype("float32").numpy() if not x.dtype.in_numpy else x.numpy()
    return f"<div>{' · '.join(facts)}{_picture(values)}{_table(values)}</div>"


def _picture(values: np.ndarray[Any, Any]) -> str:
    """An image where the shape is that of one, a line for a vector, nothing otherwise."""
    if values.dtype.kind not in "biuf" or not values.size:
        return ""
    if values.ndim == 1 and values.size >= 8:
        return f"<div>{line(values)}</div>"
    image = as_image(values)
    if image is None:
        return ""
    size = "image-rendering:pixelated;min-width:64px;max-width:256px"
    return f"<div><img alt='values as a picture' style='{size}' src='{png_source(image)}'></div>"


def _table(values: np.ndarray[Any, Any]) -> str:
    if values.ndim == 0:
        return f"<pre>{html.escape(str(values[()]))}</pre>"
    if values.ndim > 2 or not values.size:
        return f"<pre>{html.escape(np.array2string(values, threshold=60, edgeitems=2))}</pre>"
    rows = np.atleast_2d(values)
    shown = [[_cell(rows, i, j) for j in _places(rows.shape[1])] for i in _places(rows.shape[0])]
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in shown)
    return f"<table>{body}</table>"


def _places(count: int) -> list[int | None]:
    """The places that are shown of so many; None for those left out."""
    if count <= 2 * _EDGE + 1:
        return list(range(count))
    return [*range(_EDGE), None, *range(count - _EDGE, count)]


def _cell(rows: np.ndarray[Any, Any], i: int | None, j: int | None) -> str:
    if i is None or j is None:
        return "⋮" if i is None else "…"
    value = rows[i, j]
    return html.escape(f"{value:.4g}" if rows.dtype.kind in "fc" else str(value))


def layer_html(layer: Any) -> str:
    """The tree of a layer: each sublayer with its settings and how many parameters it has; what has parts folds."""
    return f"<div>{_branch('', layer, is_open=True)}</div>"


def _branch(name: str, layer: Any, is_open: bool = False) -> str:
    count = sum(math.prod(p.shape) for p in layer.parameters())
    label = f"{html.escape(name)}: " if name else ""
    settings = html.escape(layer.extra_repr())
    title = f"{label}<b>{type(layer).__name__}</b>({settings}) <small>{count:,} parameters</small>"
    inner = "".join(_branch(key, each) for key, each in layer.named_children())
    own = "".join(
        f"<li><code>{html.escape(key)}</code> {p.dtype.name} {list(p.shape)}</li>"
        for key, p in layer._parameters.items() if p is not None
    )  # fmt: skip
    if not inner and not own:
        return f"<div style='margin-left:1em'>{title}</div>"
    opened = " open" if is_open else ""
    return (
        f"<details style='margin-left:1em'{opened}><summary>{title}</summary>"
        f"{f'<ul>{own}</ul>' if own else ''}{inner}</details>"
    )
