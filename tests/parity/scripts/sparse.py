"""Sparse tensors made of dense ones, used, and taken apart again, so that plain arrays can be compared."""

from __future__ import annotations

from typing import Any


def _made(x: Any, kind: str) -> Any:
    """``kind``: "csr", or how many axes are sparse."""
    return x.to_sparse_csr() if kind == "csr" else x.to_sparse_coo(int(kind))


def _parts(found: Any) -> Any:
    if isinstance(found, tuple):
        return [part for one in found for part in _parts(one)]
    if not hasattr(found, "is_sparse") or not found.is_sparse():
        return [found]
    where = [found.crows(), found.cols()] if found.is_sparse_csr() else [found.indices()]
    return [list(found.shape), *where, found.values()]


def _reached(paddle: Any, name: str) -> Any:
    found = paddle.sparse
    for part in name.split("."):
        found = getattr(found, part)
    return found


def sparse_call(paddle: Any, name: str, x: Any, kind: str, *args: Any, **kwargs: Any) -> Any:
    """A function of one sparse tensor."""
    return _parts(_reached(paddle, name)(_made(x, kind), *args, **kwargs))


def sparse_pair(paddle: Any, name: str, x: Any, y: Any, kind: str) -> Any:
    """A function of two sparse tensors."""
    return _parts(_reached(paddle, name)(_made(x, kind), _made(y, kind)))


def sparse_members(paddle: Any, x: Any, kind: str) -> Any:
    """What a sparse tensor says of itself, and its dense form."""
    found = _made(x, kind)
    told = [found.is_sparse(), found.is_sparse_coo(), found.is_sparse_csr(), found.is_dense(), found.nnz()]
    axes = [found.sparse_dim(), found.dense_dim(), found.ndim, len(found), found.is_same_shape(x)]
    return [*told, *axes, *_parts(found), found.to_dense(), *_parts(found.detach())]


def sparse_turned(paddle: Any, x: Any, start: str, end: str) -> Any:
    """One kind made of another."""
    return _parts(_made(_made(x, start), end))


def sparse_masked(paddle: Any, x: Any, mask: Any, kind: str) -> Any:
    """A dense tensor at the places of a sparse one."""
    return _parts(paddle.sparse.mask_as(x, _made(mask, kind)))


def sparse_made(paddle: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """A sparse tensor of indices and values, with its dense form."""
    found = _reached(paddle, name)(*args, **kwargs)
    return [*_parts(found), found.to_dense(), found.stop_gradient]


def sparse_coalesced(paddle: Any, indices: Any, values: Any, shape: Any) -> Any:
    """Repeated coordinates added up."""
    found = paddle.sparse.sparse_coo_tensor(indices, values, shape, stop_gradient=False)
    made = paddle.sparse.coalesce(found)
    return [found.is_coalesced(), made.is_coalesced(), *_parts(made), made.to_dense(), *_parts(found.coalesce())]


def sparse_layer(
    paddle: Any, name: str, x: Any, kind: str, *parameters: Any, training: bool = True, **kwargs: Any
) -> Any:
    """A layer with these parameters, in the order of their names, applied; with what it remembers and its text."""
    layer = _reached(paddle, name)(**kwargs)
    (layer.train if training else layer.eval)()
    for parameter, value in zip(layer.parameters(), parameters, strict=False):
        parameter.set_value(value)
    found = layer(_made(x, kind))
    state = [value for key, value in sorted(layer.state_dict().items()) if key.startswith("_")]
    return [*_parts(found), *(v.detach() for v in state), str(layer)]
