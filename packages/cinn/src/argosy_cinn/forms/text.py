"""Canonical text of forms: kernel form ``nest``, for chips that bring their own code generator.

A kernel is a header with the types of its buffers, and a loop nest, matrix products, an order or a check of an index.
`argosy_cinn.forms.parsing` reads it again; ``docs/DEVICES.md`` says what each line means. Nothing of how a form is cut
into chunks is in it: a sum over rows is one ``column`` line, without partial results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from argosy_cinn.forms.expressions import Expression, children, lookups
from argosy_cinn.forms.form import Form
from argosy_cinn.forms.index_check import RECORD, IndexCheckForm
from argosy_cinn.forms.indices import Atom, Index, Lookup, Quotient, Remainder, Variable
from argosy_cinn.forms.nest import LoopNest, Store
from argosy_cinn.forms.order import OrderForm
from argosy_cinn.forms.product import OperandMatrix, ProductForm


def print_form(form: Form) -> tuple[str, list[Any]]:
    """The lines of a form, and its buffers in the order of their numbers. Raises TypeError for kinds without text."""
    writer = _Writer()
    if isinstance(form, LoopNest):
        writer.nest(form)
    elif isinstance(form, ProductForm):
        for each in (form, *form.siblings):
            writer.product(each)
    elif isinstance(form, OrderForm):
        writer.order(form)
    elif isinstance(form, IndexCheckForm):
        names = " ".join([writer.buffer(x) for x in (form.first, form.value, RECORD)])
        writer.lines.append(f"check {names} site {form.site} count {form.count}")
    else:
        raise TypeError(f"forms of kind {form.kind!r} have no text")
    return "\n".join(writer.lines), list(writer.buffers)


def header(name: str, buffers: Sequence[Any]) -> str:
    """The first line of a kernel: its name and the types of its buffers."""
    return f"kernel {name} " + " ".join([_type(buffer) for buffer in buffers])


def _type(buffer: Any) -> str:
    dtype, shape = ("int64", (2,)) if buffer is RECORD else (buffer.dtype, buffer.shape)
    return f"{dtype}[{','.join(map(str, shape))}]"


def _variables(variables: Iterable[Variable]) -> str:
    return " ".join(f"i{v.number}:{v.extent}" for v in variables)


class _Writer:
    """Lines, and numbers of buffers and expressions by first use."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.buffers: dict[Any, int] = {}
        self.names: dict[Expression, str] = {}

    def buffer(self, buffer: Any) -> str:
        return f"b{self.buffers.setdefault(buffer, len(self.buffers))}"

    def nest(self, form: LoopNest) -> None:
        marks = [mark for mark in ("running", "update") if getattr(form, mark)]
        parts = ((name, getattr(form, name)) for name in ("outer", "sequential", "inner"))
        self.lines.append(" ".join(["nest", *(f"{name} {_variables(v)}".strip() for name, v in parts), *marks]))
        bodies = {r.result: (r.kind, r.body) for r in form.reductions}
        self._stores(form.stores, bodies)
        for c in form.columns:
            name = self.node(c.body, bodies)
            self.lines.append(f"column {c.dtype} {c.kind} {self.buffer(c.buffer)}[{self._index(c.index)}] = {name}")
        self.lines.append("end")

    def product(self, form: ProductForm) -> None:
        p, variables = form.product, form.epilogue.variables
        batch, rows, columns = _variables(variables[:-2]), _variables(variables[-2:-1]), _variables(variables[-1:])
        first = f"product batch {batch}".strip()
        types = f"{p.op.operand(0).dtype} {p.op.result.dtype}"
        self.lines.append(f"{first} rows {rows} columns {columns} depth {p.depth} types {types}")
        self._side("left", p.left, p.left_batch, p.left_row, p.left_depth)
        self._side("right", p.right, p.right_batch, p.right_column, p.right_depth)
        self._stores(form.stores, {})
        self.lines.append("end")

    def _side(self, name: str, side: OperandMatrix, batch: Sequence[int], step: int, depth: int) -> None:
        parts = [name, side.dtype, self.buffer(side.buffer), f"offset {side.offset}"]
        parts += [f"batch {' '.join(map(str, batch))}".strip(), f"step {step} depth {depth}"]
        if side.run:
            parts.append(f"run {side.run} jump {side.jump}")
        if side.function is not None:
            assert side.element is not None
            self._define(side.element, "element")
            result = self.node(side.function, {})
            parts.append(f"element {self.names[side.element]} computed {result}")
        if side.window is not None:
            w = side.window
            axes = [[(a.extent, a.stride, a.steps) for a in each] for each in (w.rows, w.columns)]
            parts.append("window " + json.dumps([*axes, w.bounds], separators=(",", ":")))
        self.lines.append(" ".join(parts))

    def order(self, form: OrderForm) -> None:
        keys, numbers = " ".join([self.buffer(k) for k in form.keys]), (form.outer, form.length, form.inner)
        shape = "outer {} length {} inner {}".format(*numbers)
        down = " descending" if form.descending else ""
        self.lines.append(f"order {keys} to {self.buffer(form.order)} {shape} first {form.first}{down}")

    def _stores(self, stores: Sequence[Store], bodies: dict[Expression, Any]) -> None:
        for s in stores:
            for atom in lookups(s.index):
                self.node(atom.expression, bodies)
            parts = [f"= {self.node(s.node, bodies)}"]
            parts += [f"combine {s.combine}"] if s.combine else []
            parts += [f"if {self.node(s.condition, bodies)}"] if s.condition is not None else []
            place = f"{self.buffer(s.buffer)}[{self._index(s.index)}]"
            self.lines.append(f"store {'row' if s.per_row else 'each'} {s.dtype} {place} {' '.join(parts)}")

    # -- expressions

    def node(self, node: Expression, bodies: dict[Expression, Any]) -> str:
        """The name of an expression, after the lines of what it is computed from."""
        if node in self.names:
            return self.names[node]
        if node.kind == "reduced":
            kind, body = bodies[node]
            return self._define(node, f"reduce {kind} {self.node(body, bodies)}")
        for child in children(node):
            self.node(child, bodies)
        return self._define(node, f"{node.kind}{self._payload(node)}")

    def _define(self, node: Expression, text: str) -> str:
        name = self.names[node] = f"%{len(self.names)}"
        self.lines.append(f"{name} = {node.dtype} {text}")
        return name

    def _payload(self, node: Expression) -> str:
        arguments = "".join([f" {self.names[a]}" for a in node.arguments])
        if node.kind == "constant":
            return f" 0x{node.payload.hex()}"
        if node.kind == "load":
            place = f" {self.buffer(node.payload[0])}[{self._index(node.payload[1])}]"
            return f"{place} if{arguments}" if arguments else place
        if node.kind in ("index", "within", "rng_bits"):
            index, *numbers = node.payload
            return "".join([f" [{self._index(index)}]", *(f" {n}" for n in numbers), arguments])
        return arguments

    def _index(self, index: Index) -> str:
        terms = [f"{c}*{self._atom(a)}" if c != 1 else self._atom(a) for a, c in index.terms]
        return " + ".join([*terms, *([str(index.constant)] if index.constant or not terms else [])])

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Lookup):
            return f"({self.names[atom.expression]} below {atom.extent})"
        if isinstance(atom, (Quotient, Remainder)):
            word = "div" if isinstance(atom, Quotient) else "mod"
            return f"({self._index(atom.index)} {word} {atom.divisor})"
        return str(atom)
