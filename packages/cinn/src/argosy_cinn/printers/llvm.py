"""A builder of LLVM IR text: modules, functions and structured control flow.

    module = Module(Target.host())
    with module.function("double", [("ptr", "x"), ("i64", "n")]) as b:
        x, n = b.arguments
        with b.loop(0, n, 16) as loop:
            mask = b.tail_mask(b.sub(n, loop.index), 16)
            place = b.gep(x, loop.index)
            value = b.masked_load("<16 x float>", place, mask)
            b.masked_store(b.fadd(value, value), place, mask)
    text = module.text()

- `Module.function` opens a function (internal unless ``export=True``, the default); its body ends with ``ret
  void`` unless `Function.ret` was called. `Module.once` builds a shared helper the first time its key is
  asked for.
- `Function.loop` counts an ``i64`` up and carries values: read ``loop.carry``, call ``loop.yield_values(*values)`` at
  the end of the body, read ``loop.results`` after it.
- `Function.repeat` runs a body as long as a condition holds.
- `Function.when` guards a region; `Function.either` chooses between two that yield values.
- Instructions are in `printers.instructions`, types and constants in `printers.types`.

Text is several times faster to build and parse than objects of ``llvmlite.ir``, and it is what one reads when
debugging. Names are unique per function and module; there is no global state, so equal programs give equal
text (the cache key).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from re import findall

from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import I64, PTR, VOID, Index, Value, constant
from argosy_cinn.target import Target
from argosy_pir.dims import Atom, SymExpr

__all__ = ["Function", "Loop", "Module"]


class Loop:
    """A loop being built: ``index`` (i64), ``carry`` (values at the top of an iteration), ``results`` (after
    the loop).
    """

    __slots__ = ("_next", "carry", "index", "results")

    def __init__(self, index: Value, carry: list[Value]) -> None:
        self.index = index
        self.carry = carry
        self.results = carry
        self._next: tuple[Value, ...] | None = None

    def yield_values(self, *values: Value) -> None:
        """The carried values of the next iteration, in the order of ``carry``."""
        self._next = values

    def next_values(self) -> tuple[Value, ...]:
        """What `next` was given; refuses a loop that forgot to update its carried values."""
        values = self._next if self._next is not None else ()
        if [v.type for v in values] != [v.type for v in self.carry]:
            raise ValueError(f"loop carries {self.carry} but its body gave next values {list(values)}")
        return values


class Function(Instructions):
    """A function being built. ``arguments`` are its parameters as values; ``label`` is the current basic
    block.
    """

    def __init__(
        self, module: Module, name: str, parameters: Sequence[tuple[str, str]], result: str, linkage: str, rest: str
    ) -> None:
        self.module = module
        self.function_name = name
        self.arguments = [Value(type.split(" ")[0], f"%{hint}") for type, hint in parameters]
        self.result = result
        self.linkage, self._rest = linkage, rest
        self._signature = ", ".join(f"{type} %{hint}" for type, hint in parameters)
        self._types = ", ".join(type for type, _ in parameters)
        self._lines: list[str] = []
        self._entry_allocas: list[str] = []
        self._next = 0
        self._terminated = False
        self.label = "entry"
        self._dims: Value | None = None
        self._sizes: dict[SymExpr, Value] = {}
        self._widened: dict[str, Value] = {}
        self._sources: dict[str, Value] = {}

    # -- sizes known at run time

    def sizes_from(self, pointer: Value, slot: int | None = None) -> None:
        """Take the program's sizes from a table of ``i64``: ``pointer``, or entry ``slot`` of a table of addresses.
        Their order is `Module.symbols`."""
        if self.module.symbols:
            self._dims = pointer if slot is None else self._at_entry(lambda: self._entry_of(pointer, slot))

    @property
    def dims(self) -> Value:
        """The table of sizes known at run time; null where there are none."""
        return self._dims if self._dims is not None else Value(PTR, "null")

    def _entry_of(self, table: Value, slot: int) -> Value:
        return self.load(PTR, self.gep(table, slot, PTR))

    def _at_entry(self, build: Callable[[], Value]) -> Value:
        """Emit into the entry block, which every block comes after."""
        lines, self._lines = self._lines, self._entry_allocas
        try:
            return build()
        finally:
            self._lines = lines

    def size(self, formula: SymExpr) -> Value:
        """A size that is known at run time, computed once at the function's start."""
        found = self._sizes.get(formula)
        if found is None:
            found = self._sizes[formula] = self._at_entry(lambda: self.index(self._sum(formula)))
        return found

    def _sum(self, formula: SymExpr) -> Index:
        total: Index = 0
        for monomial, coefficient in formula.terms:
            product: Index = coefficient
            for atom in monomial:
                product = self.mul(product, self._factor(atom))
            total = self.add(total, product)
        return total

    def _factor(self, atom: Atom) -> Index:
        if atom.kind == "symbol":
            if self._dims is None or atom.text not in self.module.symbols:
                raise ValueError(f"function {self.function_name} is not given the size {atom.text}")
            return self.load(I64, self.gep(self._dims, self.module.symbols[atom.text], I64))
        rounded = {"floordiv": self._quotient, "mod": self._remainder}
        combine = (rounded | {"min": self.minimum, "max": self.maximum})[atom.kind]
        first, *others = atom.arguments
        for other in others:
            first = combine(first, other)
        return self.number(first) if not isinstance(first, int) else first

    def _quotient(self, x: Index, y: Index) -> Index:
        """``x // y`` of a formula, rounded towards minus infinity: parts of formulas may be negative."""
        x, y = self.index(x), self.index(y)
        quotient = self.binary("sdiv", x, y)
        rest = self.binary("srem", x, y)
        apart = self.icmp("slt", self.binary("xor", rest, y), 0)
        below = self.binary("and", self.icmp("ne", rest, 0), apart)
        return self.binary("add", quotient, self.convert("sext", below, I64))

    def _remainder(self, x: Index, y: Index) -> Index:
        """``x % y`` of a formula, with the sign of ``y``."""
        return self.sub(x, self.mul(self._quotient(x, y), y))

    # -- blocks

    def start(self, label: str) -> None:
        """Begin a basic block."""
        self._lines.append(label + ":")
        self.label = label
        self._terminated = False

    def jump(self, label: str) -> None:
        """End the block with an unconditional branch."""
        self.emit(f"br label %{label}")
        self._terminated = True

    def branch(self, condition: Value, then: str, otherwise: str) -> None:
        """End the block with a conditional branch."""
        self.emit(f"br {condition}, label %{then}, label %{otherwise}")
        self._terminated = True

    def ret(self, value: Value | None = None) -> None:
        """Return; ends the block."""
        self.emit("ret void" if value is None else f"ret {value}")
        self._terminated = True

    def phi(self, choices: Sequence[tuple[Value, str]]) -> Value:
        """The value that came along: ``(value, label of the block it comes from)`` for every way here."""
        type = choices[0][0].type
        ways = ", ".join(f"[{value.name}, %{label}]" for value, label in choices)
        return self.op(type, f"phi {type} {ways}")

    def constant_table(self, name: str, element: str, values: Sequence[int]) -> Value:
        """See :class:`Instructions`."""
        return self.module.shared_array(name, element, values)

    @contextmanager
    def loop(self, start: Index, stop: Index, step: Index = 1, carry: Sequence[Value] = ()) -> Iterator[Loop]:
        """``for (i = start; i < stop; i += step)`` over signed 64-bit integers, with carried values."""
        key = self.name("L")
        head, body, done, before = f"{key}.head", f"{key}.body", f"{key}.done", self.label
        loop = Loop(Value(I64, f"%{key}.i"), [Value(v.type, f"%{key}.c{j}") for j, v in enumerate(carry)])
        self.jump(head)
        self.start(head)
        slot = len(self._lines)
        self._lines.append("")
        self.branch(self.icmp("slt", loop.index, stop), body, done)
        self.start(body)
        yield loop
        following = self.op(I64, f"add nsw {loop.index}, {self.index(step).name}")
        latch = self.label
        self.jump(head)
        ways = [
            (loop.index, self.index(start), following),
            *zip(loop.carry, carry, loop.next_values(), strict=True),
        ]
        self._lines[slot] = "\n".join(
            f"  {phi.name} = phi {phi.type} [{first.name}, %{before}], [{later.name}, %{latch}]"
            for phi, first, later in ways
        )
        self.start(done)

    @contextmanager
    def if_then(self, condition: Value) -> Iterator[None]:
        """Run the body only where the scalar condition holds."""
        key = self.name("W")
        self.branch(condition, f"{key}.then", f"{key}.end")
        self.start(f"{key}.then")
        yield
        if not self._terminated:
            self.jump(f"{key}.end")
        self.start(f"{key}.end")

    def either(
        self, condition: Value, then: Callable[[], Sequence[Value]], otherwise: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        """Build both ways of a scalar condition; each yields as many values of the same types, which are
        merged.
        """
        key = self.name("E")
        self.branch(condition, f"{key}.then", f"{key}.else")
        ways = []
        for suffix, build in (("then", then), ("else", otherwise)):
            self.start(f"{key}.{suffix}")
            values = build()
            ways.append((values, self.label))
            self.jump(f"{key}.end")
        self.start(f"{key}.end")
        (first, first_label), (second, second_label) = ways
        return [self.phi([(x, first_label), (y, second_label)]) for x, y in zip(first, second, strict=True)]

    def repeat(
        self,
        start: Sequence[Value],
        condition: Callable[[list[Value]], Value],
        body: Callable[[list[Value]], Sequence[Value]],
    ) -> list[Value]:
        """``while condition(carry): carry = body(carry)``; the values carried when it ends."""
        key = self.name("R")
        head, before = f"{key}.head", self.label
        carry = [Value(v.type, f"%{key}.c{j}") for j, v in enumerate(start)]
        self.jump(head)
        self.start(head)
        slot = len(self._lines)
        self._lines.append("")
        self.branch(condition(carry), f"{key}.body", f"{key}.done")
        self.start(f"{key}.body")
        following = body(carry)
        latch = self.label
        self.jump(head)
        self._lines[slot] = "\n".join(
            f"  {phi.name} = phi {phi.type} [{first.name}, %{before}], [{later.name}, %{latch}]"
            for phi, first, later in zip(carry, start, following, strict=True)
        )
        self.start(f"{key}.done")
        return carry

    def rehearse(self, build: Callable[[], None]) -> int:
        """How many lines ``build`` would emit: it is called, and what it emitted is taken back."""
        lines, allocas, label, terminated = len(self._lines), len(self._entry_allocas), self.label, self._terminated
        sizes = dict(self._sizes)
        build()
        count = len(self._lines) - lines
        del self._lines[lines:], self._entry_allocas[allocas:]
        self.label, self._terminated, self._sizes = label, terminated, sizes
        return count

    def finish(self) -> None:
        """Close the function: an open last block of a void function returns."""
        if not self._terminated:
            if self.result != VOID:
                raise ValueError(f"function {self.function_name} must return a {self.result}")
            self.ret()

    def text(self, internal: str = "internal ") -> str:
        """The function's definition; ``internal`` is the linkage of one that is not exported."""
        linkage = internal if self.linkage == "internal " else self.linkage
        head = f"define {linkage}{self.result} @{self.function_name}({self._signature}) {self._rest} {{"
        return "\n".join([head, "entry:", *self._entry_allocas, *self._lines, "}"])

    @property
    def length(self) -> int:
        """Lines of the definition, about."""
        return len(self._lines)

    def declaration(self) -> str:
        """The function for other modules of the same library, which may come to lie more than 2 GiB away: not
        ``hidden`` as the definition is, or else its address would be taken as one that is near."""
        return f"declare {self.result} @{self.function_name}({self._types})"


class Module:
    """Functions, globals and declarations that become one object file for one `Target`."""

    def __init__(self, target: Target, interposable: bool = True) -> None:
        """``interposable=False`` promises that nothing else in the process defines what this module exports, so that
        its own references need no table."""
        self.target = target
        self._exported = "" if interposable else "dso_local "
        #: Where functions find the sizes known at run time, see `Function.sizes_from`.
        self.symbols: dict[str, int] = {}
        self.exports: list[str] = []
        self._functions: list[Function] = []
        self._defined: dict[str, str] = {}
        self._declared: dict[str, str] = {}
        self._globals: list[str] = []
        self._names: dict[str, int] = {}
        self._shared: dict[object, str] = {}
        self._arrays: dict[str, Value] = {}

    def unique(self, name: str) -> str:
        """``name``, or ``name.1``, ``name.2``... when it is taken in this module."""
        count = self._names.get(name, 0)
        while (found := f"{name}.{count}" if count else name) in self._names:
            count += 1
        self._names[name] = count + 1
        self._names.setdefault(found, 1)
        return found

    @contextmanager
    def function(
        self,
        name: str,
        parameters: Sequence[tuple[str, str]],
        result: str = VOID,
        export: bool = True,
        attributes: str = "",
    ) -> Iterator[Function]:
        """Build a function. A parameter is (type, name); a type may carry attributes (``"ptr noalias"``)."""
        self._names.setdefault(name, 1)
        if name in self._defined:
            raise ValueError(f"function {name} is defined twice")
        self._defined[name] = result
        linkage = self._exported if export else "internal "
        width = f'"prefer-vector-width"="{self.target.vector_bits}"'
        builder = Function(self, name, parameters, result, linkage, f"nounwind {attributes} {width}")
        yield builder
        builder.finish()
        self._functions.append(builder)
        if export:
            self.exports.append(name)

    def shared_function(self, key: object, name: str, build: Callable[[str], None]) -> str:
        """The name of a shared function; ``build(name)`` defines it when ``key`` is asked for the
        first time.
        """
        if key not in self._shared:
            unique = self.unique(name)
            self._shared[key] = unique
            build(unique)
        return self._shared[key]

    def declare(self, name: str, result: str, parameters: Sequence[str], variadic: bool = False) -> None:
        """Note a function that is called; one the module does not define is declared external."""
        if name not in self._declared:
            types = ", ".join([*parameters, *(["..."] if variadic else [])])
            self._declared[name] = f"declare {result} @{name}({types})"

    def constant_array(
        self, name: str, element: str, values: Sequence[int] | Sequence[float], align: int = 64
    ) -> Value:
        """A read-only table; returns its address."""
        unique = self.unique(name)
        items = ", ".join(str(constant(element, v)) for v in values)
        self._globals.append(
            f"@{unique} = private unnamed_addr constant [{len(values)} x {element}] [{items}], align {align}"
        )
        return Value("ptr", f"@{unique}")

    def shared_array(self, name: str, element: str, values: Sequence[int]) -> Value:
        """A read-only table that is made once for its name; returns its address."""
        if name not in self._arrays:
            self._arrays[name] = self.constant_array(name, element, values)
        return self._arrays[name]

    def constant_structures(self, name: str, type: str, rows: Sequence[str]) -> Value:
        """A read-only table of structures, which may hold addresses of functions; returns its address."""
        unique = self.unique(name)
        items = ", ".join(rows)
        self._globals.append(f"@{unique} = private unnamed_addr constant [{len(rows)} x {type}] [{items}], align 8")
        return Value("ptr", f"@{unique}")

    def constant_bytes(self, name: str, data: bytes, align: int = 64) -> None:
        """A read-only table ``@name`` of bytes: much shorter text than numbers."""
        text = "\\" * bool(data) + data.hex("\\").upper()
        self._globals.append(f'@{name} = private unnamed_addr constant [{len(data)} x i8] c"{text}", align {align}')

    def variable(self, name: str, element: str, count: int) -> None:
        """An exported array that starts as zeros."""
        self._globals.append(f"@{name} = {self._exported}global [{count} x {element}] zeroinitializer, align 64")
        self.exports.append(name)

    def words(self, name: str, values: Sequence[int]) -> Value:
        """64-bit words that keep what is stored in them from call to call; returns their address."""
        unique, items = self.unique(name), ", ".join(f"i64 {v}" for v in values)
        self._globals.append(f"@{unique} = internal global [{len(values)} x i64] [{items}], align 64")
        return Value("ptr", f"@{unique}")

    def text(self) -> str:
        """The whole module as LLVM assembly; equal builds give equal text."""
        declarations = [text for name, text in sorted(self._declared.items()) if name not in self._defined]
        bodies = [f.text() for f in self._functions]
        return "\n\n".join(["\n".join(self._globals), *bodies, "\n".join(declarations), "!0 = !{i32 1}"]) + "\n"

    def lines(self) -> int:
        """About how many lines of text there are."""
        return sum(f.length for f in self._functions)

    def texts(self, parts: int) -> list[str]:
        """The same functions as at most so many modules of about equal length, to be linked together."""
        if parts == 1 or len(self._functions) < parts:
            return [self.text()]
        bodies = {f.function_name: f.text("hidden ") for f in self._functions}
        names: list[list[str]] = [[] for _ in range(parts)]
        lengths = [0] * parts
        for name in sorted(bodies, key=lambda name: -len(bodies[name])):
            least = lengths.index(min(lengths))
            names[least].append(name)
            lengths[least] += len(bodies[name])
        return [self._part({name: text for name, text in bodies.items() if name in set(chosen)}) for chosen in names]

    def _part(self, bodies: dict[str, str]) -> str:
        """A module of some of the functions, with the tables that they read and declarations of what they call."""
        used = _name(bodies.values())
        tables = [text for text in self._globals if text[1 : text.index(" ")] in used]
        used = (used | _name(tables)) - bodies.keys()
        others = {f.function_name: f.declaration() for f in self._functions}
        declared = [{**self._declared, **others}[name] for name in sorted(used & {*self._declared, *others})]
        return "\n\n".join(["\n".join(tables), *bodies.values(), "\n".join(declared), "!0 = !{i32 1}"]) + "\n"


def _name(texts: Iterable[str]) -> set[str]:
    """The global names in some text."""
    return {name for text in texts for name in findall(r"@([\w.]+)", text)}
