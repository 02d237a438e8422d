"""Programs with requests for gradients of gradients, and both ways to expand them."""

from __future__ import annotations

import numpy as np

from argosy_autograd.passes.expand import ExpandGradients
from argosy_autograd.passes.taylor import TaylorMode
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, SymExpr, TensorType
from argosy_pir.passes import PassManager

N = SymExpr.symbol("n")
RNG = np.random.default_rng(3)


def gradient(builder, outputs, inputs, cotangents=()):
    counts = (len(outputs), len(inputs), len(cotangents))
    return builder.create("ad.gradient", [*outputs, *inputs, *cotangents], {"counts": counts}).results


def dot(x, w):
    return prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,), lhs_batch=(), rhs_batch=())


def total(x):
    return prim.reduce_sum(x, axes=tuple(range(x.ndim)))


def column(x, i):
    return prim.slice(x, start=(0, i), limit=(x.shape[0], i + 1), stride=(1, 1))


def built(make, *shapes):
    """The program of ``make(builder, *inputs)`` in float64."""
    program = Program("p")
    inputs = [program.add_input(TensorType(shape, "float64")) for shape in shapes]
    with emit_at(Builder.at_end(program.block)) as builder:
        made = make(builder, *inputs)
    program.set_outputs(made if isinstance(made, list) else [made])
    return program


def both_ways(program, choice="always"):
    """The program expanded by reverse mode alone, and after Taylor mode."""
    plain, taylor = program.clone(), program.clone()
    assert TaylorMode(choice).run(taylor)
    for each in (plain, taylor):
        ExpandGradients().run(each)
        PassManager("cse,dce").run(each)
        each.verify()
    return plain, taylor


def check(program, *arrays, rtol=1e-12):
    plain, taylor = both_ways(program)
    for expected, got in zip(interpret(plain, arrays)[0], interpret(taylor, arrays)[0], strict=True):
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * (1 + np.abs(expected).max()))
    return plain, taylor


def network(x, *weights):
    for w in weights[:-1]:
        x = prim.tanh(dot(x, w))
    return dot(x, weights[-1])


def arrays(*shapes, rows=4):
    return [RNG.uniform(-1, 1, tuple(rows if n is N else n for n in shape)) for shape in shapes]


def laplacian(builder, u, q):
    (g,) = gradient(builder, [total(u)], [q])
    made = [column(gradient(builder, [total(column(g, i))], [q])[0], i) for i in range(q.shape[1])]
    return sum(made[1:], made[0])


def work(program):
    return sum(cost_of_products(op) for op in program.walk() if op.name == "prim.dot_general")


def cost_of_products(op):
    lhs = [64 if n is N or isinstance(n, SymExpr) else n for n in op.operand(0).shape]
    return int(np.prod(lhs)) * op.operand(1).shape[-1]
