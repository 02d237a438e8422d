"""The code of product forms: their matrices, prologues and epilogue as a problem of `contraction`, and its variants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from argosy_cinn.contraction import Cells, Contraction, Matrix, emit, grid
from argosy_cinn.contraction.blocking import Blocking, choose
from argosy_cinn.contraction.packing import convert_element
from argosy_cinn.contraction.problem import Prologue
from argosy_cinn.contraction.skinny_blocking import MOST, plan_skinny, takes_all_rows
from argosy_cinn.contraction.winograd.blocking import plan_winograd
from argosy_cinn.contraction.winograd.weights import plan_winograd_weights
from argosy_cinn.emitter import Emitter
from argosy_cinn.forms.dtypes import FLOATS, NARROW, UNSIGNED
from argosy_cinn.forms.product import Epilogue, OperandMatrix, Product, ProductForm
from argosy_cinn.loops import elementwise
from argosy_cinn.loops.bytewise import numbers_of_bytes
from argosy_cinn.loops.nest import PARAMETERS, Pointers
from argosy_cinn.loops.vectorize import Evaluator
from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import BFLOAT, FLOAT, I8, LLVM_TYPES, PTR, VOID, Index, Value, bytes_of, lanes_of
from argosy_cinn.shapes import Size, ceil_div
from argosy_cinn.target import Target
from argosy_pir.dims import SymExpr

#: Rows for which copying the right operand does not pay.
_FEW_ROWS = 64
#: Code of products that read the right operand where it lies: the most rows that it takes together, and up to how many
#: there may be.
_TOGETHER = {"one": (1, 1), "two": (2, 2), "four": (4, 4), "eight": (8, 32)}
#: Bytes that a cache has lost before an epilogue reads them.
_LEAST_TOUCHED = 1 << 20


def emit_product(module: Module, name: str, form: ProductForm, slots: Mapping[Any, int]) -> None:
    """Define the kernel function ``name``; where the number of rows is known at run time, one for each variant."""
    product = form.product

    def emit_variant(name: str, what: str) -> None:
        with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
            table, chunk, chunks = b.arguments
            b.sizes_from(table, len(slots))
            pointers = Pointers(b, table, slots)
            whole = problem_of(b, product, form.epilogue, pointers)
            whole.siblings = tuple(problem_of(b, s.product, s.epilogue, pointers) for s in form.siblings)
            problem, blocking = variant(b, whole, what)
            emit(b, problem, chunk, chunks, blocking)

    if not _has_variants(product.rows, product.columns, product.depth, product.batch):
        emit_variant(name, "any")
        return
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
        b.sizes_from(b.arguments[0], len(slots))
        problem = problem_of(b, product, form.epilogue, None)

        def call(what: str) -> list[Value]:
            b.call(f"{name}.{what}", VOID, *b.arguments)
            return []

        variants = variants_of(b, problem)
        choose_variant(b, problem, variants, call)
    for what in variants:
        emit_variant(f"{name}.{what}", what)


def product_grid(form: ProductForm, b: Function) -> Index:
    """In how many chunks a product runs."""
    problem = problem_of(b, form.product, None, None)
    variants = variants_of(b, problem)
    return choose_variant(b, problem, variants, lambda what: [b.index(grid(b, *variant(b, problem, what)))])[0]


def product_summary(form: ProductForm, target: Target) -> str:
    """A line for `argosy_cinn.explain`."""
    return form.summary(" by minimal filtering" if filters_minimally(form.product, target) else "")


EMITTER = Emitter(emit_product, lambda form, target: 0, product_grid, product_summary)
"""For `argosy_cinn.kinds`."""


def filters_minimally(product: Product, target: Target) -> bool:
    """Whether a product is a convolution that minimal filtering computes."""
    if not product.minimal:
        return False
    problem = problem_of(Instructions(), product, None, None)
    return plan_winograd(problem, target) is not None or plan_winograd_weights(problem, target) is not None


class _Sizes(Instructions):
    """Sizes stay formulas: what is looked at, and not emitted."""

    def size(self, formula: SymExpr) -> Any:
        return formula


def passes_over_right(product: Product, target: Target) -> Size:
    """How many times a product reads its right operand from beyond the second-level cache: once, or for each few rows
    that it takes together, where what a chunk reads of it does not stay there."""
    problem = problem_of(_Sizes(), product, None, None)
    few = isinstance(problem.m, int) and problem.m <= MOST
    if few or problem.batch or not isinstance(problem.k, int) or not takes_all_rows(problem, target):
        return 1
    together = min(_TOGETHER["eight"][0], _row_limit(target))
    plan = plan_skinny(replace(problem, together=together), target)
    if plan is None or plan.block * problem.k * bytes_of(problem.b.element) <= target.l2_bytes:
        return 1
    return ceil_div(product.rows, together)


def problem_of(b: Instructions, product: Product, epilogue: Epilogue | None, pointers: Any) -> Contraction:
    """The product in a kernel, or, without ``pointers``, as far as its grid depends on it."""
    source, result = product.op.operand(0).dtype, product.op.result.dtype
    compute = source if source in FLOATS else result

    def matrix(side: Any, row: int, column: int, batch: tuple[int, ...]) -> Matrix:
        row, column, steps = b.number(row), b.number(column), tuple(map(b.number, batch))
        dtype = side.dtype
        element, unsigned = LLVM_TYPES[dtype], dtype in UNSIGNED
        start = Value(PTR, "null") if pointers is None else b.gep(pointers(side.buffer), side.offset, element)
        numbers, prologue = None, None
        if side.function is not None:
            numbers = numbers_of_bytes(side.function, side.element)
            prologue = _prologue(side, elementwise.REGISTER[compute], source, numbers)
        jump = b.number(product.jump(side, column if side is product.left else row))
        return Matrix(start, row, column, element, steps, prologue, unsigned, jump, side.window, numbers)

    left = matrix(product.left, product.left_row, product.left_depth, product.left_batch)
    right = matrix(product.right, product.right_depth, product.right_column, product.right_batch)
    scales, offsets = (
        None if of is None else matrix(of, of.depth, of.free[0], ()) for of in (product.scales, product.offsets)
    )
    return Contraction(
        b.number(product.rows), b.number(product.columns), b.number(product.depth), left, right,
        lambda b, cells: _epilogue(b, cells, product, epilogue, pointers),
        tuple(map(b.number, product.batch)), elementwise.REGISTER[compute], narrow=source == "bfloat16",
        touched=() if epilogue is None or pointers is None else _cold_reads(b, epilogue, pointers),
        run=product.run, scales=scales, offsets=offsets, group=product.group, minimal=product.minimal,
        location=str(product.op.location),
    )  # fmt: skip


def _cold_reads(b: Instructions, epilogue: Epilogue, pointers: Any) -> tuple[Matrix, ...]:
    """What an epilogue reads from memory that is no longer in the caches by then: matrices of the result's shape, such
    as moments that a gradient updates."""
    *batch, row, column = epilogue.variables
    found: dict[Any, Matrix] = {}
    for node in epilogue.graph.order:
        if node.kind != "load" or node.arguments or node.dtype not in FLOATS:
            continue
        buffer, index = node.payload
        steps = {atom: step for atom, step in index.terms if isinstance(step, int)}
        plain = steps.keys() <= set(epilogue.variables) and len(steps) == len(index.terms)
        size, element = _cells(epilogue.variables, steps), LLVM_TYPES[node.dtype]
        if plain and steps.get(column) == 1 and size is not None and size * bytes_of(element) >= _LEAST_TOUCHED:
            start = b.gep(pointers(buffer), index.constant, element)
            strides = tuple(steps.get(v, 0) for v in batch)
            found[buffer, index] = Matrix(start, steps.get(row, 0), 1, element, strides)
    return tuple(found.values())


def _cells(variables: Sequence[Any], steps: Mapping[Any, int]) -> int | None:
    """How many elements are read with these steps; None where that is not known."""
    extents = [v.extent for v in variables if steps.get(v)]
    return prod(extents) if all(isinstance(n, int) for n in extents) else None


def _prologue(side: OperandMatrix, compute: str, dtype: str, numbers: tuple[float, ...] | None) -> Prologue:
    """What is computed from each element of an operand as it is read; ``numbers``: of each byte, where it is one. A
    conversion that changes none of them rounds nothing, and is left out."""
    assert side.function is not None
    assert side.element is not None
    function, element = side.function, side.element
    if numbers is not None and function.kind == "cast" and function.dtype in NARROW:
        (argument,) = function.arguments
        if numbers_of_bytes(argument, element) == numbers:
            function, dtype = argument, argument.dtype
    lane = (element.variables & -element.variables).bit_length() - 1

    def code(b: Function, cells: Cells) -> Value:
        (value,) = cells.values
        inside = Evaluator(b, _no_buffers, {}, lane, lanes_of(value.type))
        inside.known[element.number] = elementwise.load_element(b, value, element.dtype)
        return convert_element(b, inside.full_vector(function), compute, dtype in UNSIGNED)

    return code


def _no_buffers(buffer: Any) -> Value:
    raise RuntimeError(f"an operand of a product reads {buffer} besides its own element")


def _has_variants(rows: Any, columns: Any, depth: Any, batch: Any) -> bool:
    """Whether a product's number of rows is known at run time, and a batch of them is one of weights."""
    return not isinstance(rows, int) and (not batch or (isinstance(columns, int) and isinstance(depth, int)))


def variants_of(b: Function, problem: Contraction) -> list[str]:
    """What code a product has: one whose number of rows is known at run time has some of its own for one row, and for
    few rows, which read the right operand where it lies. Each is a function: together they would be worse code."""
    if not _has_variants(problem.m, problem.n, problem.k, problem.batch):
        return ["any"]
    is_weight = isinstance(problem.n, int) and isinstance(problem.k, int)  # else B has open sizes as A has
    target = b.module.target
    few = _few_variants(problem, target)
    if takes_all_rows(problem, target):
        return few
    skinny = plan_skinny(replace(problem, m=1), target) is not None
    if not choose(replace(problem, m=_FEW_ROWS), target).packs_b:
        return ["one", "few", "any"] if skinny else ["few", "any"]
    return [*(few if is_weight else few[:1]), "any"] if skinny else ["any"]


def _few_variants(problem: Contraction, target: Target) -> list[str]:
    """The distinct ones that read B where it lies. Two rows take no longer by the code of four, unless those are
    bytes, which are read in less time than four rows are multiplied."""
    most = _row_limit(target)
    narrow = [kind for kind, (rows, _) in _TOGETHER.items() if rows < most and (rows != 2 or problem.b.element == I8)]
    return [*narrow, "eight"]


def _row_limit(target: Target) -> int:
    """Rows whose sums registers hold: of three wide rows, or of one that serves two products."""
    return target.registers // 4


def variant(b: Function, problem: Contraction, kind: str) -> tuple[Contraction, Blocking | None]:
    """The product and the blocking of a variant (None: the one that its sizes choose)."""
    many = not isinstance(problem.m, int) or problem.m > MOST
    if kind == "any" and many and takes_all_rows(problem, b.module.target):
        kind = "eight"
    if kind == "one":
        return _replace_all(problem, m=1), None
    if kind in _TOGETHER:
        return _replace_all(problem, together=min(_TOGETHER[kind][0], _row_limit(b.module.target))), None
    return problem, choose(replace(problem, m=_FEW_ROWS), b.module.target) if kind == "few" else None


def choose_variant(
    b: Function, problem: Contraction, kinds: Sequence[str], build: Callable[[str], list[Value]]
) -> list[Value]:
    """What ``build`` gives for the first variant that suits the number of rows."""
    kind, *rest = kinds
    if not rest:
        return build(kind)
    most = _TOGETHER[kind][1] if kind in _TOGETHER else _FEW_ROWS
    suits = b.icmp("sle", problem.m, most)
    return b.either(suits, lambda: build(kind), lambda: choose_variant(b, problem, rest, build))


def _replace_all(problem: Contraction, **changes: Any) -> Contraction:
    """The product and its siblings with other fields."""
    return replace(problem, **changes, siblings=tuple(replace(one, **changes) for one in problem.siblings))


def _epilogue(b: Function, cells: Cells, product: Product, epilogue: Epilogue | None, pointers: Any) -> None:
    """Evaluate the epilogue's expressions for some cells of one row (or column) of the product."""
    assert epilogue is not None
    *batch, row, column = epilogue.variables
    lane, other = (column, row) if cells.axis == 1 else (row, column)
    start = cells.column if cells.axis == 1 else cells.row
    steady = {v.number: i for v, i in zip(batch, cells.batch, strict=True)}
    steady[other.number] = cells.row if cells.axis == 1 else cells.column
    roots = [s.node for s in epilogue.stores]
    scope = Evaluator(b, pointers, steady)
    scope.prepare(roots, lane.variables, 0)
    for v, (value, mask) in enumerate(zip(cells.values, cells.masks, strict=True)):
        lanes = lanes_of(value.type)
        variables = {**steady, lane.number: b.add(start, v * lanes)}
        inside = Evaluator(b, pointers, variables, lane.number, lanes, mask, scope)
        inside.known[epilogue.cell.number] = _round_sum(b, value, product.op.result.dtype, cells.flushed)
        inside.store_all(epilogue.stores)


def _round_sum(b: Function, value: Value, dtype: str, flushed: bool) -> Value:
    """A sum of a product in its dtype. The machine's rounding to bfloat16 is exact but for denormal numbers."""
    if dtype == "bfloat16" and flushed:
        return b.widen_float(b.convert("fptrunc", value, BFLOAT), FLOAT)
    return elementwise.round_to(b, value, dtype) if dtype in NARROW else value
