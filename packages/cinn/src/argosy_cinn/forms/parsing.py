"""The reader of forms' canonical text (see `argosy_cinn.forms.text`): kernels as forms over buffers of their own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from argosy_cinn.forms.expressions import Expression, Graph
from argosy_cinn.forms.form import Form
from argosy_cinn.forms.index_check import IndexCheckForm
from argosy_cinn.forms.indices import Atom, Index, Lookup, Quotient, Remainder, Variable
from argosy_cinn.forms.nest import ColumnReduction, LoopNest, Reduction, Store, partial_buffer
from argosy_cinn.forms.order import OrderForm
from argosy_cinn.forms.product import Axis, Epilogue, OperandMatrix, Product, ProductForm, Window
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value

#: Primitives that say their result's dtype by an attribute.
_CONVERSIONS = frozenset({"cast", "bitcast"})
_TOKENS = re.compile(r"%\d+|0x[0-9a-f]*|-?\d+|\w+|\S")


class ParsedKernel(NamedTuple):
    """A kernel of a text: its name, its buffers in the order of a launch's arguments, and what it computes."""

    name: str
    buffers: list[Value]
    form: Form


def parse_kernels(text: str) -> list[ParsedKernel]:
    """The kernels of a text. Raises ValueError with the kernel that is none."""
    return [_parse(each) for each in re.split(r"^(?=kernel )", text, flags=re.MULTILINE) if each.strip()]


def _parse(text: str) -> ParsedKernel:
    head, *lines = [line for line in text.splitlines() if line.strip()]
    try:
        return _Reader(head, iter(lines)).kernel()
    except (ValueError, LookupError, StopIteration) as error:
        raise ValueError(f"this is no kernel ({type(error).__name__}: {error}):\n{text[:1000]}") from error


class _Tokens:
    """The tokens of a line, one after the other."""

    def __init__(self, line: str) -> None:
        self.tokens: list[str] = _TOKENS.findall(line)
        self.place = 0

    def next(self) -> str:
        self.place += 1
        return self.tokens[self.place - 1]

    def number(self) -> int:
        return int(self.next())

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, word: str) -> bool:
        """Whether the next token is a word, which is passed then."""
        if self.peek() != word:
            return False
        self.place += 1
        return True

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                raise ValueError(f"{word!r} is expected before {self.peek()!r}")

    def numbers(self) -> tuple[int, ...]:
        """All numbers that follow."""
        found = []
        while re.fullmatch(r"-?\d+", self.peek()):
            found.append(self.number())
        return tuple(found)


class _Reader:
    """A kernel's lines."""

    def __init__(self, head: str, lines: Iterator[str]) -> None:
        self.lines, self.head = lines, _Tokens(head)
        self.values = Program("kernel")
        self.names: dict[str, Expression] = {}
        self.graph = Graph()
        self.stores: list[Store] = []
        self.columns: list[ColumnReduction] = []
        self.reductions: list[Reduction] = []
        self.kept = 0
        """The variables that results of reductions depend on."""

    def kernel(self) -> ParsedKernel:
        t = self.head
        t.expect("kernel")
        name = t.next()
        self.buffers = []
        while t.peek():
            dtype = t.next()
            t.expect("[")
            shape = []
            while not t.take("]"):
                shape.append(t.number())
                t.take(",")
            self.buffers.append(self._value(tuple(shape), dtype))
        line = _Tokens(next(self.lines))
        return ParsedKernel(name, self.buffers, _FORMS[line.next()](self, line))

    def _value(self, shape: tuple[int, ...], dtype: str) -> Value:
        return self.values.add_input(TensorType(shape, dtype))

    def _buffer(self, t: _Tokens) -> Value:
        return self.buffers[int(t.next()[1:])]

    def _variables(self, t: _Tokens) -> list[Variable]:
        found = []
        while re.fullmatch(r"i\d+", t.peek()):
            number = int(t.next()[1:])
            t.expect(":")
            self.variables[number] = variable = Variable(number, t.number())
            found.append(variable)
        return found

    # -- kinds

    def nest(self, t: _Tokens) -> Form:
        self.variables: dict[int, Variable] = {}
        parts = []
        for word in ("outer", "sequential", "inner"):
            t.expect(word)
            parts.append(self._variables(t))
        outer, sequential, inner = parts
        running, update = t.take("running"), t.take("update")
        kept = [*outer, *(inner if sequential else ()), *(sequential if running else ())]
        self.kept = sum(v.variables for v in kept)
        self._body()
        return LoopNest(
            self.graph, outer, inner, self.reductions, self.stores, self.columns, sequential, running, update
        )

    def product(self, t: _Tokens) -> Form:
        form = self._product(t)
        for line in self.lines:
            form.siblings.append(self._product(_Tokens(line.removeprefix("product"))))
        return form

    def _product(self, t: _Tokens) -> ProductForm:
        self.variables, self.stores, self.names = {}, [], {}
        axes = []
        for word in ("batch", "rows", "columns"):
            t.expect(word)
            axes.append(self._variables(t))
        batch, (rows,), (columns,) = axes
        t.expect("depth")
        depth = t.number()
        t.expect("types")
        source, result = t.next(), t.next()
        outer = tuple(v.extent for v in batch)
        left, right = self._side("left"), self._side("right")
        self.graph = Graph()
        self._body()
        cell = next(node for node in self.names.values() if node.kind == "cell")
        cell.variables = sum(v.variables for v in self.variables.values())
        op = self._dot(outer, rows.extent, columns.extent, depth, source, result)
        product = Product(
            op, left, right, outer, left.batch, right.batch, rows.extent, columns.extent, depth,
            left.free[0], right.free[0], left.depth, right.depth,
        )  # fmt: skip
        return ProductForm(product, Epilogue(self.graph, [*batch, rows, columns], cell, self.stores))

    def _dot(self, outer: tuple[int, ...], rows: int, columns: int, depth: int, source: str, result: str) -> Operation:
        """An operation of a product's sizes and dtypes."""
        batch, n = tuple(range(len(outer))), len(outer)
        operands = self._value((*outer, rows, depth), source), self._value((*outer, depth, columns), source)
        attributes = {"lhs_batch": batch, "rhs_batch": batch, "lhs_contract": (n + 1,), "rhs_contract": (n,)}
        types = (TensorType((*outer, rows, columns), result),)
        return Operation("prim.dot_general", operands, types, attributes)

    def _side(self, name: str) -> OperandMatrix:
        self.graph = Graph()
        line = self._nodes()
        text, _, window = line.partition(" window ")
        t = _Tokens(text)
        t.expect(name)
        t.next()
        buffer = self._buffer(t)
        t.expect("offset")
        offset = t.number()
        t.expect("batch")
        batch = t.numbers()
        t.expect("step")
        step = t.number()
        t.expect("depth")
        found = OperandMatrix(buffer, offset, batch, (step,), t.number())
        if t.take("run"):
            found.run = t.number()
            t.expect("jump")
            found.jump = t.number()
        if t.take("element"):
            found.element = self.names[t.next()]
            t.expect("computed")
            found.function = self.names[t.next()]
        if window:
            rows, columns, bounds = json.loads(window)
            axes = [tuple([Axis(n, stride, tuple(steps)) for n, stride, steps in each]) for each in (rows, columns)]
            found.window = Window(axes[0], axes[1], tuple([(first, size) for first, size in bounds]))
        return found

    def order(self, t: _Tokens) -> Form:
        keys = []
        while not t.take("to"):
            keys.append(self._buffer(t))
        order, numbers = self._buffer(t), []
        for word in ("outer", "length", "inner", "first"):
            t.expect(word)
            numbers.append(t.number())
        outer, length, inner, first = numbers
        return OrderForm(keys, order, outer, length, inner, t.take("descending"), first)

    def check(self, t: _Tokens) -> Form:
        first, value, _ = (self._buffer(t) for _ in range(3))
        t.expect("site")
        site = t.number()
        t.expect("count")
        return IndexCheckForm(first, value, t.number(), site)

    # -- lines

    def _nodes(self) -> str:
        """Read expressions; the first line that is none."""
        while (line := next(self.lines)).startswith("%"):
            t = _Tokens(line)
            name = t.next()
            t.expect("=")
            self.names[name] = self._node(t)
        return line

    def _body(self) -> None:
        """Expressions, stores and column reductions, up to the end."""
        while (line := self._nodes()) != "end":
            t = _Tokens(line)
            what, first, second = t.next(), t.next(), t.next()
            buffer, index = self._buffer(t), self._place(t)
            t.expect("=")
            node = self.names[t.next()]
            if what == "column":
                self.columns.append(ColumnReduction(buffer, partial_buffer(buffer), second, first, node, index))
                continue
            store = Store(buffer, index, node, second, first == "row")
            store.combine = t.next() if t.take("combine") else ""
            store.condition = self.names[t.next()] if t.take("if") else None
            self.stores.append(store)

    def _node(self, t: _Tokens) -> Expression:
        dtype, kind = t.next(), t.next()
        special = _NODES.get(kind)
        if special is not None:
            return special(self, t, dtype)
        payload: Any = (("dtype", dtype),) if kind in _CONVERSIONS else ()
        return self.graph.node(kind, dtype, self._arguments(t), payload)

    def _arguments(self, t: _Tokens) -> list[Expression]:
        found = []
        while t.peek():
            found.append(self.names[t.next()])
        return found

    def _load(self, t: _Tokens, dtype: str) -> Expression:
        buffer, index = self._buffer(t), self._place(t)
        t.take("if")
        return self.graph.load(buffer, index, dtype, self._arguments(t))

    def _constant(self, t: _Tokens, dtype: str) -> Expression:
        return self.graph.node("constant", dtype, (), bytes.fromhex(t.next()[2:]))

    def _within(self, t: _Tokens, dtype: str) -> Expression:
        found = self.graph.bounds_check(self._place(t), t.number(), t.number())
        if found is None:
            raise ValueError("the index is always within these bounds")
        return found

    def _random(self, t: _Tokens, dtype: str) -> Expression:
        index, counter = self._place(t), t.number()
        seed, offset = self._arguments(t)
        return self.graph.random(index, counter, seed, offset)

    def _reduce(self, t: _Tokens, dtype: str) -> Expression:
        kind, body = t.next(), self.names[t.next()]
        made = self.graph.reduction_result(len(self.reductions), dtype, self.kept, body.level + 1)
        self.reductions.append(Reduction(kind, dtype, body, made))
        return made

    # -- indices

    def _place(self, t: _Tokens) -> Index:
        t.expect("[")
        found = self._index(t)
        t.expect("]")
        return found

    def _index(self, t: _Tokens) -> Index:
        terms: list[tuple[Atom, int]] = []
        constant = 0
        while True:
            if re.fullmatch(r"-?\d+", t.peek()):
                number = t.number()
                if t.take("*"):
                    terms.append((self._atom(t), number))
                else:
                    constant = number
            else:
                terms.append((self._atom(t), 1))
            if not t.take("+"):
                return Index(terms, constant)

    def _atom(self, t: _Tokens) -> Atom:
        if not t.take("("):
            return self.variables[int(t.next()[1:])]
        if t.peek().startswith("%"):
            expression = self.names[t.next()]
            t.expect("below")
            found: Atom = Lookup(expression, t.number())
        else:
            index, word = self._index(t), t.next()
            found = {"div": Quotient, "mod": Remainder}[word](index, t.number())
        t.expect(")")
        return found


_FORMS: dict[str, Callable[[_Reader, _Tokens], Form]] = {
    "nest": _Reader.nest, "product": _Reader.product, "order": _Reader.order, "check": _Reader.check,
}  # fmt: skip
_NODES: dict[str, Callable[[_Reader, _Tokens, str], Expression]] = {
    "load": _Reader._load, "constant": _Reader._constant, "within": _Reader._within, "rng_bits": _Reader._random,
    "reduce": _Reader._reduce, "index": lambda self, t, dtype: self.graph.index(self._place(t), dtype),
    "cell": lambda self, t, dtype: self.graph.node("cell", dtype, (), ()),
    "element": lambda self, t, dtype: self.graph.node("element", dtype, (), ()),
}  # fmt: skip
