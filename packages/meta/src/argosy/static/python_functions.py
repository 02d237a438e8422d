"""Python in the middle of a static program: printing, and functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from argosy.framework.param_attr import ParamAttr
from argosy_phi_ops.custom_ops.declaration import custom_op
from argosy_pir.dims import SymExpr
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["Print", "WeightNormParamAttr", "py_func"]

_numbers = count()


class WeightNormParamAttr(ParamAttr):
    """A weight of ``static.nn.fc`` that is learnt as a direction and a length for each index along ``dim`` (one for all
    where ``dim`` is None; Salimans and Kingma, 2016)."""

    def __init__(self, dim: int | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.weight_norm_axis = dim


def Print(
    input: Tensor,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_layout: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Tensor:
    """``input``, which is printed when the program runs: at most ``first_n`` times, ``summarize`` elements of it (all
    for -1). What follows has to use the result. Gradients are not printed."""
    left = count(first_n, -1) if first_n >= 0 else count(1, 0)
    lines = [f"Variable: {input.name}" if print_tensor_name else "Variable:"]
    lines += [f"  - message: {message}"] if message else []

    def show(array: Any) -> None:
        if next(left) > 0:
            flat = np.asarray(array).reshape(-1)
            shown = lines + [f"  - shape: {list(array.shape)}"] * print_tensor_shape
            shown += [f"  - dtype: {array.dtype}"] * print_tensor_type
            print("\n".join([*shown, f"  - data: {flat[: summarize if summarize >= 0 else flat.size]}"]))  # noqa: T201

    return _observe(show)(input)  # type: ignore[no-any-return]


def _observe(show: Callable[[Any], None]) -> Any:
    def body(x: Tensor) -> Tensor:
        show(x)
        return x

    made = custom_op(f"static.print_{next(_numbers)}")(body)
    made.gradient(lambda g, result, x: g)
    return made


def py_func(
    func: Callable[..., Any],
    x: Any,
    out: Any,
    backward_func: Callable[..., Any] | None = None,
    skip_vars_in_backward_input: Any = None,
) -> Any:
    """What ``func`` makes of the arrays of ``x``, of the shapes and dtypes of ``out`` (variables, or ``InputSpec``).

    backward_func: of the arrays of x, out and the gradients of out (without those in ``skip_vars_in_backward_input``),
    it gives the gradients of x. Raises NotImplementedError without ``out``: what has no result is not run.
    Returns tensors as ``out`` has variables, one or a tuple.
    """
    if out is None:
        raise NotImplementedError("static.py_func() without out: operators that have no results are not run")
    inputs, ends, skipped = (_as_list(v) for v in (x, out, skip_vars_in_backward_input))
    types = [(_sizes(y.shape, inputs[0]), as_dtype(y.dtype).name) for y in ends]

    def body(xs: Sequence[Tensor]) -> Any:
        made = func(*xs)
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        return [np.asarray(y, as_dtype(dtype).numpy) for y, (_, dtype) in zip(made, types, strict=True)]

    made = custom_op(f"static.py_func_{next(_numbers)}")(body)
    made.types(lambda xs: [(_match(sizes, inputs[0], xs), dtype) for sizes, dtype in types])
    if backward_func is not None:
        kept = [not any(v is s for s in skipped) for v in (*inputs, *ends)]

        def backward(g: Any, result: Any, xs: Sequence[Any]) -> Any:
            results = result if isinstance(result, tuple) else (result,)
            grads = g if isinstance(g, tuple) else (g,)
            values = [v for v, keep in zip((*xs, *results), kept, strict=True) if keep]
            found = _as_list(backward_func(*values, *grads))
            return [None if d is None else np.asarray(d, v.dtype) for d, v in zip(found, xs, strict=True)]

        made.gradient_on_arrays(backward)
    results = made(inputs)
    return results if len(ends) > 1 or type(results) is not tuple else results[0]


def _as_list(x: Any) -> list[Any]:
    return [] if x is None else list(x) if isinstance(x, (list, tuple)) else [x]


def _sizes(shape: Any, first: Tensor) -> list[Any]:
    return [n if isinstance(n, (int, SymExpr)) and n != -1 else None for n in shape]


def _match(sizes: Sequence[Any], first: Tensor, xs: Sequence[Any]) -> tuple[Any, ...]:
    """Sizes left open are those of the first input, axis by axis."""
    given = xs[0].shape
    names = dict(zip(map(str, first.payload.shape), given, strict=True))
    return tuple(given[i] if n is None else names.get(str(n), n) for i, n in enumerate(sizes))
