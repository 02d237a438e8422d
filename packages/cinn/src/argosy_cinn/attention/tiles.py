"""Tiles of attention: which rows are computed together, and what a tile keeps in buffers.

They hold the scores, then what several phases need and what is expensive to compute again, and at last what the sinks
contract.
"""

from __future__ import annotations

from argosy_cinn.forms.attention import AttentionForm, Tiles
from argosy_cinn.forms.cost import COSTS
from argosy_cinn.forms.expressions import children
from argosy_cinn.shapes import ceil_div, larger, smaller
from argosy_cinn.target import Target

#: Nodes this expensive are stored for later phases.
_EXPENSIVE = 8
_STORABLE = frozenset({"float32", "bfloat16", "float16", "uint32", "int32"})
#: Rows of a tile: enough to use what is packed, few enough that tiles stay in the second-level cache.
_MOST_ROWS = 64
#: Rows of a chunk where nothing is accumulated over rows, and chunks for a balanced load where something is.
_CHUNK_ROWS = 256
_MOST_PARTS = 8


def choose_tiles(form: AttentionForm, target: Target) -> None:
    """Give a form its tiles, for a machine's caches."""
    form.tiles = _with_buffers(form)
    _choose_rows(form, form.tiles, target.l2_bytes)


def _with_buffers(form: AttentionForm) -> Tiles:
    stored = _store(form)
    last = _last_uses(form, stored)
    contents = [score.cell.number for score in form.scores]  # of each buffer, the node that it has
    tiles = Tiles(cells={number: i for i, number in enumerate(contents)})
    roots = [s.root.number for s in form.sinks]
    known = set(contents)
    for phase in range(form.phases):
        final = phase == form.phases - 1
        wanted = [n for n, first in stored.items() if first == phase]
        wanted += [n for n in roots if final and n not in known]
        written: dict[int, int] = {}
        for number in dict.fromkeys(wanted):
            free = [i for i, old in enumerate(contents) if last.get(old, -1) <= phase and old not in written]
            buffer = free[0] if free else len(contents)
            contents[buffer : buffer + 1] = [number]
            written[number] = buffer
            if final and number in roots:
                last[number] = form.phases
        known |= written.keys()
        tiles.writes.append(written)
    tiles.buffers = len(contents)
    return tiles


def _store(form: AttentionForm) -> dict[int, int]:
    """Expensive nodes that a later phase needs again, with the phase that computes them first."""
    first: dict[int, int] = {}
    stored: dict[int, int] = {}
    for phase in range(form.phases):
        fresh: set[int] = set()
        stack = form.phase_roots(phase)
        while stack:
            node = stack.pop()
            if node.number in fresh or not node.variables & form.column.variables or node.kind == "cell":
                continue
            earlier = first.get(node.number, phase) < phase
            if earlier and COSTS.get(node.kind, 1) >= _EXPENSIVE and node.dtype in _STORABLE:
                stored[node.number] = first[node.number]
                continue
            fresh.add(node.number)
            stack += children(node)
        for number in fresh:
            first.setdefault(number, phase)
    return stored


def _last_uses(form: AttentionForm, stored: dict[int, int]) -> dict[int, int]:
    """The last phase that reads each score and each stored node."""
    last: dict[int, int] = {}
    for phase in range(form.phases):
        stack, seen = form.phase_roots(phase), set()
        while stack:
            node = stack.pop()
            if node.number in seen:
                continue
            seen.add(node.number)
            if node.kind == "cell" or stored.get(node.number, phase) < phase:
                last[node.number] = phase
            else:
                stack += children(node)
    for sink in form.sinks:  # what a sink contracts as it is stays to the end
        if sink.root.kind == "cell" or sink.root.number in stored:
            last[sink.root.number] = form.phases
    return last


def _choose_rows(form: AttentionForm, tiles: Tiles, room: int) -> None:
    """Rows of a tile, whose buffers take ``room`` bytes, and the parts that the rows are cut into."""
    rows = room // (4 * form.column.extent * tiles.buffers) // 8 * 8
    tiles.most_rows = _MOST_ROWS
    tiles.rows = smaller(smaller(larger(rows, 16), _MOST_ROWS), ceil_div(form.row.extent, 8) * 8)
    if all(s.along == "columns" for s in form.sinks):
        tiles.parts = ceil_div(form.row.extent, _CHUNK_ROWS)
    elif isinstance(form.elements, int):
        count = ceil_div(form.row.extent, tiles.rows)
        most = max(ceil_div(_MOST_PARTS, form.elements), 1)
        tiles.parts = min(most, count) if isinstance(count, int) else most  # some may be empty
    else:
        tiles.parts = 1
