"""Control flow as functions: ``cond``, ``while_loop``, ``case`` and ``switch_case``; functions with their own gradient.

Eagerly they run the branch that is chosen. While a function is captured they become operations of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argosy.jit.conversion import runtime
from argosy_autograd.modes import no_grad
from argosy_autograd.pylayer import PyLayer
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["case", "cond", "static_pylayer", "switch_case", "while_loop"]


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
    return_names: Sequence[str] | None = None,
) -> Any:
    """``true_fn()`` where ``pred``, a tensor of one bool, holds, else ``false_fn()``, of one structure.

    Raises TypeError where a branch is not callable, or the results of a captured ``cond`` differ in structure, shape or
    dtype. Returns what the chosen function does.
    """
    for branch, argument in ((true_fn, "true_fn"), (false_fn, "false_fn")):
        if branch is not None and not callable(branch):
            raise TypeError(f"cond(): {argument} is a function without arguments, not {type(branch).__name__}")
    return runtime.choose(pred, true_fn or _return_none, false_fn or _return_none)


def _return_none() -> None:
    return None


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    is_test: bool = False,
    name: str | None = None,
) -> list[Any]:
    """``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)`` holds; gives the last ones.

    Shapes and dtypes stay from step to step. Raises TypeError or ValueError where the arguments are not functions and a
    list that is not empty, or ``body`` gives another number of values.
    """
    if not callable(cond) or not callable(body):
        raise TypeError("while_loop(): cond and body are functions of the loop variables")
    if not isinstance(loop_vars, (list, tuple)):
        raise TypeError(f"while_loop(): loop_vars is a list or tuple, not {type(loop_vars).__name__}")
    if not loop_vars:
        raise ValueError("while_loop(): loop_vars is empty")
    values = list(loop_vars)

    def step() -> None:
        made = body(*values)
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        if len(made) != len(values):
            raise ValueError(f"while_loop(): body gives {len(made)} values for {len(values)} loop variables")
        values[:] = made

    def put(new: list[Any]) -> None:
        values[:] = new

    names = [f"loop_vars[{i}]" for i in range(len(values))]
    runtime.while_(lambda: cond(*values), step, lambda: list(values), put, names)
    return values


def case(
    pred_fn_pairs: Sequence[tuple[Any, Callable[[], Any]]],
    default: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """The result of the first function whose condition holds, else of ``default`` (the last function without one).

    Returns what that function does.
    """
    if not isinstance(pred_fn_pairs, (list, tuple)) or not pred_fn_pairs:
        raise TypeError("case(): pred_fn_pairs is a list of (condition, function) that is not empty")
    for pair in pred_fn_pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]):
            raise TypeError(f"case(): each of pred_fn_pairs is (condition, function), found {pair!r:.60}")
    pairs = list(pred_fn_pairs)
    chosen = pairs.pop()[1] if default is None else default
    for test, function in reversed(pairs):
        chosen = _either(test, function, chosen)
    return chosen()


def _either(test: Any, holds: Callable[[], Any], fails: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: runtime.choose(test, holds, fails)


def switch_case(
    branch_index: Tensor,
    branch_fns: Mapping[int, Callable[[], Any]] | Sequence[Any],
    default: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """The result of the function that ``branch_index`` numbers, else of ``default`` (the one of the largest number).

    branch_fns: a dict of number to function, a list of functions, or a list of (number, function).
    Returns what that function does.
    """
    if isinstance(branch_fns, Mapping):
        numbered = dict(branch_fns)
    else:
        numbered = dict(x if isinstance(x, tuple) else (i, x) for i, x in enumerate(branch_fns))
    if not numbered or not all(type(i) is int and callable(f) for i, f in numbered.items()):
        raise TypeError("switch_case(): branch_fns maps integers to functions and is not empty")
    chosen = numbered[max(numbered)] if default is None else default
    for i in sorted(numbered, reverse=True):
        chosen = _either(get_operator("equal")(branch_index, i), numbered[i], chosen)
    return chosen()


def static_pylayer(
    forward_fn: Callable[..., Any],
    inputs: Sequence[Tensor],
    backward_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """``forward_fn(*inputs)``, whose gradients by the inputs are ``backward_fn`` of those of its results; without one
    it is a constant. Raises TypeError for what is no function, or no list of tensors.
    Returns what ``forward_fn`` does.
    """
    for function, argument in ((forward_fn, "forward_fn"), (backward_fn, "backward_fn")):
        if not callable(function) and (function is not None or argument == "forward_fn"):
            raise TypeError(f"static_pylayer(): {argument} is a function, not {type(function).__name__}")
    if not isinstance(inputs, (list, tuple)) or not all(type(x) is Tensor for x in inputs):
        raise TypeError("static_pylayer(): inputs is a list of tensors")
    if backward_fn is None:
        with no_grad():
            return forward_fn(*inputs)
    return _WithBackward.apply(forward_fn, backward_fn, *inputs)


class _WithBackward(PyLayer):
    @staticmethod
    def forward(ctx: Any, forward_fn: Any, backward_fn: Any, *inputs: Tensor) -> Any:
        """What the function gives."""
        ctx.backward_fn = backward_fn
        return forward_fn(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """What the user's backward gives."""
        return ctx.backward_fn(*grads)
