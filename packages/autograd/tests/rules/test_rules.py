"""Every rule against finite differences, both modes against each other, to second order."""

from __future__ import annotations

import numpy as np
import pytest

from argosy_autograd.checks import check_program
from argosy_autograd.rules import NOT_APPLICABLE, jvp, vjp
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.custom_ops.declaration import custom_op
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Builder, Program, TensorType
from argosy_tensorcore import Tensor

RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.standard_normal(shape)


def uniform(*shape, low=0.2, high=0.8):
    return RNG.uniform(low, high, shape)


def cplx(*shape):
    return normal(*shape) + 1j * normal(*shape)


def ints(*rows):
    return np.array(rows, np.int64)


def spd(n, *batch, complex_=False):
    a = cplx(*batch, n, n) if complex_ else normal(*batch, n, n)
    return a @ a.conj().swapaxes(-1, -2) + n * np.eye(n)


def build(name, arrays, attributes):
    program = Program(name)
    operands = [program.add_input(TensorType(np.shape(a), np.asarray(a).dtype.name)) for a in arrays]
    with emit_at(Builder.at_end(program.block)):
        results = getattr(prim, name)(*operands, **attributes)
    program.set_outputs(results if isinstance(results, tuple) else [results])
    return program


@custom_op("testrules.powers")
def powers(x: Tensor, y: Tensor, exponent: int = 3) -> Tensor:
    return x**exponent * y


@powers.gradient
def _(g, result, x, y, exponent):
    return g * x ** (exponent - 1) * y * exponent, g * x**exponent


X, Y = normal(2, 3), normal(2, 3)
WIDE = {
    name: (normal(5) * 1.5,)
    for name in "neg abs sign exp expm1 sin cos tan sinh cosh asinh tanh logistic erf erfc".split()
}
POSITIVE = {name: (uniform(5),) for name in "log log1p sqrt rsqrt asin acos atan atanh erfinv copy".split()}
COMPLEX = {
    name: (cplx(4) * 0.5,)
    for name in (
        "neg abs sign exp log sqrt rsqrt sin cos tan sinh cosh tanh real imag conj logistic asin atan asinh acosh"
    ).split()
}
SAMPLES: list[tuple] = [
    *((name, arrays, {}) for table in (WIDE, POSITIVE, COMPLEX) for name, arrays in table.items()),
    ("acosh", (uniform(5, low=1.2, high=3),), {}),
    ("lgamma", (np.array([0.3, 1.7, 4.2, 11.0, -0.6, -3.3]),), {}),
    ("digamma", (np.array([0.3, 1.7, 4.2, 11.0, -0.6]),), {}),
    *((name, (X, Y), {}) for name in ("add", "sub", "mul", "div", "maximum", "minimum", "atan2")),
    *((name, (cplx(3), cplx(3)), {}) for name in ("add", "sub", "mul", "div", "pow")),
    ("rem", (X * 5, Y + 3), {}),
    ("floor_mod", (X * 5, Y + 3), {}),
    ("pow", (uniform(2, 3), Y), {}),
    ("complex", (X, Y), {}),
    ("select", (X > 0, X, Y), {}),
    ("cast", (X,), {"dtype": "complex128"}),
    ("cast", (X,), {"dtype": "float64"}),
    # layout
    ("broadcast", (normal(3),), {"shape": (2, 3, 4), "axes": (1,)}),
    ("broadcast", (normal(2, 1),), {"shape": (4, 2, 3), "axes": (1, 2)}),
    ("broadcast", (normal(1, 1),), {"shape": (1, 3), "axes": (0, 1)}),
    ("reshape", (X,), {"shape": (3, 2)}),
    ("transpose", (normal(2, 3, 4),), {"permutation": (2, 0, 1)}),
    ("slice", (normal(7, 4),), {"start": (1, 0), "limit": (6, 4), "stride": (2, 1)}),
    ("slice", (normal(7),), {"start": (1,), "limit": (7,), "stride": (3,)}),
    ("slice", (normal(4),), {"start": (2,), "limit": (2,), "stride": (1,)}),
    ("pad", (X, np.array(0.5)), {"low": (1, 0), "high": (0, 2), "interior": (0, 0)}),
    ("pad", (X, np.array(0.5)), {"low": (1, 2), "high": (1, 0), "interior": (2, 1)}),
    ("pad", (normal(4, 5), np.array(0.5)), {"low": (-1, 2), "high": (1, -2), "interior": (0, 0)}),
    ("pad", (normal(5), np.array(0.5)), {"low": (-1,), "high": (-2,), "interior": (1,)}),
    ("concat", (X, normal(1, 3), normal(4, 3)), {"axis": 0}),
    ("reverse", (normal(2, 3, 2),), {"axes": (0, 2)}),
    ("relayout", (normal(2, 3),), {"target": ()}),
    ("place", (normal(2, 3),), {"source": "cpu", "target": "virtual:0"}),
    ("to_local", (normal(2, 3),), {"shape": (2, 3)}),
    ("from_local", (normal(2, 3),), {"shape": (2, 3)}),
    # reductions
    *(
        (name, (normal(2, 3, 2),), {"axes": (0, 2)})
        for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")
    ),
    *((name, (normal(4),), {"axes": ()}) for name in ("reduce_sum", "reduce_prod", "reduce_max")),
    ("reduce_prod", (np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [1.5, 2.0, -1.0]]),), {"axes": (1,)}),
    ("reduce_prod", (cplx(3, 2),), {"axes": (0,)}),
    *(
        ("cumulative", (normal(3, 4),), {"axis": 1, "kind": kind, "reverse": reverse})
        for kind in ("sum", "prod", "max", "min", "logsumexp")
        for reverse in (False, True)
    ),
    ("cumulative", (np.array([1.0, 2.0, 0.0, 3.0, 4.0]),), {"axis": 0, "kind": "prod"}),
    # contractions
    ("dot_general", (X, normal(3, 4)), {"lhs_contract": (1,), "rhs_contract": (0,)}),
    ("dot_general", (cplx(2, 3), cplx(3, 4)), {"lhs_contract": (1,), "rhs_contract": (0,)}),
    ("dot_general", (X, normal(4, 3)), {"lhs_contract": (1,), "rhs_contract": (1,)}),
    (
        "dot_general",
        (normal(5, 2, 3, 4), normal(4, 2, 6, 3)),
        {"lhs_contract": (2, 3), "rhs_contract": (3, 0), "lhs_batch": (1,), "rhs_batch": (1,)},
    ),
    ("dot_general", (normal(3), normal(2)), {"lhs_contract": (), "rhs_contract": ()}),
    *(
        ("conv", (x, w), {"strides": s, "padding": p, "lhs_dilation": a, "rhs_dilation": b, "groups": g})
        for x, w, s, p, a, b, g in (
            (normal(2, 3, 6), normal(4, 3, 3), (1,), ((0, 0),), (1,), (1,), 1),
            (normal(2, 4, 7), normal(6, 2, 3), (2,), ((1, 2),), (1,), (2,), 2),
            (normal(1, 2, 5, 4), normal(3, 2, 2, 3), (2, 1), ((1, 0), (2, 1)), (2, 1), (1, 1), 1),
            (normal(1, 4, 5, 5), normal(4, 1, 3, 3), (1, 2), ((1, 1), (0, 3)), (1, 3), (1, 2), 4),
            (cplx(1, 2, 5), cplx(2, 2, 2), (1,), ((1, 1),), (1,), (1,), 1),
        )
    ),
    # attention and products over rows that data divides
    *(
        (
            "paged_attention",
            (
                normal(3, 2, 2, 3),
                normal(4, 2, 2, 3),
                normal(4, 2, 2, 2),
                np.array([1, 2, 0]),
                np.array([0, 0, 1]),
                ints([3, 1], [0, 2]),
                *sinks,
            ),
            {"scale": 0.7, **rule},
        )
        for sinks, rule in (((), {}), ((normal(2, 2),), {"window": 2, "softcap": 1.5, "width": 1}))
    ),
    ("grouped_dot", (normal(5, 3), normal(3, 3, 2), np.array([0, 2, 2, 4])), {}),
    ("grouped_dot", (normal(5, 3), normal(3, 2, 3), np.array([1, 2, 2, 5])), {"transposed": True}),
    ("grouped_outer", (normal(5, 3), normal(5, 2), np.array([0, 1, 1, 4])), {}),
    # indexing; 9 and -1 are out of range
    ("gather", (normal(5, 3), ints([0], [3], [3], [9], [-1])), {"axes": (0,)}),
    ("gather", (normal(2, 4, 3), ints([[0], [2]], [[1], [1]])), {"axes": (1,), "batch": 1}),
    ("gather", (normal(4, 3, 2), ints([0, 1], [3, 0])), {"axes": (0, 2)}),
    *(
        ("scatter", (uniform(4, 2), ints([0], [2], [2], [9], [-1]), uniform(5, 2)), {"axes": (0,), "kind": kind})
        for kind in ("set", "add", "mul", "max", "min")
    ),
    ("scatter", (normal(2, 4), ints([[0]], [[3]]), normal(2, 1)), {"axes": (1,), "batch": 1, "kind": "set"}),
    ("dynamic_slice", (normal(5, 3), np.int64(3), np.int64(1)), {"sizes": (3, 2)}),
    ("dynamic_update_slice", (normal(5, 3), normal(3, 2), np.int64(1), np.int64(5)), {}),
    ("sort", (normal(3, 5),), {"axis": 1}),
    ("sort", (normal(3, 5), normal(3, 5)), {"axis": 0, "descending": True}),
    # Fourier transforms
    ("fft", (cplx(3, 4),), {"axes": (0, 1)}),
    ("fft", (cplx(5),), {"axes": (0,), "inverse": True}),
    ("fft", (normal(3, 4),), {"axes": (0, 1), "kind": "r2c"}),
    ("fft", (normal(5),), {"axes": (0,), "kind": "r2c", "inverse": True}),
    ("fft", (cplx(3, 3),), {"axes": (0, 1), "kind": "c2r", "inverse": True, "length": 4}),
    ("fft", (cplx(3),), {"axes": (0,), "kind": "c2r", "length": 5}),
    # decompositions
    *(
        ("triangular_solve", (normal(2, 3, 3) + 3 * np.eye(3), normal(2, 3, 3)), dict(zip(names, flags, strict=True)))
        for names in [("lower", "transpose", "unit", "left")]
        for flags in [
            (True, False, False, True),
            (False, True, False, True),
            (True, True, True, False),
            (False, False, False, False),
        ]
    ),
    (
        "triangular_solve",
        (cplx(3, 3) + 3 * np.eye(3), cplx(3, 2)),
        {"lower": True, "transpose": True, "conjugate": True},
    ),
    ("solve", (normal(2, 3, 3) + 3 * np.eye(3), normal(2, 3, 2)), {}),
    ("solve", (cplx(3, 3), cplx(3, 2)), {}),
    ("lu", (normal(2, 3, 3),), {}),
    ("lu", (normal(3, 5),), {}),
    ("lu", (normal(5, 3),), {}),
    ("lu", (cplx(3, 3),), {}),
    ("qr", (normal(2, 3, 3),), {}),
    ("qr", (normal(4, 3),), {}),
    ("qr", (normal(2, 4),), {}),
    ("qr", (cplx(4, 3),), {}),
    ("svd", (normal(3, 3),), {}),
    ("svd", (normal(2, 4, 3),), {}),
    ("svd", (normal(3, 5),), {}),
    ("host_call", (X, Y), {"function": "testrules.powers", "arguments": {"exponent": 4}}),
]
FIRST_ORDER_ONLY = {"floor_mod", "svd", "reduce_max", "reduce_min"}
COMMUNICATION = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast_rank", "permute", "start", "wait",
    "all_gather_coalesced", "reduce_scatter_coalesced",
}  # fmt: skip
HERMITIAN = {"cholesky", "eigh", "eig"}


@pytest.mark.parametrize("rules", [vjp, jvp], ids=lambda table: table.kind)
def test_every_primitive_has_a_rule_or_a_reason(rules):
    """Each primitive is in exactly one of the table and the list of reasons."""
    assert set(rules.rules) | NOT_APPLICABLE.keys() == PRIMITIVES.keys()
    assert not set(rules.rules) & NOT_APPLICABLE.keys()


def test_every_rule_is_sampled():
    """No rule goes unchecked."""
    assert {name for name, *_ in SAMPLES} | COMMUNICATION | HERMITIAN == set(vjp.rules)


@pytest.mark.parametrize(("name", "arrays", "attributes"), SAMPLES, ids=[f"{i}-{s[0]}" for i, s in enumerate(SAMPLES)])
def test_rule_agrees_with_finite_differences(name, arrays, attributes):
    """Forward mode is the difference quotient, reverse mode its transpose, and so for the derivatives of the
    gradient."""
    arrays = [np.asarray(a) for a in arrays]
    program = build(name, arrays, attributes)
    with np.errstate(all="ignore"):
        check_program(program, arrays, order=1 if name in FIRST_ORDER_ONLY else 2, rtol=1e-4, atol=1e-5)
