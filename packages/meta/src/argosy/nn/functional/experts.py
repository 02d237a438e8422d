"""Tokens sorted by the experts they go to, and brought back (mixture of experts, Shazeer et al., 2017)."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.argument_checks import validate_call
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = ["moe_permute", "moe_unpermute"]


@validate_call
def moe_permute(
    hidden_states: Tensor,
    scale: Tensor | None,
    expert_routemap_topk: Tensor,
    expert_prob_topk: Tensor,
    num_experts: int,
    tokens_per_expert: Sequence[int],
    padding_alignment: int,
    do_gather: bool = True,
    using_ue8m0_scale: bool = False,
    return_expert_indices: bool = False,
    override_buffer_size: int = -1,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """The rows of ``hidden_states`` [n, d] expert by expert, each expert's block a multiple of the alignment.

    ``expert_routemap_topk`` [n, k] int32 names the experts of each token (-1: none) and is read on the host;
    ``expert_prob_topk`` [n, k] float32 their probabilities. Returns (rows [m, d], zero where a block is filled up;
    the row of each token at each expert [n, num_experts] int32, -1 for none; probabilities [m]; rows of ``scale`` [m,
    ...], of size 0 without one), and with ``return_expert_indices`` the expert of each row [m], -1 where filled up.
    Without ``do_gather`` the rows are zero. Raises ValueError where more tokens go to an expert than
    ``tokens_per_expert`` makes room for.
    """
    routes = to_numpy(expert_routemap_topk)
    _check("moe_permute", hidden_states, routes, expert_prob_topk, num_experts, tokens_per_expert)
    if padding_alignment < 1:
        raise ValueError(f"moe_permute: padding_alignment should be positive, got {padding_alignment}")
    rooms = [-(-int(count) // padding_alignment) * padding_alignment for count in tokens_per_expert]
    total = max(sum(rooms), override_buffer_size)
    token_of, slot_of, expert_of, row_map = _place(routes, num_experts, rooms, total)
    rows = _take(hidden_states, token_of)
    if not do_gather:
        rows = op("zeros_like")(rows)
    probabilities = _take(op("reshape")(expert_prob_topk, [-1]), slot_of)
    scales = op("zeros")([0], "float32") if scale is None else _take(scale, token_of)
    results = (rows, Tensor(row_map), probabilities, scales)
    return (*results, Tensor(expert_of)) if return_expert_indices else results


def _check(name: str, hidden: Tensor, routes: np.ndarray, prob: Tensor, experts: int, counts: Sequence[int]) -> None:
    if hidden.ndim != 2 or routes.ndim != 2 or routes.shape[0] != hidden.shape[0]:
        raise ValueError(
            f"{name}: hidden_states should be [n, d] and expert_routemap_topk [n, k], got {list(hidden.shape)} and "
            f"{list(routes.shape)}"
        )
    if list(prob.shape) != list(routes.shape):
        raise ValueError(f"{name}: expert_prob_topk {list(prob.shape)} should be like the routes {list(routes.shape)}")
    if len(counts) != experts:
        raise ValueError(f"{name}: tokens_per_expert has {len(counts)} numbers for num_experts {experts}")
    if routes.size and not (routes.min() >= -1 and routes.max() < experts):
        raise ValueError(f"{name}: routes lie in [-1, {experts}), got {routes.min()} to {routes.max()}")


def _place(
    routes: np.ndarray, experts: int, rooms: Sequence[int], total: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(token of each row, its place among the routes, its expert; the rows of each token [n, experts]), -1: none."""
    token_of, slot_of, expert_of = (np.full(total, -1, "int64") for _ in range(3))
    row_map = np.full((routes.shape[0], experts), -1, "int32")
    start = 0
    for expert, room in enumerate(rooms):
        tokens, slots = np.nonzero(routes == expert)
        if len(tokens) > room:
            raise ValueError(
                f"moe_permute: {len(tokens)} tokens go to expert {expert}, tokens_per_expert has room for {room}"
            )
        rows = start + np.arange(len(tokens))
        token_of[rows], slot_of[rows], expert_of[rows] = tokens, tokens * routes.shape[1] + slots, expert
        row_map[tokens, expert] = rows
        start += room
    return token_of, slot_of, expert_of.astype("int32"), row_map


def _take(x: Tensor, rows: np.ndarray) -> Tensor:
    """The rows of ``x``, and rows of zeros where the number is -1."""
    padded = op("concat")([x, op("zeros")([1, *x.shape[1:]], x.dtype)], 0)
    return op("index_select")(padded, Tensor(np.where(rows < 0, x.shape[0], rows)), 0)


@validate_call
def moe_unpermute(
    hidden_states_unzipped: Tensor,
    zipped_expertwise_rowmap: Tensor,
    expert_routemap_topk: Tensor,
    token_prob_unzipped: Tensor,
    total_zipped_tokens: int,
    num_experts: int,
    using_mix_precision: bool = True,
    using_weighted_combine: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """(the sum of each token's rows [n, d], their probabilities [n, k]): the way back from :func:`moe_permute`.

    With ``using_mix_precision`` the sum is in float32; ``using_weighted_combine`` weights the rows with their
    probabilities. The row map and the routes are read on the host.
    """
    row_map, routes = to_numpy(zipped_expertwise_rowmap), to_numpy(expert_routemap_topk)
    if list(row_map.shape) != [total_zipped_tokens, num_experts] or routes.shape[:1] != row_map.shape[:1]:
        raise ValueError(
            f"moe_unpermute: zipped_expertwise_rowmap should be {[total_zipped_tokens, num_experts]} and the routes "
            f"{[total_zipped_tokens, 'k']}, got {list(row_map.shape)} and {list(routes.shape)}"
        )
    probabilities = op("reshape")(token_prob_unzipped, [-1])
    dtype, width = hidden_states_unzipped.dtype, hidden_states_unzipped.shape[1]
    parts = op("reshape")(_take(hidden_states_unzipped, row_map.reshape(-1)), [*row_map.shape, width])
    if using_mix_precision or using_weighted_combine:
        parts = parts.astype("float32")
    if using_weighted_combine:
        parts = parts * op("reshape")(_take(probabilities, row_map.reshape(-1)), [*row_map.shape, 1])
    at = np.take_along_axis(row_map, np.maximum(routes, 0), 1)
    weights = _take(probabilities, np.where(routes < 0, -1, at).reshape(-1))
    return op("sum")(parts, 1).astype(dtype), op("reshape")(weights, list(routes.shape))
