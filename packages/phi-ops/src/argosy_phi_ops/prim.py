"""Primitives as functions: ``prim.add(x, y)``. See :mod:`argosy_phi_ops.primitives` for the families."""

from argosy_phi_ops.primitives.attention import paged_attention
from argosy_phi_ops.primitives.binding import broadcast_shapes, broadcast_to, constant
from argosy_phi_ops.primitives.communication import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast_rank,
    create_token,
    permute,
    recv,
    reduce_scatter,
    send,
    start,
    start_recv,
    wait,
)
from argosy_phi_ops.primitives.contraction import conv, dot_general
from argosy_phi_ops.primitives.decomposition import cholesky, eig, eigh, lu, qr, solve, svd, triangular_solve
from argosy_phi_ops.primitives.elementwise import abs_ as abs
from argosy_phi_ops.primitives.elementwise import (
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitcast,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cast,
    ceil,
    conj,
    copy,
    cos,
    cosh,
    digamma,
    div,
    eq,
    erf,
    erfc,
    erfinv,
    exp,
    expm1,
    floor,
    floor_div,
    floor_mod,
    ge,
    gt,
    imag,
    is_finite,
    is_inf,
    is_nan,
    le,
    lgamma,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    logistic,
    lt,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    nextafter,
    real,
    rem,
    rsqrt,
    select,
    shift_left,
    shift_right,
    sign,
    sin,
    sinh,
    sqrt,
    stop_gradient,
    sub,
    tan,
    tanh,
    trunc,
)
from argosy_phi_ops.primitives.elementwise import complex_ as complex
from argosy_phi_ops.primitives.elementwise import pow_ as pow
from argosy_phi_ops.primitives.elementwise import round_ as round
from argosy_phi_ops.primitives.grouped_products import grouped_dot, grouped_outer
from argosy_phi_ops.primitives.host import host_call
from argosy_phi_ops.primitives.indexing import check_index, dynamic_slice, dynamic_update_slice, gather, scatter, sort
from argosy_phi_ops.primitives.layout import (
    broadcast,
    concat,
    dim_size,
    from_local,
    iota,
    pad,
    relayout,
    reshape,
    reverse,
    to_local,
    transpose,
)
from argosy_phi_ops.primitives.layout import slice_ as slice
from argosy_phi_ops.primitives.random import rng_bits
from argosy_phi_ops.primitives.reduction import (
    argmax,
    argmin,
    cumulative,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
)
from argosy_phi_ops.primitives.transform import fft

__all__ = [
    "abs", "acos", "acosh", "add", "all_gather", "all_reduce", "all_to_all", "argmax", "argmin", "asin", "asinh",
    "atan", "atan2", "atanh", "bitcast", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast",
    "broadcast_rank", "broadcast_shapes", "broadcast_to", "cast", "ceil", "check_index", "cholesky", "complex",
    "concat", "conj", "constant", "conv", "copy", "cos", "cosh", "create_token", "cumulative", "digamma",
    "dim_size", "div", "dot_general", "dynamic_slice", "dynamic_update_slice", "eig", "eigh", "eq", "erf", "erfc",
    "erfinv", "exp", "expm1", "fft", "floor", "floor_div", "floor_mod", "from_local", "gather", "ge", "grouped_dot",
    "grouped_outer", "gt", "host_call", "imag", "iota", "is_finite", "is_inf", "is_nan", "le", "lgamma", "log",
    "log1p", "logical_and", "logical_not", "logical_or", "logical_xor", "logistic", "lt", "lu", "maximum",
    "minimum", "mul", "ne", "neg", "nextafter", "pad", "paged_attention", "permute", "pow", "qr", "real", "recv",
    "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_scatter", "reduce_sum",
    "relayout", "rem", "reshape", "reverse", "rng_bits", "round", "rsqrt", "scatter", "select", "send",
    "shift_left", "shift_right", "sign", "sin", "sinh", "slice", "solve", "sort", "sqrt", "start", "start_recv",
    "stop_gradient", "sub", "svd", "tan", "tanh", "to_local", "transpose", "triangular_solve", "trunc", "wait",
]  # fmt: skip
