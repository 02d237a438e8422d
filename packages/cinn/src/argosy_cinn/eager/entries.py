"""What Python enters: ``enter_add(left, right)`` and the like for its operators on tensors, ``enter_call(operator,
arguments, keywords)`` for calls of operators.

An application that a plan knows is done by `application`; any other one by the method of the class, which may leave a
plan.
"""

from __future__ import annotations

from argosy_cinn.eager.application import SLOW
from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.layout import OPERATORS, Layout
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import I64, PTR, constant

__all__ = ["add_entries"]

_SIZE, _ITEMS = 16, 24  # ob_size and ob_item of a tuple


def add_entries(module: Module, layout: Layout) -> None:
    """Define the entries."""
    _add_method(module, layout)
    for name in OPERATORS:
        _add_operator(module, layout, name)
    _add_call(module, layout)


def _add_method(module: Module, layout: Layout) -> None:
    """``by_method(left, right, method, reflected)``: as Python does where a class has these methods."""
    parameters = [(PTR, each) for each in ("left", "right", "method", "reflected")]
    with module.function("by_method", parameters, PTR, export=False) as f:
        c = Code(f, layout)
        left, right, method, reflected = f.arguments
        ours = c.is_a(left, "tensor")
        arguments = f.alloca(PTR, 2)
        f.store(f.select(ours, left, right), arguments)
        f.store(f.select(ours, right, left), f.at(arguments, 1, PTR))
        chosen = f.select(ours, method, reflected)
        f.ret(c.call("PyObject_Vectorcall", PTR, chosen, arguments, constant(I64, 2), NULL))


def _add_operator(module: Module, layout: Layout, name: str) -> None:
    with module.function(f"enter_{name}", [(PTR, "left"), (PTR, "right")], PTR) as f:
        c = Code(f, layout)
        left, right = f.arguments
        done = f.call("apply", PTR, c.word(f"{name}.operator"), left, right)
        with f.when(f.icmp("ne", done, SLOW)):
            f.ret(done)
        f.ret(f.call("by_method", PTR, left, right, c.word(f"{name}.method"), c.word(f"{name}.reflected")))


def _add_call(module: Module, layout: Layout) -> None:
    parameters = [(PTR, each) for each in ("operator", "arguments", "keywords")]
    with module.function("enter_call", parameters, PTR) as f:
        c = Code(f, layout)
        operator, arguments, keywords = f.arguments
        c.need(c.same(keywords, NULL), "slow")
        count = c.field(arguments, _SIZE, I64)
        c.need(f.icmp("ne", count, 0), "slow")
        c.need(f.icmp("ule", count, 2), "slow")
        first = c.field(arguments, _ITEMS)
        second = f.either(f.icmp("eq", count, 2), lambda: [c.field(arguments, _ITEMS + 8)], lambda: [NULL])[0]
        done = f.call("apply", PTR, operator, first, second)
        c.need(f.icmp("ne", done, SLOW), "slow")
        f.ret(done)
        f.start("slow")
        f.ret(f.call_pointer(c.word("call"), PTR, operator, arguments, keywords))
