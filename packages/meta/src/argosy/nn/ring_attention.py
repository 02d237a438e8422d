"""Attention on sequences that are split over ranks: keys and values go round (Liu et al., 2023), weights are put
together as they come (Milakov and Gimelshein, 2018). In zig-zag order a causal mask leaves every rank half of each
block, and no mask but on its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy.nn.split_sequences import zigzag_order
from argosy_autograd.pylayer import PyLayer
from argosy_autoparallel import Partial, Replicate, Shard, api
from argosy_autoparallel.groups import communicators, ensure_groups, rank
from argosy_autoparallel.rank_operators import communicate, kept_by_dropout, part_of, whole_of
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["ring_attention"]

_SEQUENCE, _HEADS = 1, 2
_KEYS, _GRADIENTS = 0, 1
"""Tags of messages: blocks of keys and values, and of their gradients."""
State = tuple[Tensor, Tensor, Tensor]
Select = Callable[[Tensor], Tensor]


def ring_attention(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: float | None, dropout_p: float = 0.0,
    softcap: float = 0.0, sinks: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """``softmax(query key^T * scale) value`` of distributed tensors [B, S, H, D] and [B, T, K, D], H a multiple of K,
    on a mesh with a dimension "sep"; split there along S and T in zig-zag order, which without ``is_causal`` and
    dropout means nothing. Half dtypes are added up in float32. Of weights those are set to zero that one process would
    set to zero. ``softcap`` and ``sinks`` as in ``scaled_dot_product_attention``.

    Raises ValueError for meshes without "sep" and for sequences that do not divide.
    """
    mesh: Any = query.process_mesh
    if mesh is None or "sep" not in mesh.dim_names:
        raise ValueError(f"backend='p2p' is for tensors on a mesh with a dimension 'sep', not on {mesh!r}")
    size = mesh.get_dim_size("sep")
    for length in (query.shape[_SEQUENCE], key.shape[_SEQUENCE]):
        zigzag_order(length, size)
    if is_causal and query.shape[_SEQUENCE] != key.shape[_SEQUENCE]:
        raise ValueError(f"a causal mask is of {query.shape[_SEQUENCE]} queries and as many keys, not {key.shape[1]}")
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    ring = _Ring(query, key, is_causal, scale, softcap)
    if sinks is not None:
        sinks = api.reshard(sinks, mesh, ring.of_heads.placements)
    made: Tensor = _RingAttention.apply(query, key, value, sinks, ring, dropout_p)
    return made


class _RingAttention(PyLayer):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, sinks: Tensor | None, ring: _Ring, dropout_p: float
    ) -> Tensor:
        q, k, v = ring.local_part(query), ring.local_part(key), ring.local_part(value)
        if dropout_p:
            ring.drop(query.shape, key.shape, dropout_p)
        logits = None if sinks is None else ring.grouped_heads(sinks)
        out, weight = ring.attend(q, k, v, logits)
        ctx.ring, ctx.shapes = ring, [query.shape, key.shape, value.shape]
        ctx.save_for_backward(q, k, v, out, weight, logits)
        return ring.assemble(out.cast(query.dtype), [*query.shape[:-1], value.shape[-1]])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        q, k, v, out, weight, logits = ctx.saved_tensor()
        ring, g = ctx.ring, ctx.ring.local_part(gradient)
        passed = (g.cast(out.dtype) * out).sum(-1, keepdim=True)
        found = ring.differentiate(q, k, v, weight, g, passed)
        each = zip(found, (q, k, v), ctx.shapes, strict=True)
        made = [ring.assemble(g.cast(x.dtype), shape) for g, x, shape in each]
        if logits is not None:
            taken = -((logits.cast(weight.dtype) - weight).exp() * passed).sum([0, 3, 4])
            made.append(ring.terms_of_heads(taken.reshape([-1]).cast(logits.dtype), ctx.shapes[0][_HEADS]))
        return tuple(made)


class _Ring:
    """The ranks that have parts of the same sequences, and this rank's place among them. Its parts are [B, K, G, s, D]:
    G heads of queries to each of keys."""

    def __init__(self, query: Tensor, key: Tensor, is_causal: bool, scale: float, softcap: float) -> None:
        mesh: Any = query.process_mesh
        ensure_groups(mesh)
        dim = mesh.dim_names.index("sep")
        lines = np.moveaxis(mesh.mesh, dim, -1).reshape(-1, mesh.shape[dim]).tolist()
        self.line = next(tuple(line) for line in lines if rank() in line)
        self.size, self.place = len(self.line), self.line.index(rank())
        self.is_causal, self.scale, self.softcap = is_causal, scale, softcap
        self.kept: Tensor | None = None
        placements: list[Any] = [
            _placement_of_result(p, n, key) for p, n in zip(query.placements, mesh.shape, strict=True)
        ]
        placements[dim] = Shard(_SEQUENCE)
        self.layout = Layout.from_placements(mesh, placements, query.ndim)
        along: list[Any] = [Shard(0) if p == Shard(_HEADS) else Replicate() for p in placements]
        self.of_heads = Layout.from_placements(mesh, along, 1)
        terms = [
            Partial() if isinstance(p, Shard) and p != Shard(_HEADS) else a
            for p, a in zip(placements, along, strict=True)
        ]
        self.terms = Layout.from_placements(mesh, terms, 1)
        self.heads = key.shape[_HEADS] // np.prod(
            [n for p, n in zip(placements, mesh.shape, strict=True) if p == Shard(_HEADS)], dtype=int
        )

    # ---- parts

    def local_part(self, x: Tensor) -> Tensor:
        """This rank's part of a distributed tensor."""
        part = _part(x, self.layout)
        rows, length, heads, width = part.shape
        return part.reshape([rows, length, self.heads, heads // self.heads, width]).transpose([0, 2, 3, 1, 4])

    def assemble(self, part: Tensor, shape: Sequence[int]) -> Tensor:
        """The distributed tensor of ``shape`` of which this rank has such a part."""
        rows, keys, each, length, width = part.shape
        return _assemble(
            part.transpose([0, 3, 1, 2, 4]).reshape([rows, length, keys * each, width]), self.layout, shape
        )

    def grouped_heads(self, x: Tensor) -> Tensor:
        """This rank's part of a tensor of heads [H], as [K, G, 1, 1]."""
        return _part(x, self.of_heads).reshape([self.heads, -1, 1, 1])

    def terms_of_heads(self, part: Tensor, count: int) -> Tensor:
        """The tensor of ``count`` heads of which ranks with other rows or parts of sequences have terms."""
        return _assemble(part, self.terms, [count])

    def drop(self, queries: Sequence[int], keys: Sequence[int], p: float) -> None:
        """Draw which weights of this rank's queries stay, [B, K, G, s, T], keys in zig-zag order."""
        rows, heads, length = queries[0], queries[_HEADS], keys[_SEQUENCE]
        own = self.layout.local_slice(tuple(queries), rank())
        tall, wide = own.shape[_SEQUENCE] // 2, length // (2 * self.size)
        last = 2 * self.size - 1
        columns = [place * wide for r in range(self.size) for place in (r, last - r)]
        blocks = tuple(
            tuple((own.offset[0], own.offset[_HEADS], place * tall, column) for column in columns)
            for place in (self.place, last - self.place)
        )
        sizes = own.shape[0], own.shape[_HEADS], tall, wide
        kept = kept_by_dropout(p, blocks, sizes, (rows, heads, queries[_SEQUENCE], length))
        shape = [own.shape[0], self.heads, own.shape[_HEADS] // self.heads, 2 * tall, length]
        self.kept, self.rest = kept.reshape(shape), 1.0 / (1.0 - p) if p < 1 else 0.0

    def rotate(self, tensors: Sequence[Tensor], tag: int) -> Callable[[], list[Tensor]]:
        """Send tensors to the next rank; the function waits for those of the one before."""
        following, before = (self.place + 1) % self.size, (self.place - 1) % self.size
        if active_tracer() is not None:
            for x in tensors:
                communicate("send", x, group=self.line, peer=following, tag=tag)
            return lambda: [communicate("recv", x, group=self.line, peer=before, tag=tag) for x in tensors]
        communicator = communicators()[self.line]
        pairs = [(i, (i + 1) % self.size) for i in range(self.size)]
        sent = [np.ascontiguousarray(x.payload.to_host()) for x in tensors]
        taken = [np.empty_like(array) for array in sent]
        handles = [communicator.start_permute(*both, pairs) for both in zip(sent, taken, strict=True)]

        def wait() -> list[Tensor]:
            for handle in handles:
                handle.wait()
            return [Tensor._wrap(StridedArray(array)) for array in taken]

        return wait

    # ---- attention

    def attend(self, q: Tensor, k: Tensor, v: Tensor, logits: Tensor | None) -> tuple[Tensor, Tensor]:
        """This rank's results, and the logarithms of the sums of their weights, to which ``logits`` belong."""
        state: Any = None
        for step in range(self.size):
            arriving = self.rotate([k, v], _KEYS) if step + 1 < self.size else None
            queries, keys = self._visible_halves(step, q, k)
            scores, _ = self._scores(queries(q), keys(k), step)
            highest = scores.max(-1, keepdim=True)
            weights = (scores - highest).exp()
            mixed = self._drop(weights, step, queries, keys).cast(v.dtype) @ keys(v)
            block = mixed.cast(scores.dtype), highest, weights.sum(-1, keepdim=True)
            state = block if step == 0 else _merge(state, block)
            k, v = arriving() if arriving is not None else (k, v)
        if logits is not None:
            wide = logits.cast(state[1].dtype).expand(state[1].shape)
            state = _merge(state, (state[0] * 0, wide, get_operator("ones_like")(wide)))
        sums, highest, total = state
        return sums / total, highest + total.log()

    def differentiate(
        self, q: Tensor, k: Tensor, v: Tensor, weight: Tensor, g: Tensor, passed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of ``q``, ``k`` and ``v``: those of keys and values go round with them, and once more.
        ``passed`` are the products of results with their gradients."""
        of_queries: Any = 0
        arriving: Any = None
        for step in range(self.size):
            keys_arriving = self.rotate([k, v], _KEYS) if step + 1 < self.size else None
            queries, keys = self._visible_halves(step, q, k)
            rows, part = queries(g), keys(k)
            scores, slope = self._scores(queries(q), part, step)
            weights = (scores - queries(weight)).exp()
            arrived = self._drop((rows @ keys(v).mT).cast(weights.dtype), step, queries, keys)
            slopes = weights * (arrived - queries(passed)) * slope
            weights = self._drop(weights, step, queries, keys)
            of_queries = of_queries + _pad_half((slopes.cast(q.dtype) @ part).cast(weight.dtype), q, front=False)
            blocks = [
                (a.cast(q.dtype).mT @ b).cast(weight.dtype).sum(2, keepdim=True)
                for a, b in ((slopes, queries(q)), (weights, rows))
            ]
            sums = [_pad_half(block, k, front=True) for block in blocks]
            if arriving is not None:
                sums = [one + other for one, other in zip(arriving(), sums, strict=True)]
            arriving = self.rotate(sums, _GRADIENTS)
            k, v = keys_arriving() if keys_arriving is not None else (k, v)
        of_keys, of_values = arriving()
        return of_queries, of_keys, of_values

    def _scores(self, q: Tensor, k: Tensor, step: int) -> tuple[Tensor, Any]:
        """In float32 at least; of the rank's own block masked. And their derivatives by products."""
        products = q @ k.mT
        scores: Tensor = (products.cast("float32") if products.dtype.itemsize < 4 else products) * self.scale
        slope: Any = self.scale
        if self.softcap:
            share = (scores * (1 / self.softcap)).tanh()
            scores, slope = share * self.softcap, (1 - share * share) * self.scale
        if step or not self.is_causal:
            return scores, slope
        hidden = Tensor(np.triu(np.full(scores.shape[-2:], -np.inf, scores.dtype.numpy), 1))
        return scores + hidden, slope

    def _drop(self, x: Tensor, step: int, queries: Select, keys: Select) -> Tensor:
        """What is left of weights of keys that came ``step`` ranks far, or of their gradients."""
        if self.kept is None:
            return x
        length = self.kept.shape[-1] // self.size
        first = (self.place - step) % self.size * length
        kept = keys(queries(self.kept[..., first : first + length]).mT).mT
        made: Tensor = x * (kept.cast(x.dtype) * self.rest)
        return made

    def _visible_halves(self, step: int, q: Tensor, k: Tensor) -> tuple[Select, Select]:
        """Which queries see which of the keys that came ``step`` ranks far: of blocks before this rank's all queries
        the front half, of those behind it the back half of queries all."""
        if step == 0 or not self.is_causal:
            return _all, _all
        return (_all, _front) if step <= self.place else (_back, _all)


def _placement_of_result(placement: Any, size: int, key: Tensor) -> Any:
    """Rows and, where they divide, heads stay split."""
    stays = placement == Shard(0) or (placement == Shard(_HEADS) and key.shape[_HEADS] % size == 0)
    return placement if stays else Replicate()


def _part(x: Tensor, layout: Layout) -> Tensor:
    """This rank's part of a distributed tensor that is laid out so."""
    if active_tracer() is not None:
        return part_of(x, layout)
    return api.dtensor_to_local(api.reshard(x, layout.mesh, layout.placements))


def _assemble(part: Tensor, layout: Layout, shape: Sequence[int]) -> Tensor:
    if active_tracer() is None:
        return api.dtensor_from_part(part, shape, layout.mesh, layout.placements)
    return whole_of(part, layout, shape)


def _all(x: Tensor) -> Tensor:
    return x


def _front(x: Tensor) -> Tensor:
    half: Tensor = x[..., : x.shape[-2] // 2, :]
    return half


def _back(x: Tensor) -> Tensor:
    half: Tensor = x[..., x.shape[-2] // 2 :, :]
    return half


def _pad_half(x: Tensor, like: Tensor, front: bool) -> Tensor:
    """The front or back half of rows of a tensor of zeros, if it is a half of those of ``like``."""
    if x.shape[-2] == like.shape[-2]:
        return x
    zeros = get_operator("zeros_like")(x)
    return get_operator("concat")([x, zeros] if front else [zeros, x], -2)  # type: ignore[no-any-return]


def _merge(state: State, block: State) -> State:
    """Sums of values, highest scores and sums of weights, those of back rows alone included, in one."""
    if block[0].shape[-2] != state[0].shape[-2]:
        merged = _merge((_back(state[0]), _back(state[1]), _back(state[2])), block)
        joined = [get_operator("concat")([_front(x), y], -2) for x, y in zip(state, merged, strict=True)]
        return joined[0], joined[1], joined[2]
    highest = get_operator("maximum")(state[1], block[1])
    one, other = (state[1] - highest).exp(), (block[1] - highest).exp()
    return state[0] * one + block[0] * other, highest, state[2] * one + block[2] * other
