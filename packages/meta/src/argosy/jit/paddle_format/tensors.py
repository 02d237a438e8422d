"""Paddle's operators on tensors whose operands or attributes stand otherwise than here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import argosy as paddle
import argosy.nn.functional as F
from argosy.jit.paddle_format.operators import RULES, Rule, as_list, as_number, as_operand, rule
from argosy_phi_ops.declare.operator import get_operator

__all__: list[str] = []


@rule("argsort")
def _argsort(x: list[Any], a: dict[str, Any]) -> Any:
    given = as_operand(x[0])
    order = get_operator("argsort")(given, a["axis"], a["descending"], a["stable"])
    return [get_operator("take_along_axis")(given, order, a["axis"]), order]


@rule("topk")
def _topk(x: list[Any], a: dict[str, Any]) -> Any:
    return list(get_operator("topk")(as_operand(x[0]), int(as_list(x[1])[0]), a["axis"], a["largest"], a["sorted"]))


@rule("arange")
def _arange(x: list[Any], a: dict[str, Any]) -> Any:
    start, end, step = (as_list(n)[0] for n in x)
    return get_operator("arange")(start, end, step, a["dtype"])


@rule("cumsum")
def _cumsum(x: list[Any], a: dict[str, Any]) -> Any:
    if a["exclusive"] or a["reverse"]:
        raise NotImplementedError("cumsum with exclusive or reverse within a Paddle program is not read yet")
    return get_operator("cumsum")(as_operand(x[0]), None if a["flatten"] else int(as_number(x[1])))


# The operator's operands alone, by the function of that name; as the attributes in the second table say.

_PLAIN = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan", "expm1", "log10", "log1p", "log2",
    "digamma", "lgamma", "erfinv", "i0", "i0e", "i1", "i1e", "isfinite", "trunc", "angle", "conj", "real", "imag",
    "bitwise_not", "bitwise_xor", "logical_xor", "atan2", "complex", "copysign", "fmax", "fmin", "heaviside",
    "nextafter", "kron",
    "as_complex", "as_real", "lerp", "mv", "index_sample", "scatter_nd_add", "numel", "bernoulli",
)  # fmt: skip
_NAMED: dict[str, tuple[str, ...]] = {
    "all": ("axis", "keepdim"), "any": ("axis", "keepdim"), "amax": ("axis", "keepdim"), "amin": ("axis", "keepdim"),
    "bitwise_left_shift": ("is_arithmetic",), "bitwise_right_shift": ("is_arithmetic",), "cross": ("axis",),
    "cummax": ("axis", "dtype"), "cummin": ("axis", "dtype"), "diag": ("offset", "padding_value"), "dist": ("p",),
    "diag_embed": ("offset", "dim1", "dim2"), "diagonal": ("offset", "axis1", "axis2"), "flip": ("axis",),
    "index_select": ("axis",), "kthvalue": ("k", "axis", "keepdim"), "mode": ("axis", "keepdim"),
    "matrix_power": ("n",), "put_along_axis": ("axis", "reduce", "include_self"), "renorm": ("p", "axis", "max_norm"),
    "scatter": ("overwrite",), "searchsorted": ("out_int32", "right"), "stanh": ("scale_a", "scale_b"),
    "trace": ("offset", "axis1", "axis2"), "tril": ("diagonal",), "triu": ("diagonal",), "unbind": ("axis",),
    "unstack": ("axis", "num"), "take_along_axis": ("axis",),
}  # fmt: skip


def _unary_rule(name: str) -> Rule:
    return lambda x, a: getattr(paddle, name)(*map(as_operand, x))


def _tensors_by_name(name: str, keys: Sequence[str]) -> Rule:
    def run(x: list[Any], a: dict[str, Any]) -> Any:
        given = {key: a[key] for key in keys if key in a}
        if given.get("axis") == [] and name in ("all", "any", "amax", "amin"):
            given["axis"] = None
        made = getattr(paddle, name)(*(as_operand(t) for t in x if t is not None), **given)
        return list(made) if isinstance(made, tuple) else made

    return run


for _name in _PLAIN:
    RULES.setdefault(_name, _unary_rule(_name))
for _name, _keys in _NAMED.items():
    RULES.setdefault(_name, _tensors_by_name(_name, _keys))

RULES["isclose"] = lambda x, a: paddle.isclose(
    as_operand(x[0]), as_operand(x[1]), as_number(x[2]), as_number(x[3]), a["equal_nan"]
)
RULES["allclose"] = lambda x, a: paddle.allclose(
    as_operand(x[0]), as_operand(x[1]), as_number(x[2]), as_number(x[3]), a["equal_nan"]
)
RULES["logit"] = lambda x, a: paddle.logit(as_operand(x[0]), a["eps"] or None)
RULES["celu"] = lambda x, a: F.celu(as_operand(x[0]), a["alpha"])
RULES["selu"] = lambda x, a: F.selu(as_operand(x[0]), a["scale"], a["alpha"])
RULES["mish"] = lambda x, a: F.mish(as_operand(x[0]))
RULES["hardshrink"] = lambda x, a: F.hardshrink(as_operand(x[0]), a["threshold"])
RULES["hardtanh"] = lambda x, a: F.hardtanh(as_operand(x[0]), a["t_min"], a["t_max"])
RULES["softshrink"] = lambda x, a: F.softshrink(as_operand(x[0]), a["threshold"])
RULES["softplus"] = lambda x, a: F.softplus(as_operand(x[0]), a["beta"], a["threshold"])
RULES["softsign"] = lambda x, a: F.softsign(as_operand(x[0]))
RULES["logsigmoid"] = lambda x, a: F.log_sigmoid(as_operand(x[0]))
RULES["thresholded_relu"] = lambda x, a: F.thresholded_relu(as_operand(x[0]), a["threshold"], a["value"])
RULES["maxout"] = lambda x, a: F.maxout(as_operand(x[0]), a["groups"], a["axis"])
RULES["prelu"] = lambda x, a: F.prelu(x[0], x[1], a["data_format"])
RULES["label_smooth"] = lambda x, a: F.label_smooth(as_operand(x[0]), as_operand(x[1]), a["epsilon"])
RULES["mean_all"] = lambda x, a: paddle.mean(as_operand(x[0]))
RULES["addmm"] = lambda x, a: paddle.addmm(x[0], x[1], x[2], a["beta"], a["alpha"])
RULES["einsum"] = lambda x, a: [paddle.einsum(a["equation"], *map(as_operand, x[0])), None, None]
RULES["det"] = lambda x, a: paddle.linalg.det(x[0])
RULES["cholesky"] = lambda x, a: paddle.linalg.cholesky(as_operand(x[0]), a["upper"])
RULES["inverse"] = lambda x, a: paddle.linalg.inv(as_operand(x[0]))
RULES["solve"] = lambda x, a: paddle.linalg.solve(as_operand(x[0]), as_operand(x[1]))
RULES["eye"] = lambda x, a: paddle.eye(int(as_number(x[0])), int(as_number(x[1])), a["dtype"])
RULES["linspace"] = lambda x, a: paddle.linspace(as_number(x[0]), as_number(x[1]), int(as_number(x[2])), a["dtype"])
RULES["argmin"] = lambda x, a: paddle.argmin(
    as_operand(x[0]), None if a["flatten"] else int(as_number(x[1])), a["keepdims"], a["dtype"]
)
RULES["prod"] = lambda x, a: paddle.prod(as_operand(x[0]), None if a["reduce_all"] else as_list(x[1]), a["keepdim"])
RULES["logsumexp"] = lambda x, a: paddle.logsumexp(
    as_operand(x[0]), None if a["reduce_all"] else a["axis"], a["keepdim"]
)
RULES["expand_as"] = lambda x, a: paddle.expand(as_operand(x[0]), a["target_shape"])
RULES["roll"] = lambda x, a: paddle.roll(as_operand(x[0]), as_list(x[1]), a["axis"] or None)
RULES["one_hot"] = lambda x, a: F.one_hot(as_operand(x[0]), int(as_number(x[1])))
RULES["masked_fill"] = lambda x, a: paddle.where(as_operand(x[1]), as_operand(x[2]), as_operand(x[0]))
RULES["meshgrid"] = lambda x, a: list(paddle.meshgrid(*map(as_operand, x[0])))
RULES["index_add"] = lambda x, a: paddle.index_add(x[0], as_operand(x[1]), a["axis"], as_operand(x[2]))
RULES["index_put"] = lambda x, a: paddle.index_put(
    as_operand(x[0]), tuple(map(as_operand, x[1])), as_operand(x[2]), a["accumulate"]
)
RULES["repeat_interleave"] = lambda x, a: paddle.repeat_interleave(as_operand(x[0]), a["repeats"], a["axis"])
RULES["crop"] = lambda x, a: paddle.crop(as_operand(x[0]), as_list(x[1]), as_list(x[2]))
RULES["multiplex"] = lambda x, a: paddle.multiplex([as_operand(t) for t in x[0]], as_operand(x[1]))
RULES["p_norm"] = lambda x, a: paddle.norm(
    as_operand(x[0]), a["porder"], None if a["asvector"] else a["axis"], a["keepdim"]
)


RULES["fft_c2c"] = lambda x, a: get_operator("fft_c2c")(x[0], a["axes"], a["normalization"], a["forward"])
RULES["fft_r2c"] = lambda x, a: get_operator("fft_r2c")(
    as_operand(x[0]), a["axes"], a["normalization"], a["forward"], a["onesided"]
)
RULES["fft_c2r"] = lambda x, a: get_operator("fft_c2r")(
    x[0], a["axes"], a["normalization"], a["forward"], a["last_dim_size"]
)
RULES["frame"] = lambda x, a: paddle.signal.frame(as_operand(x[0]), a["frame_length"], a["hop_length"], a["axis"])
RULES["overlap_add"] = lambda x, a: paddle.signal.overlap_add(as_operand(x[0]), a["hop_length"], a["axis"])
RULES["histogram"] = lambda x, a: paddle.histogram(
    as_operand(x[0]), a["bins"], a["min"], a["max"], None if x[1] is None else as_operand(x[1]), a["density"]
)


def _median(name: str) -> Rule:
    def run(x: list[Any], a: dict[str, Any]) -> Any:
        axis = a["axis"][0] if len(a["axis"]) == 1 else a["axis"] or None
        made = getattr(paddle, name)(as_operand(x[0]), axis, a["keepdim"], a["mode"])
        return list(made) if isinstance(made, (tuple, list)) else [made, None]

    return run


RULES["median"], RULES["nanmedian"] = _median("median"), _median("nanmedian")


@rule("unique_consecutive")
def _unique_consecutive(x: list[Any], a: dict[str, Any]) -> Any:
    axis = a["axis"][0] if a["axis"] else None
    return list(paddle.unique_consecutive(as_operand(x[0]), True, True, axis, a["dtype"]))


@rule("cumprod")
def _cumprod(x: list[Any], a: dict[str, Any]) -> Any:
    if a["exclusive"] or a["reverse"]:
        raise NotImplementedError("cumprod with exclusive or reverse within a Paddle program is not read yet")
    return paddle.cumprod(as_operand(x[0]), a["dim"])


@rule("set_value", "set_value_with_tensor")
def _set_value(x: list[Any], a: dict[str, Any]) -> Any:
    """``x[starts:ends:steps] = value`` along some axes."""
    given = as_operand(x[0])
    *bounds, value = [*x[2:5], x[1]] if "values" not in a else [*x[1:4], None]
    starts, ends, steps = map(as_list, bounds)
    index: list[Any] = [slice(None)] * given.ndim
    for axis, start, end, step in zip(a["axes"], starts, ends, steps, strict=True):
        index[axis] = start if axis in a["decrease_axes"] else slice(start, end, step)
    if a["none_axes"]:
        raise NotImplementedError("set_value with new axes within a Paddle program is not read yet")
    if value is None:
        shape = [] if len(a["values"]) == 1 else a["shape"]
        value = paddle.to_tensor(a["values"], given.dtype).reshape(shape)
    made = given.clone()
    made[tuple(index)] = as_operand(value)
    return made


RULES["slogdet"] = lambda x, a: paddle.linalg.slogdet(as_operand(x[0]))
RULES["slogdet_v2"] = lambda x, a: list(paddle.linalg.slogdet(as_operand(x[0])))
RULES["gaussian"] = lambda x, a: paddle.normal(a["mean"], a["std"], as_list(x[0])).astype(a["dtype"])
RULES["uniform"] = lambda x, a: paddle.uniform(as_list(x[0]), a["dtype"], as_number(x[1]), as_number(x[2]))
RULES["randint"] = lambda x, a: paddle.randint(a["low"], a["high"], as_list(x[0]), a["dtype"])
RULES["multinomial"] = lambda x, a: paddle.multinomial(as_operand(x[0]), int(as_number(x[1])), a["replacement"])
RULES["sequence_mask"] = lambda x, a: F.sequence_mask(as_operand(x[0]), int(as_number(x[1])), a["out_dtype"])
RULES["logcumsumexp"] = lambda x, a: paddle.logcumsumexp(as_operand(x[0]), None if a["flatten"] else a["axis"])
