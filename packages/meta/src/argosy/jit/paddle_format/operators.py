"""What Paddle's operators are here: a function of operands and attributes for each name.

Operands are tensors, :class:`Constant` (numbers that Paddle passes as small tensors) or lists of numbers and sizes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from argosy.framework.creation import to_tensor
from argosy_phi_ops.declare.composition import find_function
from argosy_phi_ops.declare.operator import find_operator, get_operator
from argosy_pir import dims
from argosy_pir.dims import SymExpr
from argosy_tensorcore.tensor import Tensor

__all__ = ["RULES", "Constant", "as_list", "as_number", "as_operand", "is_known", "rule", "run_operator"]


class Constant:
    """A filled array that mostly serves as a number: ``value``, and what makes it a tensor."""

    __slots__ = ("dtype", "shape", "value")

    def __init__(self, value: Any, shape: Sequence[Any], dtype: str) -> None:
        self.value, self.shape, self.dtype = value, list(shape), dtype

    def tensor(self) -> Tensor:
        """The array."""
        made: Tensor = get_operator("full")(self.shape, self.value, self.dtype)
        return made


def as_number(x: Any) -> Any:
    """The number that an operand stands for, where it is known."""
    if isinstance(x, Constant):
        return int(x.value) if x.dtype.startswith(("int", "uint")) else x.value
    if type(x) is Tensor and not x.payload.is_traced and x.size == 1:
        return x.item()
    return x


def as_list(x: Any) -> list[Any]:
    """The numbers that an operand stands for. Raises GraphBreak for a tensor of a capture."""
    if isinstance(x, Constant):
        return [as_number(x)] * (x.shape[0] if x.shape else 1)
    if isinstance(x, Tensor):
        return list(x.numpy().reshape(-1).tolist())
    return [as_number(n) for n in x] if isinstance(x, (list, tuple)) else [x]


def as_operand(x: Any) -> Any:
    """The tensor, or tensors, that an operand is."""
    if isinstance(x, Constant):
        return x.tensor()
    if isinstance(x, (list, tuple)) and x and any(type(n) is Tensor or isinstance(n, Constant) for n in x):
        return [as_operand(n) for n in x]
    if isinstance(x, SymExpr):
        return _size(x)
    return get_operator("stack")([_size(n) for n in x]) if isinstance(x, (list, tuple)) else x


def _size(n: Any) -> Any:
    return get_operator("full")([], n, "int64")


Rule = Callable[[list[Any], dict[str, Any]], Any]
RULES: dict[str, Rule] = {}
_DOMAINS = ("argosy.vision.program_rules",)
"""Modules of domain libraries with rules of their own, loaded with the first operator that has none without them."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    def note(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return note


def is_known(name: str) -> bool:
    """Whether :func:`run_operator` knows Paddle's operator ``name``."""
    plain = name.rstrip("_")
    return (plain in _SAME and find_operator(_SAME[plain]) is not None) or _find_rule(plain) is not None


def _find_rule(name: str) -> Rule | None:
    if name not in RULES:
        for module in _DOMAINS:
            import_module(module)
    return RULES.get(name)


def run_operator(name: str, operands: list[Any], attributes: dict[str, Any]) -> Any:
    """The results of Paddle's operator ``name``. Raises NotImplementedError for one that is not known here."""
    attributes = {key: value for key, value in attributes.items() if key not in ("struct_name", "op_callstack")}
    if name in _OF_SIZES and any(isinstance(x, SymExpr) for x in operands) and all(map(_is_size, operands)):
        return _OF_SIZES[name](*map(as_number, operands))
    rule = RULES.get(name.rstrip("_"))
    if rule is not None:
        return rule(operands, attributes)
    if name.rstrip("_") in _SAME and find_operator(_SAME[name.rstrip("_")]) is not None:
        tensors = [as_operand(x) for x in operands if x is not None]
        return get_operator(_SAME[name.rstrip("_")])(*tensors, **attributes)
    rule = _find_rule(name.rstrip("_"))
    if rule is not None:
        return rule(operands, attributes)
    raise NotImplementedError(f"Paddle's operator {name} is not read yet (attributes {sorted(attributes)})")


def _is_size(x: Any) -> bool:
    """Whether an operand is a size, or a whole number beside one."""
    if isinstance(x, Constant):
        return x.shape in ([], [1]) and float(x.value).is_integer()
    return isinstance(x, (int, SymExpr))


_OF_SIZES: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "floor_divide": operator.floordiv,
    "remainder": operator.mod, "maximum": dims.maximum, "minimum": dims.minimum,
}  # fmt: skip
"""What stays a size that later operators can have: arithmetic on a tensor's sizes."""
_SAME = {name: name for name in (
    "relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "square", "abs", "floor", "ceil", "round", "sin", "cos",
    "erf", "silu", "relu6", "mish", "add", "subtract", "multiply", "divide", "maximum", "minimum", "less_than",
    "less_equal", "greater_than", "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_not",
    "where", "assign", "sign", "reciprocal", "bitwise_and", "bitwise_or", "isnan", "isinf", "gather_nd", "floor_divide",
    "remainder", "bmm", "dot", "log_softmax", "softmax", "gelu", "hardswish", "leaky_relu", "flatten", "elu",
)} | {"elementwise_pow": "pow", "swish": "silu", "tanh_shrink": "tanhshrink"}  # fmt: skip


@rule("full")
def _full(x: list[Any], a: dict[str, Any]) -> Any:
    return Constant(a["value"], a["shape"], a["dtype"])


@rule("full_int_array")
def _full_int_array(x: list[Any], a: dict[str, Any]) -> Any:
    return list(a["value"])


@rule("full_with_tensor")
def _full_with_tensor(x: list[Any], a: dict[str, Any]) -> Any:
    return Constant(as_number(x[0]), as_list(x[1]), a["dtype"])


@rule("full_like")
def _full_like(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("full_like")(as_operand(x[0]), as_number(x[1]), a.get("dtype") or None)


@rule("assign_value")
def _assign_value(x: list[Any], a: dict[str, Any]) -> Any:
    return to_tensor(a["values"], a["dtype"]).reshape(a["shape"])


@rule("shape", "shape64")
def _shape(x: list[Any], a: dict[str, Any]) -> Any:
    return list(as_operand(x[0]).payload.shape)


@rule("combine")
def _combine(x: list[Any], a: dict[str, Any]) -> Any:
    return list(x)


@rule("stack")
def _stack(x: list[Any], a: dict[str, Any]) -> Any:
    if all(not isinstance(n, Tensor) for n in x[0]):
        return [as_number(n) for n in x[0]]
    return get_operator("stack")([as_operand(n) for n in x[0]], axis=a["axis"])


@rule("concat")
def _concat(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("concat")([as_operand(n) for n in x[0]], axis=int(as_number(x[1])))


@rule("slice")
def _slice(x: list[Any], a: dict[str, Any]) -> Any:
    starts, ends = as_list(x[1]), as_list(x[2])
    if isinstance(x[0], list):
        part = x[0][starts[0] : ends[0]]
        return part[0] if a["decrease_axis"] else part
    given = as_operand(x[0])
    if not a["decrease_axis"]:
        return get_operator("slice")(given, a["axes"], starts, ends)
    index: list[Any] = [slice(None)] * given.ndim  # an axis of open size that is cut to one cannot be squeezed
    for axis, start, end in zip(a["axes"], starts, ends, strict=True):
        index[axis] = start if axis in a["decrease_axis"] else slice(start, end)
    return given[tuple(index)]


@rule("strided_slice")
def _strided_slice(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("strided_slice")(as_operand(x[0]), a["axes"], as_list(x[1]), as_list(x[2]), as_list(x[3]))


@rule("reshape")
def _reshape(x: list[Any], a: dict[str, Any]) -> Any:
    given = as_operand(x[0])
    shape = [given.payload.shape[i] if n == 0 else n for i, n in enumerate(as_list(x[1]))]
    return get_operator("reshape")(given, shape)


@rule("share_data")
def _share_data(x: list[Any], a: dict[str, Any]) -> Any:
    return as_operand(x[0])


@rule("transpose")
def _transpose(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("transpose")(as_operand(x[0]), a["perm"])


RULES["squeeze"] = lambda x, a: get_operator("squeeze")(as_operand(x[0]), as_list(x[1]))
RULES["unsqueeze"] = lambda x, a: get_operator("unsqueeze")(as_operand(x[0]), as_list(x[1]))
RULES["expand"] = lambda x, a: get_operator("expand")(as_operand(x[0]), as_list(x[1]))
RULES["tile"] = lambda x, a: get_operator("tile")(as_operand(x[0]), as_list(x[1]))
RULES["matmul"] = lambda x, a: get_operator("matmul")(
    as_operand(x[0]), as_operand(x[1]), a["transpose_x"], a["transpose_y"]
)
RULES["cast"] = lambda x, a: get_operator("cast")(as_operand(x[0]), a["dtype"])
RULES["pow"] = lambda x, a: find_function("pow")(as_operand(x[0]), a["y"])  # type: ignore[misc]
RULES["clip"] = lambda x, a: get_operator("clip")(as_operand(x[0]), as_number(x[1]), as_number(x[2]))
RULES["mean"] = lambda x, a: get_operator("mean")(as_operand(x[0]), as_list(x[1]) or None, a["keepdim"])
RULES["sum"] = lambda x, a: get_operator("sum")(as_operand(x[0]), as_list(x[1]) or None, None, a["keepdim"])
RULES["max"] = lambda x, a: get_operator("max")(as_operand(x[0]), as_list(x[1]) or None, a["keepdim"])
RULES["min"] = lambda x, a: get_operator("min")(as_operand(x[0]), as_list(x[1]) or None, a["keepdim"])
RULES["argmax"] = lambda x, a: get_operator("argmax")(
    as_operand(x[0]), None if a["flatten"] else int(as_number(x[1])), a["keepdims"], a["dtype"]
)
RULES["gather"] = lambda x, a: get_operator("gather")(as_operand(x[0]), as_operand(x[1]), int(as_number(x[2])))
RULES["embedding"] = lambda x, a: get_operator("embedding")(
    as_operand(x[0]), as_operand(x[1]), a["padding_idx"] if a["padding_idx"] >= 0 else None
)


@rule("scale")
def _scale(x: list[Any], a: dict[str, Any]) -> Any:
    if isinstance(x[0], list) and all(map(_is_size, x[0])):
        return [_scale([n, x[1]], a) for n in x[0]]
    if _is_size(x[0]) and not isinstance(x[0], Constant) and type(x[1]) is not Tensor:
        factor, bias = as_number(x[1]), a["bias"]
        if float(factor).is_integer() and float(bias).is_integer():
            factor, bias = int(factor), int(bias)
            return x[0] * factor + bias if a["bias_after_scale"] else (x[0] + bias) * factor
    if not isinstance(x[0], Tensor) and isinstance(x[0], (int, Constant)):
        value, factor = as_number(x[0]), as_number(x[1])
        return value * factor + a["bias"] if a["bias_after_scale"] else (value + a["bias"]) * factor
    given = as_operand(x[0])
    factor = x[1] if type(x[1]) is Tensor else as_number(x[1])
    return get_operator("scale")(given, factor, a["bias"], a["bias_after_scale"])


@rule("dropout")
def _dropout(x: list[Any], a: dict[str, Any]) -> Any:
    given = as_operand(x[0])
    if not a["is_test"]:
        raise NotImplementedError("dropout in training mode within a Paddle program is not read yet")
    kept = given if a["mode"] == "upscale_in_train" else given * (1.0 - as_number(x[2]))
    return [kept, None]


@rule("split_with_num")
def _split_with_num(x: list[Any], a: dict[str, Any]) -> Any:
    return [list(get_operator("split")(as_operand(x[0]), a["num"], int(as_number(x[1]))))]


@rule("split")
def _split(x: list[Any], a: dict[str, Any]) -> Any:
    if len(x) == 1:  # builtin.split: the parts of a list
        return list(x[0])
    return [list(get_operator("split")(as_operand(x[0]), as_list(x[1]), int(as_number(x[2]))))]


# layers


def _padding_of(a: dict[str, Any]) -> Any:
    return a["padding_algorithm"] if a["padding_algorithm"] in ("SAME", "VALID") else a["paddings"]


@rule("conv2d", "depthwise_conv2d")
def _conv2d(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("conv2d")(
        x[0], x[1], None, a["strides"], _padding_of(a), a["dilations"], a["groups"], a["data_format"]
    )


@rule("conv2d_transpose", "depthwise_conv2d_transpose")
def _conv2d_transpose(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("conv2d_transpose")(
        x[0], x[1], None, a["strides"], _padding_of(a), a["output_padding"] or 0, a["dilations"], a["groups"],
        as_list(x[2]) or None if len(x) > 2 and x[2] is not None else None, a["data_format"],
    )  # fmt: skip


@rule("pool2d")
def _pool2d(x: list[Any], a: dict[str, Any]) -> Any:
    size, layout = as_list(x[1]), a["data_format"]
    if a["adaptive"] or a["global_pooling"]:
        size = [1, 1] if a["global_pooling"] else size
        if a["pooling_type"] == "max":
            return get_operator("adaptive_max_pool2d")(x[0], size)
        return get_operator("adaptive_avg_pool2d")(x[0], size, layout)
    if a["pooling_type"] == "max":
        return get_operator("max_pool2d")(x[0], size, a["strides"], _padding_of(a), False, a["ceil_mode"], layout)
    return get_operator("avg_pool2d")(
        x[0], size, a["strides"], _padding_of(a), a["ceil_mode"], a["exclusive"], None, layout
    )


@rule("batch_norm")
def _batch_norm(x: list[Any], a: dict[str, Any]) -> Any:
    if not (a["is_test"] or a["use_global_stats"]):
        raise NotImplementedError("batch_norm in training mode within a Paddle program is not read yet")
    given = x[0]
    channels_last = a["data_format"].endswith("C") and given.ndim > 2
    shape = [-1] if channels_last or given.ndim == 1 else [-1, *[1] * (given.ndim - 2)]
    mean, variance, weight, bias = (None if t is None else get_operator("reshape")(t, shape) for t in x[1:5])
    made = (given - mean) * get_operator("rsqrt")(variance + a["epsilon"])
    made = made if weight is None else made * weight
    return [made if bias is None else made + bias, *[None] * 5]


@rule("layer_norm")
def _layer_norm(x: list[Any], a: dict[str, Any]) -> Any:
    sizes = list(x[0].payload.shape[a["begin_norm_axis"] :])
    weight, bias = (None if t is None else get_operator("reshape")(t, sizes) for t in x[1:3])
    return [get_operator("layer_norm")(x[0], sizes, weight, bias, a["epsilon"]), None, None]


@rule("group_norm")
def _group_norm(x: list[Any], a: dict[str, Any]) -> Any:
    made = get_operator("group_norm")(x[0], a["groups"], a["epsilon"], x[1], x[2], a["data_format"])
    return [made, None, None]


@rule("hardsigmoid")
def _hardsigmoid(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("clip")(get_operator("scale")(x[0], a["slope"], a["offset"]), 0.0, 1.0)


@rule("rnn")
def _rnn(x: list[Any], a: dict[str, Any]) -> Any:
    """Layers of one recurrence over time-major input: ``x``, states, weights, lengths."""
    mode, ways = a["mode"], 2 if a["is_bidirec"] else 1
    names = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "simple_rnn", "RNN_RELU": "simple_rnn"}
    options = {"activation": mode[4:].lower()} if mode.startswith("RNN") else {}
    states, weights, length = [as_operand(s) for s in x[1]], x[2], x[3]
    runs, current = a["num_layers"] * ways, x[0]
    ends: list[list[Any]] = [[] for _ in states]
    for layer in range(a["num_layers"]):
        outputs = []
        for way in range(ways):
            at = layer * ways + way
            own = [*weights[2 * at : 2 * at + 2], *weights[2 * (runs + at) : 2 * (runs + at) + 2]]
            made = get_operator(names[mode])(
                current, *(s[at] for s in states), *own, length=length, reverse=way == 1, **options
            )
            outputs.append(made[0])
            for end, last in zip(ends, made[1:], strict=True):
                end.append(last)
        current = outputs[0] if ways == 1 else get_operator("concat")(outputs, axis=-1)
    return [current, None, [get_operator("stack")(end, axis=0) for end in ends], None]
