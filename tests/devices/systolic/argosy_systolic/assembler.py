"""From the text of forms to instructions: lists whose first item is the operation.

Each instruction makes one register, which later ones name by its number. ``GRID`` says over which extents the vector
unit runs from there on; a register has size 1 along axes that it does not depend on. ``MATMUL`` is the matrix unit's.
"""

import json

from argosy_cinn.forms.indices import Lookup, Quotient, Variable
from argosy_cinn.forms.parsing import parse_kernels
from argosy_hwadapt.errors import KernelBuildError, UnsupportedOperation
from argosy_systolic.vector_unit import OPERATIONS


def assemble(source):
    """The kernels of a text by name, as bytes. Raises UnsupportedOperation for what the units cannot do."""
    try:
        kernels = parse_kernels(source.decode())
    except ValueError as error:
        raise KernelBuildError("systolic: the source is no text of forms", str(error)) from error
    return json.dumps({kernel.name: _Assembler(kernel).code for kernel in kernels}).encode()


class _Assembler:
    def __init__(self, kernel):
        self.code, self.registers, self.axes = [], {}, {}
        self.buffers = {buffer: i for i, buffer in enumerate(kernel.buffers)}
        kind = kernel.form.kind
        if kind not in ("nest", "product", "index check"):
            raise UnsupportedOperation(f"systolic: it has no instructions for kernels of kind {kind!r}")
        getattr(self, kind.replace(" ", "_"))(kernel.form)

    def emit(self, *word):
        self.code.append(word)
        return len(self.code) - 1

    def grid(self, variables):
        self.emit("GRID", [v.extent for v in variables])
        self.axes = {v.number: i for i, v in enumerate(variables)}
        self.registers = {}

    def nest(self, form):
        self.grid(form.variables)
        own = form.sequential or form.inner
        self.reduced = {r.result: r for r in form.reductions}, [self.axes[v.number] for v in own], form.running
        self.stores(form.stores)
        for c in form.columns:
            total = self.emit("REDUCE", c.dtype, c.kind, self.value(c.body), list(range(len(form.outer))), False)
            self.emit("STORE", c.dtype, self.buffers[c.buffer], self.index(c.index), total, "", None)

    def stores(self, stores):
        for s in [
            (s, self.index(s.index), self.value(s.node), s.condition and self.value(s.condition)) for s in stores
        ]:
            self.emit("STORE", s[0].dtype, self.buffers[s[0].buffer], s[1], s[2], s[0].combine, s[3])

    def index_check(self, form):
        self.emit("CHECK", form.site, form.count)

    def product(self, form):
        p, source = form.product, form.product.op.operand(0).dtype
        compute = source if source.startswith("float") else p.op.result.dtype
        for each in (form, *form.siblings):
            *batch, row, column = each.epilogue.variables
            depth = Variable(max(v.number for v in each.epilogue.variables) + 1, p.depth)
            sides = [self.operand(p.left, p.left_batch, [*batch, row, depth], source, compute)]
            sides.append(self.operand(each.product.right, p.right_batch, [*batch, column, depth], source, compute))
            cell = self.emit("MATMUL", compute, *sides)
            self.grid(each.epilogue.variables)
            self.registers[each.epilogue.cell] = self.emit("ALU", "cast", p.op.result.dtype, [cell])
            self.stores(each.stores)

    def operand(self, side, steps, variables, source, compute):
        """An operand as a matrix [batch..., free, depth], which the vector unit gathers."""
        self.grid(variables)
        *batch, free, depth = [self.variable(v) for v in variables]
        terms, guards = [list(pair) for pair in zip(steps, batch, strict=True)], []
        if side.window is not None:
            first, second = (free, depth) if variables[-2].number < 0 else (depth, free)
            axes = [*self.split(first, side.window.rows), *self.split(second, side.window.columns)]
            terms += [[axis.stride, register] for axis, register in axes]
            for i, (start, size) in enumerate(side.window.bounds):
                along = [[axis.steps[i], register] for axis, register in axes if axis.steps]
                guards.append(self.emit("WITHIN", self.emit("AFFINE", start, along), 0, size))
        elif side.run:
            inner = [self.emit(what, depth, side.run) for what in ("DIV", "MOD")]
            terms += [[side.free[0], free], [side.jump, inner[0]], [side.depth, inner[1]]]
        else:
            terms += [[side.free[0], free], [side.depth, depth]]
        place = self.emit("AFFINE", side.offset, terms)
        read = self.emit("LOAD", side.dtype, self.buffers[side.buffer], place, guards)
        if side.function is not None:
            self.registers[side.element] = read
            read = self.emit("ALU", "cast", source, [self.value(side.function)])
        return self.emit("ALU", "cast", compute, [read])

    def split(self, register, axes):
        found = []
        for axis in reversed(axes):
            found.append((axis, self.emit("MOD", register, axis.extent)))
            register = self.emit("DIV", register, axis.extent)
        return found

    def value(self, node):
        """The register of an expression."""
        if node not in self.registers:
            self.registers[node] = self.compute(node)
        return self.registers[node]

    def compute(self, node):
        if node.kind == "constant":
            return self.emit("CONST", node.dtype, node.payload.hex())
        if node.kind == "load":
            buffer, index = node.payload
            guards = [self.value(a) for a in node.arguments]
            return self.emit("LOAD", node.dtype, self.buffers[buffer], self.index(index), guards)
        if node.kind == "reduced":
            bodies, axes, running = self.reduced
            return self.emit("REDUCE", node.dtype, bodies[node].kind, self.value(bodies[node].body), axes, running)
        arguments = [self.value(a) for a in node.arguments]
        if node.kind == "index":
            return self.emit("ALU", "cast", node.dtype, [self.index(node.payload[0])])
        if node.kind == "within":
            return self.emit("WITHIN", self.index(node.payload[0]), *node.payload[1:])
        if node.kind == "rng_bits":
            return self.emit("PHILOX", self.index(node.payload[0]), node.payload[1], *arguments)
        if node.kind not in OPERATIONS:
            raise UnsupportedOperation(f"systolic: the vector unit has no {node.kind}")
        return self.emit("ALU", node.kind, node.dtype, arguments)

    def index(self, index):
        return self.emit("AFFINE", index.constant, [[c, self.atom(a)] for a, c in index.terms])

    def atom(self, atom):
        if isinstance(atom, Variable):
            return self.variable(atom)
        if isinstance(atom, Lookup):
            return self.emit("CLIP", self.value(atom.expression), atom.extent)
        return self.emit("DIV" if isinstance(atom, Quotient) else "MOD", self.index(atom.index), atom.divisor)

    def variable(self, variable):
        return self.emit("IOTA", self.axes[variable.number])
