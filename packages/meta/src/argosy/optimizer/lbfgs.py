"""Limited-memory BFGS over all parameters as one vector (Nocedal and Wright, 2006, algorithms 7.4, 3.5 and 3.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from argosy.nn.utils.vectors import parameters_to_vector, vector_to_parameters
from argosy.optimizer.line_search import strong_wolfe
from argosy.optimizer.lr import LRScheduler
from argosy.optimizer.optimizer import Optimizer
from argosy_autograd.modes import enable_grad
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = ["LBFGS"]

Vector = np.ndarray[Any, Any]
_KEPT = ("func_evals", "n_iter", "old_yk", "old_sk", "d", "alpha", "prev_flat_grad")


def _on_host(value: Any) -> Any:
    """Tensors as float64 arrays (numbers where they have no axes), in lists, too."""
    if isinstance(value, list):
        return [_on_host(each) for each in value]
    array = to_numpy(value) if isinstance(value, Tensor) else value
    if not isinstance(array, np.ndarray):
        return array
    return array.astype(np.float64) if array.ndim else array.item()


class LBFGS(Optimizer):
    """Steps along minus the gradient times an inverse Hessian that the last ``history_size`` steps tell about.

    ``step(closure)`` takes up to ``max_iter`` of them; ``closure`` clears gradients, computes the loss, calls its
    ``backward()`` and returns it. ``line_search_fn``: None takes steps of the learning rate, "strong_wolfe" searches
    for a length that meets the strong Wolfe conditions. It stops when no gradient exceeds ``tolerance_grad``, no step
    ``tolerance_change``, or after ``max_eval`` evaluations (5/4 of ``max_iter`` by default).
    """

    _reads_whole_parameters: ClassVar[bool] = True

    def __init__(
        self,
        learning_rate: float | LRScheduler = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"LBFGS: line_search_fn is None or 'strong_wolfe', got {line_search_fn!r}")
        if max_iter < 1 or history_size < 1:
            raise ValueError(f"LBFGS: max_iter {max_iter} and history_size {history_size} must be positive")
        self.max_iter, self.max_eval = max_iter, max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.history_size, self.line_search_fn = history_size, line_search_fn
        self._state: dict[str, Any] = {"func_evals": 0, "n_iter": 0, "old_yk": [], "old_sk": []}

    def state_dict(self) -> dict[str, Any]:
        """What the next step needs: the differences of gradients and steps, the last direction and gradient."""
        return {"state": dict(self._state)}

    def set_state_dict(self, state_dict: Any) -> None:
        """Put back what :meth:`state_dict` gave, or that of Paddle's, which keeps vectors as tensors."""
        self._state = {key: _on_host(value) for key, value in state_dict["state"].items() if key in _KEPT}

    def minimize(
        self, loss: Tensor, startup_program: object = None, parameters: Any = None, no_grad_set: Any = None
    ) -> Any:
        """There is none: the loss is needed at several places. Raises NotImplementedError; use :meth:`step`."""
        raise NotImplementedError("LBFGS.minimize: the loss is evaluated several times; use step(closure)")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take up to ``max_iter`` steps; returns the loss at the start. Raises TypeError without a closure."""
        if closure is None:
            raise TypeError("LBFGS.step(closure): a function that computes the loss and its gradients is needed")
        state, start = self._state, int(self._state["func_evals"])
        first, gradient = self._evaluate(closure)
        value = float(first)
        for left in reversed(range(self.max_iter)):
            if not np.abs(gradient).max(initial=0.0) > self.tolerance_grad:
                break
            state["n_iter"] += 1
            direction, length = self._next_step(gradient)
            slope = float(gradient @ direction)
            if slope > -self.tolerance_change:
                break
            before = value
            value, gradient, length = self._evaluate_along(closure, direction, length, value, gradient, slope, not left)
            state["alpha"] = length
            small = np.abs(length * direction).max() <= self.tolerance_change
            if small or abs(value - before) < self.tolerance_change or state["func_evals"] - start >= self.max_eval:
                break
        return first

    def _next_step(self, gradient: Vector) -> tuple[Vector, float]:
        """The direction of the next step and the length to try first. What the step before tells is learned only now:
        the gradient after it is that of this call's closure, as in the wheel."""
        state, last = self._state, self._state.get("prev_flat_grad")
        if last is not None:
            self._remember(gradient - last, state["alpha"] * state["d"])
        rate = float(self.get_lr())
        direction = self._direction(gradient)
        length = rate if state["n_iter"] > 1 else min(1.0, 1.0 / float(np.abs(gradient).sum())) * rate
        state["d"], state["alpha"], state["prev_flat_grad"] = direction, length, gradient
        return direction, length

    def _evaluate_along(
        self, closure: Any, direction: Vector, length: float, value: float, gradient: Vector, slope: float, last: bool
    ) -> tuple[float, Vector, float]:
        """The loss and gradient a step along ``direction``, and the step's length; parameters are moved there.

        The ``last`` step without a search is not evaluated: value and gradient stay."""
        origin = self._vector()

        def move(t: float) -> None:
            vector_to_parameters(Tensor((origin + t * direction).astype(origin.dtype)), self._parameter_list)

        def evaluate_at(t: float) -> tuple[float, Vector]:
            move(t)
            loss, found = self._evaluate(closure)
            return float(loss), found

        if self.line_search_fn is None:
            if not last:
                return (*evaluate_at(length), length)
            move(length)
            return value, gradient, length
        value, found, length = strong_wolfe(
            evaluate_at, direction, length, value, gradient, slope, self.tolerance_change
        )
        move(length)
        return value, found, length

    def _vector(self) -> Vector:
        vector: Vector = to_numpy(parameters_to_vector(self._parameter_list)).copy()
        return vector

    def _evaluate(self, closure: Callable[[], Any]) -> tuple[Any, Vector]:
        """The loss, and the gradients in a row: clipped, and with decay, as other optimizers do."""
        if not callable(closure):
            raise TypeError(f"LBFGS.step(): argument 'closure' must be a function, got {closure!r:.80}")
        with enable_grad():
            loss = closure()
        self._state["func_evals"] += 1
        pairs: Any = [(p, p.grad) for p in self._parameter_list if p.grad is not None]
        if self._grad_clip is not None:
            pairs = self._grad_clip(pairs)
        found = {id(p): to_numpy(self._decay_gradient(p, g, self._weight_decay)).ravel() for p, g in pairs}
        parts = [found.get(id(p), np.zeros(p.size, p.dtype.numpy)) for p in self._parameter_list]
        return loss, np.concatenate(parts).astype(np.float64)

    def _remember(self, y: Vector, s: Vector) -> None:
        if float(y @ s) <= 1e-10:
            return
        for key, value in (("old_yk", y), ("old_sk", s)):
            self._state[key] = [*self._state[key], value][-self.history_size :]

    def _direction(self, gradient: Vector) -> Vector:
        """Minus the inverse Hessian times the gradient, by the two loops over past steps."""
        pairs = list(zip(self._state["old_yk"], self._state["old_sk"], strict=True))
        q, factors = -gradient, []
        for y, s in reversed(pairs):
            factor = float(s @ q) / float(y @ s)
            factors.append(factor)
            q = q - factor * y
        if pairs:
            y, s = pairs[-1]
            q = q * (float(y @ s) / float(y @ y))
        for (y, s), factor in zip(pairs, reversed(factors), strict=True):
            q = q + s * (factor - float(y @ q) / float(y @ s))
        return q
