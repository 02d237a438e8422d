"""What Paddle's operators are here: a function of operands and attributes for each name.

Operands are tensors, :class:`Constant` (numbers that Paddle passes as small tensors) or lists of numbers and sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy.creation import to_tensor
from argosy_phi_ops.operator import find_operator, get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Constant", "run_operator"]


class Constant:
    """A filled array that mostly serves as a number: ``value``, and what makes it a tensor."""

    __slots__ = ("dtype", "shape", "value")

    def __init__(self, value: Any, shape: Sequence[Any], dtype: str) -> None:
        self.value, self.shape, self.dtype = value, list(shape), dtype

    def tensor(self) -> Tensor:
        """The array."""
        made: Tensor = get_operator("full")(self.shape, self.value, self.dtype)
        return made


def _number(x: Any) -> Any:
    if isinstance(x, Constant):
        return int(x.value) if x.dtype.startswith(("int", "uint")) else x.value
    return x


def _list(x: Any) -> list[Any]:
    if isinstance(x, Constant):
        return [_number(x)] * (x.shape[0] if x.shape else 1)
    if isinstance(x, Tensor):
        raise NotImplementedError("sizes that a Paddle program computes from the values of tensors are not read yet")
    return [_number(n) for n in x] if isinstance(x, (list, tuple)) else [x]


def _tensor(x: Any) -> Any:
    if isinstance(x, Constant):
        return x.tensor()
    if isinstance(x, (list, tuple)) and x and any(type(n) is Tensor or isinstance(n, Constant) for n in x):
        return [_tensor(n) for n in x]
    return get_operator("stack")([_size(n) for n in x]) if isinstance(x, (list, tuple)) else x


def _size(n: Any) -> Any:
    return get_operator("full")([], n, "int64")


Rule = Callable[[list[Any], dict[str, Any]], Any]
_RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def note(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, function))
        return function

    return note


def run_operator(name: str, operands: list[Any], attributes: dict[str, Any]) -> Any:
    """The results of Paddle's operator ``name``. Raises NotImplementedError for one that is not known here."""
    attributes = {key: value for key, value in attributes.items() if key not in ("struct_name", "op_callstack")}
    rule = _RULES.get(name.rstrip("_"))
    if rule is not None:
        return rule(operands, attributes)
    if name.rstrip("_") in _SAME and find_operator(_SAME[name.rstrip("_")]) is not None:
        tensors = [_tensor(x) for x in operands if x is not None]
        return get_operator(_SAME[name.rstrip("_")])(*tensors, **attributes)
    raise NotImplementedError(f"Paddle's operator {name} is not read yet (attributes {sorted(attributes)})")


_SAME = {name: name for name in (
    "relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "square", "abs", "floor", "ceil", "round", "sin", "cos",
    "erf", "silu", "relu6", "mish", "add", "subtract", "multiply", "divide", "maximum", "minimum", "less_than",
    "less_equal", "greater_than", "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_not",
    "where", "assign", "sign", "reciprocal", "bitwise_and", "bitwise_or", "isnan", "isinf", "gather_nd", "floor_divide",
    "remainder", "bmm", "dot", "log_softmax", "softmax", "gelu", "hardswish", "leaky_relu", "flatten", "elu",
)} | {"elementwise_pow": "pow", "swish": "silu", "tanh_shrink": "tanhshrink"}  # fmt: skip


@_rule("full")
def _full(x: list[Any], a: dict[str, Any]) -> Any:
    return Constant(a["value"], a["shape"], a["dtype"])


@_rule("full_int_array")
def _full_int_array(x: list[Any], a: dict[str, Any]) -> Any:
    return list(a["value"])


@_rule("full_with_tensor")
def _full_with_tensor(x: list[Any], a: dict[str, Any]) -> Any:
    return Constant(_number(x[0]), _list(x[1]), a["dtype"])


@_rule("full_like")
def _full_like(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("full_like")(_tensor(x[0]), _number(x[1]), a.get("dtype") or None)


@_rule("assign_value")
def _assign_value(x: list[Any], a: dict[str, Any]) -> Any:
    return to_tensor(a["values"], a["dtype"]).reshape(a["shape"])


@_rule("shape", "shape64")
def _shape(x: list[Any], a: dict[str, Any]) -> Any:
    return list(_tensor(x[0]).payload.shape)


@_rule("combine")
def _combine(x: list[Any], a: dict[str, Any]) -> Any:
    return list(x)


@_rule("stack")
def _stack(x: list[Any], a: dict[str, Any]) -> Any:
    if all(not isinstance(n, Tensor) for n in x[0]):
        return [_number(n) for n in x[0]]
    return get_operator("stack")([_tensor(n) for n in x[0]], axis=a["axis"])


@_rule("concat")
def _concat(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("concat")([_tensor(n) for n in x[0]], axis=int(_number(x[1])))


@_rule("slice")
def _slice(x: list[Any], a: dict[str, Any]) -> Any:
    starts, ends = _list(x[1]), _list(x[2])
    if isinstance(x[0], list):
        part = x[0][starts[0] : ends[0]]
        return part[0] if a["decrease_axis"] else part
    given = _tensor(x[0])
    if not a["decrease_axis"]:
        return get_operator("slice")(given, a["axes"], starts, ends)
    index: list[Any] = [slice(None)] * given.ndim  # an axis of open size that is cut to one cannot be squeezed
    for axis, start, end in zip(a["axes"], starts, ends, strict=True):
        index[axis] = start if axis in a["decrease_axis"] else slice(start, end)
    return given[tuple(index)]


@_rule("strided_slice")
def _strided_slice(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("strided_slice")(_tensor(x[0]), a["axes"], _list(x[1]), _list(x[2]), _list(x[3]))


@_rule("reshape")
def _reshape(x: list[Any], a: dict[str, Any]) -> Any:
    given = _tensor(x[0])
    shape = [given.payload.shape[i] if n == 0 else n for i, n in enumerate(_list(x[1]))]
    return get_operator("reshape")(given, shape)


@_rule("transpose")
def _transpose(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("transpose")(_tensor(x[0]), a["perm"])


_RULES["squeeze"] = lambda x, a: get_operator("squeeze")(_tensor(x[0]), _list(x[1]))
_RULES["unsqueeze"] = lambda x, a: get_operator("unsqueeze")(_tensor(x[0]), _list(x[1]))
_RULES["expand"] = lambda x, a: get_operator("expand")(_tensor(x[0]), _list(x[1]))
_RULES["tile"] = lambda x, a: get_operator("tile")(_tensor(x[0]), _list(x[1]))
_RULES["matmul"] = lambda x, a: get_operator("matmul")(_tensor(x[0]), _tensor(x[1]), a["transpose_x"], a["transpose_y"])
_RULES["cast"] = lambda x, a: get_operator("cast")(_tensor(x[0]), a["dtype"])
_RULES["pow"] = lambda x, a: get_operator("pow")(_tensor(x[0]), a["y"])
_RULES["clip"] = lambda x, a: get_operator("clip")(_tensor(x[0]), _number(x[1]), _number(x[2]))
_RULES["mean"] = lambda x, a: get_operator("mean")(_tensor(x[0]), _list(x[1]) or None, a["keepdim"])
_RULES["sum"] = lambda x, a: get_operator("sum")(_tensor(x[0]), _list(x[1]) or None, None, a["keepdim"])
_RULES["max"] = lambda x, a: get_operator("max")(_tensor(x[0]), _list(x[1]) or None, a["keepdim"])
_RULES["min"] = lambda x, a: get_operator("min")(_tensor(x[0]), _list(x[1]) or None, a["keepdim"])
_RULES["argmax"] = lambda x, a: get_operator("argmax")(
    _tensor(x[0]), None if a["flatten"] else int(_number(x[1])), a["keepdims"], a["dtype"]
)
_RULES["gather"] = lambda x, a: get_operator("gather")(_tensor(x[0]), _tensor(x[1]), int(_number(x[2])))
_RULES["embedding"] = lambda x, a: get_operator("embedding")(
    _tensor(x[0]), _tensor(x[1]), a["padding_idx"] if a["padding_idx"] >= 0 else None
)


@_rule("scale")
def _scale(x: list[Any], a: dict[str, Any]) -> Any:
    if not isinstance(x[0], Tensor) and isinstance(x[0], (int, Constant)):
        value, factor = _number(x[0]), _number(x[1])
        return value * factor + a["bias"] if a["bias_after_scale"] else (value + a["bias"]) * factor
    given = _tensor(x[0])
    factor = x[1] if type(x[1]) is Tensor else _number(x[1])
    return get_operator("scale")(given, factor, a["bias"], a["bias_after_scale"])


@_rule("dropout")
def _dropout(x: list[Any], a: dict[str, Any]) -> Any:
    given = _tensor(x[0])
    if not a["is_test"]:
        raise NotImplementedError("dropout in training mode within a Paddle program is not read yet")
    kept = given if a["mode"] == "upscale_in_train" else given * (1.0 - _number(x[2]))
    return [kept, None]


@_rule("split_with_num")
def _split_with_num(x: list[Any], a: dict[str, Any]) -> Any:
    return [list(get_operator("split")(_tensor(x[0]), a["num"], int(_number(x[1]))))]


@_rule("split")
def _split(x: list[Any], a: dict[str, Any]) -> Any:
    if len(x) == 1:  # builtin.split: the parts of a list
        return list(x[0])
    return [list(get_operator("split")(_tensor(x[0]), _list(x[1]), int(_number(x[2]))))]


# layers


def _padding(a: dict[str, Any]) -> Any:
    return a["padding_algorithm"] if a["padding_algorithm"] in ("SAME", "VALID") else a["paddings"]


@_rule("conv2d", "depthwise_conv2d")
def _conv2d(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("conv2d")(
        x[0], x[1], None, a["strides"], _padding(a), a["dilations"], a["groups"], a["data_format"]
    )


@_rule("conv2d_transpose", "depthwise_conv2d_transpose")
def _conv2d_transpose(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("conv2d_transpose")(
        x[0], x[1], None, a["strides"], _padding(a), a["output_padding"] or 0, a["dilations"], a["groups"],
        _list(x[2]) or None if len(x) > 2 and x[2] is not None else None, a["data_format"],
    )  # fmt: skip


@_rule("pool2d")
def _pool2d(x: list[Any], a: dict[str, Any]) -> Any:
    size, layout = _list(x[1]), a["data_format"]
    if a["adaptive"] or a["global_pooling"]:
        size = [1, 1] if a["global_pooling"] else size
        if a["pooling_type"] == "max":
            return get_operator("adaptive_max_pool2d")(x[0], size)
        return get_operator("adaptive_avg_pool2d")(x[0], size, layout)
    if a["pooling_type"] == "max":
        return get_operator("max_pool2d")(x[0], size, a["strides"], _padding(a), False, a["ceil_mode"], layout)
    return get_operator("avg_pool2d")(
        x[0], size, a["strides"], _padding(a), a["ceil_mode"], a["exclusive"], None, layout
    )


@_rule("batch_norm")
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


@_rule("layer_norm")
def _layer_norm(x: list[Any], a: dict[str, Any]) -> Any:
    sizes = list(x[0].payload.shape[a["begin_norm_axis"] :])
    weight, bias = (None if t is None else get_operator("reshape")(t, sizes) for t in x[1:3])
    return [get_operator("layer_norm")(x[0], sizes, weight, bias, a["epsilon"]), None, None]


@_rule("group_norm")
def _group_norm(x: list[Any], a: dict[str, Any]) -> Any:
    made = get_operator("group_norm")(x[0], a["groups"], a["epsilon"], x[1], x[2], a["data_format"])
    return [made, None, None]


@_rule("hardsigmoid")
def _hardsigmoid(x: list[Any], a: dict[str, Any]) -> Any:
    return get_operator("clip")(get_operator("scale")(x[0], a["slope"], a["offset"]), 0.0, 1.0)


@_rule("rnn")
def _rnn(x: list[Any], a: dict[str, Any]) -> Any:
    """Layers of one recurrence over time-major input: ``x``, states, weights, lengths."""
    mode, ways = a["mode"], 2 if a["is_bidirec"] else 1
    names = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "simple_rnn", "RNN_RELU": "simple_rnn"}
    options = {"activation": mode[4:].lower()} if mode.startswith("RNN") else {}
    states, weights, length = [_tensor(s) for s in x[1]], x[2], x[3]
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
