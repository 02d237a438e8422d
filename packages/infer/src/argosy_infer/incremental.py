"""Incremental decoding as a pass: the program that was trained becomes the program that is served.

Given a causal program over tokens [batch, sequence], the pass proves from axis notation that nothing but causal
attention mixes positions, and rewrites it over a *flat token axis* of ragged rows: inputs are the new tokens of any
number of sequences, one sequence after the other, each token with its position, and the block tables of the sequences;
attention reads and writes a paged cache that is a state of the program; an iota along the sequence becomes the
positions. What follows the last attention is computed of the wanted tokens alone. A model needs no cache code.

What cannot be proven is refused by name (:class:`IncrementalError`). The paged cache follows Kwon et al., "Efficient
Memory Management for Large Language Model Serving with PagedAttention", SOSP 2023.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_infer.errors import IncrementalError
from argosy_infer.latent_attention import dequantize_latent_weights, find_latent_attention
from argosy_infer.limits import input_limit
from argosy_infer.mask_states import compute_mask_states
from argosy_infer.paging import Pages, mask_keys
from argosy_infer.recognition import RecognizeAttention
from argosy_infer.recurrence import Recurrence
from argosy_infer.rewriting import REWRITES, Site, kept_axes, rewrite_elementwise
from argosy_infer.roles import BATCH, FLAT, NONE, TOKENS, Roles, operation_roles, result_roles
from argosy_phi_ops import prim
from argosy_phi_ops.checks.index_errors import CHECK
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.axes import parse_notation
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.passes.decompose import Decompose
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.dims import SymExpr
from argosy_pir.passes import Pass, register_pass
from argosy_pir.passes.dce import DeadCode
from argosy_pir.program import Program
from argosy_pir.substitution import substitute_in_operation
from argosy_pir.types import TensorType
from argosy_pir.values import Value

__all__ = ["ATTENTION", "MakeIncremental", "make_incremental"]

ATTENTION = "phi.scaled_dot_product_attention"
BY_TOKEN = ("phi.gather_mm",)
"""Operators whose notation proves that tokens are not mixed, though their primitives sort them."""
_INT = "int64"


def make_incremental(
    program: Program,
    block_size: int = 16,
    cache_dtype: str | None = None,
    states: Mapping[str, np.ndarray[Any, Any]] | None = None,
    text_length: int | None = None,
) -> Program:
    """The incremental form of ``program``, whose first input is tokens of integer type [batch, sequence].

    The result has the inputs ``tokens`` [t], ``positions`` [t], ``starts`` [rows + 1] (row r has the tokens from
    ``starts[r]`` to ``starts[r + 1]``), ``block_tables`` [rows, blocks of a sequence] and ``outputs`` [m], the tokens
    that are wanted, all but the tokens int64; then come other inputs of ``program``: those of [batch, sequence, ...]
    run along the tokens (masks of keys among them), others of [batch, ...] along the rows. Its states are those of
    ``program`` and, for each attention, the caches that :func:`argosy_infer.caches.caches_of` describes: of the dtype
    of keys and values, or, where ``cache_dtype`` is "int8", bytes with a scale for each token and head. Where heads
    make their keys and values of latent channels, those are cached. Every [batch, sequence, ...] output becomes
    [m, ...]. The program's attributes ``tokens_limit`` and ``positions_limit`` say which ids and positions it takes,
    where that is known; a call with others, or with numbers that are not those of tokens and rows, raises
    ``IndexError``. ``states``: arrays of states by name, in which causal masks are recognised. ``text_length``: the
    length that is computed with where a program computes with that of the text (rotations that change with it).
    Raises :class:`IncrementalError` naming the operation that mixes positions, or computes so where none is given.
    """
    made = program.clone()
    dequantize_latent_weights(made)
    kept = [name.removeprefix("phi.") for name in (ATTENTION, *BY_TOKEN)]
    Decompose(keep=(*kept, "softmax")).run(made)
    compute_mask_states(made, states or {})
    RecognizeAttention().run(made)
    Decompose(keep=tuple(kept)).run(made)
    MakeIncremental(block_size, cache_dtype, text_length).run(made)
    return made


@register_pass("make-incremental")
@dataclass(frozen=True)
class MakeIncremental(Pass):
    """Makes the incremental form of a program of primitives and attention, as :func:`make_incremental` describes it,
    for caches of blocks of ``block_size`` tokens and texts of ``text_length``."""

    block_size: int = 16
    cache_dtype: str | None = None
    text_length: int | None = None

    def run(self, program: Program) -> bool:
        """Rewrite the program; what cannot be proven raises :class:`IncrementalError`."""
        if self.cache_dtype not in (None, "int8"):
            raise IncrementalError(f"cache_dtype should be 'int8' or None, got {self.cache_dtype!r}")
        program.become(_Rewriter(program, self.block_size, self.cache_dtype, self.text_length).run())
        return True


class _Rewriter:
    """Carries roles and new values through the program, operation by operation."""

    def __init__(self, source: Program, block_size: int, cache_dtype: str | None, text_length: int | None) -> None:
        self.source, self.text_length = source, text_length
        self.block_size, self.cache_dtype = block_size, cache_dtype
        self.target = Program(source.name + "_incremental")
        self.roles: dict[Value, Roles] = {}
        self.values: dict[Value, Value] = {}
        self.by_row: dict[Value, Value] = {}  # what sequences have, but no tokens
        self.ends: dict[Value, str] = {}  # what loops carry last, with their places
        self.layers = 0
        self.pages: Pages
        self.positions: Value
        self.sizes = self.batch, self.sequence = _token_dims(source)
        self.tokens = SymExpr.symbol("t")
        self.last = next((op for op in reversed(list(source.block)) if op.name == ATTENTION or self._is_scan(op)), None)
        self.narrowed: set[Value] | None = None  # values of wanted tokens alone, once nothing else is asked for

    def run(self) -> Program:
        self._inputs()
        terminator = self.source.block.last
        with emit_at(Builder.at_end(self.target.block)):
            self._sequences()
            for op in self.source.block:
                if op is not terminator:
                    self._operation(op)
                if op is self.last:
                    self._select_outputs()
            outputs = self._outputs()
        kept = [self.values[value] for value in self.source.state_updates]
        self.target.set_outputs(outputs, [*kept, *self.pages.updates])
        self._limits()
        DeadCode().run(self.target)  # what latent attention does not make
        self.target.attributes["incremental"] = {"block_size": self.block_size, "layers": self.layers}
        return self.target

    def _outputs(self) -> list[Value]:
        if self.last is None:
            self._select_outputs()
        for value in self.source.outputs:
            if TOKENS not in self.roles[value]:
                raise IncrementalError(f"output of type {value.type} does not run along the tokens")
        return [self._value(value) for value in self.source.outputs]

    def _limits(self) -> None:
        """Record which tokens and positions there are, and refuse others before anything is written."""
        target, first = self.target, self.target.block.first
        assert first is not None  # a check of the outputs
        with emit_at(Builder.before(first)):
            for name, value in zip(("tokens", "positions"), target.inputs, strict=False):
                if name + "_limit" in self.source.attributes:
                    target.attributes[name + "_limit"] = self.source.attributes[name + "_limit"]
                if (limit := input_limit(target, name)) is not None:
                    target.attributes[name + "_limit"] = limit
                    prim.check_index(value, operator=name, low=0, size=limit)

    def _sequences(self) -> None:
        """The row of each token: how many rows end before it."""
        rows, tokens = self.block_tables.shape[0], self.tokens
        prim.check_index(self.outputs, operator="outputs", low=0, size=tokens)
        ends = prim.slice(self.starts, start=(1,), limit=(rows + 1,), stride=(1,))
        places = prim.iota(shape=(tokens, rows), axis=0, dtype=_INT)
        ended = prim.cast(prim.le(prim.broadcast(ends, shape=(tokens, rows), axes=(1,)), places), dtype=_INT)
        sequences = prim.reduce_sum(ended, axes=(1,))
        prim.check_index(sequences, operator="starts", low=0, size=rows)
        self.pages = Pages(self.target, self.block_size, self.cache_dtype, self.positions, sequences, self.block_tables)

    def _inputs(self) -> None:
        add, flat = self.target.add_input, TensorType((self.tokens,), _INT)
        first, *others = self.source.inputs
        self.values[first] = add(TensorType((self.tokens,), first.dtype), "tokens")
        self.roles[first] = (BATCH, TOKENS)
        self.positions = add(flat, "positions")
        rows = SymExpr.symbol("rows")
        self.starts = add(TensorType((rows + 1,), _INT), "starts")
        self.block_tables = add(TensorType((rows, SymExpr.symbol("table_blocks")), _INT), "block_tables")
        self.outputs = add(TensorType((SymExpr.symbol("m"),), _INT), "outputs")
        for other in others:
            self._other_input(other)
        for state in self.source.states:
            made = self.target.add_state(state.name, state.type, state.attributes)
            self.values[state.argument] = made.argument
            self.roles[state.argument] = (NONE,) * state.argument.ndim

    def _other_input(self, given: Value) -> None:
        shape = given.shape
        if shape[:1] == (self.batch,) and shape[1:2] != (self.sequence,):
            rows = self.block_tables.shape[0]
            self.by_row[given] = self.target.add_input(TensorType((rows, *shape[1:]), given.dtype), given.name_hint)
            self.roles[given] = (BATCH, *(NONE,) * (given.ndim - 1))
            return
        if shape[:2] != (self.batch, self.sequence):
            raise IncrementalError(f"input {given.name_hint} of type {given.type} runs along neither tokens nor rows")
        self.values[given] = self.target.add_input(TensorType((self.tokens, *shape[2:]), given.dtype), given.name_hint)
        self.roles[given] = (BATCH, TOKENS, *(NONE,) * (len(shape) - 2))

    def _select_outputs(self) -> None:
        """From here on nothing mixes tokens: only wanted ones are computed."""
        self.narrowed, self.positions = set(), self._gather_outputs(self.positions, 0)

    def _value(self, old: Value) -> Value:
        """What became of a value: that of the wanted tokens, where nothing mixes tokens any more."""
        roles = self.roles[old]
        if self.narrowed is not None and old not in self.narrowed and (TOKENS in roles or FLAT in roles):
            self.narrowed.add(old)
            axis = kept_axes(roles)[next(i for i, role in enumerate(roles) if role in (TOKENS, FLAT))]
            self.values[old] = self._gather_outputs(self.values[old], axis)
        return self.values[old]

    def _gather_outputs(self, value: Value, axis: int) -> Value:
        made = prim.gather(value, prim.reshape(self.outputs, shape=(self.outputs.shape[0], 1)), axes=(axis,))
        order = (*range(1, axis + 1), 0, *range(axis + 1, made.ndim))
        return made if axis == 0 else prim.transpose(made, permutation=order)  # type: ignore[no-any-return]

    def _operation(self, op: Operation) -> None:
        if op.name == ATTENTION:
            self._attention(op)
            return
        if self._is_scan(op) and (op.name == "control.scan" or not op.attributes["reverse"]):
            (self._recurrence if op.name == "control.scan" else self._scan)(op)
            return
        if any(any(self.roles.get(v, ())) for region in op.regions for inner in region.walk() for v in inner.operands):
            raise IncrementalError(f"{_place(op)} reads tokens from around it, which is not implemented")
        if op.name in BY_TOKEN:
            self._by_token(op)
            return
        if self._is_by_row(op):
            self._copy_by_row(op)
            return
        if any(v in self.by_row or v in self.ends for v in op.operands):
            self._spread(op)
            return
        if op.name == CHECK and any(self.roles[op.operand(0)]):
            self._check_index(op)
            return
        if all(not any(self.roles[v]) for v in op.operands) and not self._makes_tokens(op):
            self._copy(op)
            return
        operand_roles = [self.roles[v] for v in op.operands]
        is_table = op.name == "prim.slice" and not any(operand_roles[0])
        roles = [self._table_roles(op)] if is_table else operation_roles(op, operand_roles, self.sizes, _place(op))
        primitive = PRIMITIVES[op.kind]
        site = Site(op, [self._value(v) for v in op.operands], operand_roles, roles, self.positions)
        rewrite = REWRITES.get(primitive.name) or (rewrite_elementwise if primitive.category == "elementwise" else None)
        if rewrite is None:
            raise IncrementalError(f"{_place(op)} along tokens is not implemented in incremental decoding")
        self._define(op, rewrite(site), roles)

    def _by_token(self, op: Operation) -> None:
        operator = get_operator(op.kind)
        axes, _, made = operator.axes.partition("->")
        given = operator.signature.regroup(op.operands, op.attributes)
        parts = [part for part, v in zip(axes.split(","), given.values(), strict=True) if v is not None]
        text = f"{','.join(parts)}->{made}"
        notation = parse_notation(text, [v.shape for v in op.operands])
        shapes = [r.shape for r in op.results]
        roles = result_roles(notation, [self.roles[v] for v in op.operands], shapes, self.sizes, _place(op))
        values = {name: None if v is None else self._value(v) for name, v in given.items()}
        self._define(op, operator(**values), roles)

    def _is_by_row(self, op: Operation) -> bool:
        """Whether an operation gives a value for each sequence, of such values, or of what is known before."""
        shapes = [r.shape for r in op.results if isinstance(r.type, TensorType)]
        if op.regions or any(v in self.ends or (v not in self.by_row and any(self.roles[v])) for v in op.operands):
            return False
        made = any(v in self.by_row for v in op.operands) or any(self.batch in shape for shape in shapes)
        return made and not any(_mentions(n, self.sequence) for shape in shapes for n in shape)

    def _copy_by_row(self, op: Operation) -> None:
        if op.results:
            roles = operation_roles(op, [self.roles[v] for v in op.operands], self.sizes, _place(op))
            self.roles |= dict(zip(op.results, roles, strict=True))
        copy = op.clone(values := self.values | self.by_row)
        substitute_in_operation(copy, {next(iter(self.batch.symbols)): self.block_tables.shape[0]})
        self.target.block.append(copy)
        self.by_row |= {value: values[value] for value in op.results}

    def _spread(self, op: Operation) -> None:
        """What there is for each row becomes what each token has, where the program broadcasts it along the tokens."""
        given = next(v for v in op.operands if v in self.by_row or v in self.ends)
        if given in self.ends:
            raise IncrementalError(
                f"{_place(op)} takes what {self.ends[given]} carries last, which grows with the text"
            )
        axes = op.attributes["axes"] if op.name == "prim.broadcast" else ()
        along = [given.shape[i] for i, axis in enumerate(axes) if axis == 1]
        if axes[:1] != (0,) or op.result.shape[:2] != self.sizes or along not in ([], [1]):
            name = given.name_hint or "a value"
            raise IncrementalError(f"{_place(op)} takes {name} of each row; broadcast it along the tokens first")
        made = prim.gather(self.by_row[given], prim.reshape(self.pages.rows, shape=(self.tokens, 1)), axes=(0,))
        kept = [i for i, axis in enumerate(axes) if axis > 1]
        made = prim.reshape(made, shape=(self.tokens, *(given.shape[i] for i in kept)))
        places = (0, *(axes[i] - 1 for i in kept))
        self.values[op.result] = prim.broadcast(made, shape=(self.tokens, *op.result.shape[2:]), axes=places)
        self.roles[op.result] = (BATCH, TOKENS, *(NONE,) * (op.result.ndim - 2))

    def _check_index(self, op: Operation) -> None:
        """Each token's index is held against the same axis, but for one that is as long as the sequence: positions are
        never beyond that."""
        sizes = [op.attributes[name] for name in ("low", "size", "besides")]
        if not any(_mentions(n, self.sequence) or _mentions(n, self.batch) for n in sizes):
            self.target.block.append(op.clone(self.values))

    def _table_roles(self, op: Operation) -> Roles:
        """The roles of a slice of a plain table: the first rows, as many as the sequence is long, stand for
        positions.
        """
        attributes = op.attributes
        whole = zip(attributes["start"], attributes["limit"], attributes["stride"], op.operands[0].shape, strict=True)
        roles = tuple(
            TOKENS if (start, limit, stride) == (0, self.sequence, 1) else NONE for start, limit, stride, _ in whole
        )
        if [r for r in roles if r] != [TOKENS] or any(
            _mentions(n, self.sequence) or _mentions(n, self.batch)
            for n, role in zip(op.result.shape, roles, strict=True)
            if not role
        ):
            raise IncrementalError(f"{_place(op)} cuts a table in a way that depends on the length of the sequence")
        return roles

    def _define(self, op: Operation, results: Value | Sequence[Value], roles: Sequence[Roles]) -> None:
        made = [results] if isinstance(results, Value) else list(results)
        for old, new, role in zip(op.results, made, roles, strict=False):
            self.values[old] = new
            self.roles[old] = role
            if self.narrowed is not None:
                self.narrowed.add(old)

    def _makes_tokens(self, op: Operation) -> bool:
        """Whether an operation on plain values gives axes that run along batch or sequence (a broadcast, an iota)."""
        shapes = [r.shape for r in op.results if isinstance(r.type, TensorType)]
        return any(_mentions(dim, self.batch) or _mentions(dim, self.sequence) for shape in shapes for dim in shape)

    def _copy(self, op: Operation) -> None:
        clone = op.clone(self.values)
        for name, value in op.attributes.items():
            if _mentions(value, self.sequence):
                clone.attributes[name] = self._at_length(value, op)
        self.target.block.append(clone)
        for old in op.results:
            self.roles[old] = (NONE,) * (old.ndim if isinstance(old.type, TensorType) else 0)

    def _at_length(self, dim: SymExpr, op: Operation) -> Any:
        """A size where texts have the length that was asked for."""
        if self.text_length is None:
            raise IncrementalError(
                f"{_place(op)} computes with the length of the text, which grows in decoding; say which one is meant "
                "by text_length"
            )
        return dim.substitute({next(iter(self.sequence.symbols)): self.text_length})

    def _is_scan(self, op: Operation) -> bool:
        """Whether an operation runs along the text, as a running sum or a recurrent cell does."""
        if op.name == "control.scan":
            return any(v.shape[0] == self.sequence for v in op.operands[: op.attributes["inputs"]])
        return op.name == "prim.cumulative" and op.result.shape[op.attributes["axis"]] == self.sequence

    def _scan(self, op: Operation) -> None:
        x, roles = op.operand(0), self.roles[op.operand(0)]
        if roles[:2] != (BATCH, TOKENS) or any(roles[2:]) or not x.dtype.startswith(("float", "bfloat")):
            raise IncrementalError(f"{_place(op)} takes {x.type}, expected floats [batch, sequence, ...]")
        made = self.pages.scan(
            f"cache.{self.layers}.running", self.values[x], op.attributes["kind"], self.starts, self.layers
        )
        self.layers += 1
        self._define(op, [made], [roles])

    def _recurrence(self, op: Operation) -> None:
        loop = Recurrence(op, _place(op), self.roles, self.sizes)
        roles, initial = loop.result_roles(), []
        for value in op.operands[loop.inputs :]:
            one = (
                self.by_row[value]
                if value in self.by_row
                else prim.reshape(self.values[value], shape=(1, *value.shape))
            )
            initial.append(one)
        made = loop.emit(self.values, initial, self.pages, self.starts, f"cache.{self.layers}.state", self.layers)
        self.layers += 1
        for value in op.results[len(made) :]:
            self.ends[value], self.roles[value] = _place(op), (NONE,) * value.ndim
        self._define(op, made, roles)

    def _attention(self, op: Operation) -> None:
        given = get_operator(op.kind).signature.regroup(op.operands, op.attributes)
        mask, cap = given["attn_mask"], given.get("softcap", 0.0)
        if not given["is_causal"] or (mask is not None and self.roles[mask][1:] != (NONE, NONE, TOKENS)):
            raise IncrementalError(f"{_place(op)} must be causal (is_causal=True) and take no mask but one of keys")
        if mask is not None and (cap or self.cache_dtype):
            raise IncrementalError(f"{_place(op)} takes a mask of keys beside a soft cap, or caches of bytes")
        heads = [given[name] for name in ("query", "key", "value")]
        for v in heads:
            if self.roles[v] != (BATCH, TOKENS, NONE, NONE):
                raise IncrementalError(f"{_place(op)} takes {v.type}, expected [batch, sequence, heads, head size]")
        sinks = given.get("sinks")
        size, scale, window = heads[0].shape[3], given.get("scale"), given.get("window") or 0
        rule = {"scale": size**-0.5 if scale is None else scale, "window": window, "softcap": cap}
        bias = None if mask is None else self.values[mask]
        out = self._attend(heads, bias, None if sinks is None else self.values[sinks], rule)
        self.layers += 1
        self._define(op, [out], [(BATCH, TOKENS, NONE, NONE)])

    def _attend(self, heads: list[Value], mask: Value | None, sinks: Value | None, rule: dict[str, Any]) -> Value:
        """Attention of query, key and value over what is cached of the latter two, or of what they are made of."""
        query, key, value = (self.values[v] for v in heads)
        if mask is not None:
            query, key = mask_keys(query, key, mask, rule["scale"])
        about = {"kind": "window" if rule["window"] else "full", "layer": self.layers, "window": rule["window"]}
        name = f"cache.{self.layers}"
        latent = find_latent_attention(heads[1], heads[2], lambda v: not any(self.roles[v]))
        if latent is None or mask is not None:
            keys = self.pages.write(f"{name}.key", key, about)
            return self.pages.attend(query, keys, self.pages.write(f"{name}.value", value, about), sinks, rule)
        entry = latent.entry(self.values.__getitem__)
        cached = self.pages.write(f"{name}.latent", entry, {**about, "kind": "latent"})
        query = latent.query(query, self.values.__getitem__)
        mixed = self.pages.attend(query, cached, cached, sinks, {**rule, "width": latent.width})
        return latent.result(mixed, self.values.__getitem__)


def _token_dims(program: Program) -> tuple[Any, Any]:
    if not program.inputs:
        raise IncrementalError("the program takes no inputs; its first input must be tokens [batch, sequence]")
    type = program.inputs[0].type
    if not isinstance(type, TensorType) or len(type.shape) != 2 or not type.dtype.startswith(("int", "uint")):
        raise IncrementalError(f"the first input is {type}; expected integer tokens [batch, sequence]")
    batch, sequence = type.shape
    if not isinstance(sequence, SymExpr) or batch == sequence:
        raise IncrementalError(f"the tokens are {type}; their sequence axis must be symbolic (None in the InputSpec)")
    return batch, sequence


def _mentions(dim: Any, symbol: Any) -> bool:
    return isinstance(dim, SymExpr) and isinstance(symbol, SymExpr) and bool(dim.symbols & symbol.symbols)


def _place(op: Operation) -> str:
    return f"{op.name} at {op.location}"
