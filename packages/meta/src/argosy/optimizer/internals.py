"""What subclasses of Paddle's optimizers take from ``Optimizer`` beside its public names.

A subclass may define the update of one parameter as ``_append_optimize_op(block, (parameter, gradient))``, with states
that ``_create_accumulators`` adds; :class:`Internals` then calls these in place of the rule's own update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.regularizer import L2Decay
from argosy.static.program import default_main_program
from argosy_autograd.modes import no_grad
from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.eager.dispatch import suspend_layers
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["Internals"]

Pair = tuple[Tensor, Tensor]


class Internals:
    """The members of ``Optimizer`` that begin with an underscore and that libraries read, call or override."""

    helper: Any = None
    """What makes variables of Paddle's older programs: none are made."""
    _groups: Any
    _weight_decay: Any
    _grad_clip: Any
    _accumulators: dict[str, dict[str, Tensor]]
    _master_weights: dict[str, Tensor]
    _multi_precision: bool
    _accumulator: Any
    _apply: Any
    _decay_gradient: Any
    _master: Any
    _rate_of: Any
    _step_values: Any
    _update_one: Any
    _wants_master: Any
    append_regularization_ops: Any

    @property
    def type(self) -> str:
        """The name of the rule, ``adam``."""
        return type(self).__name__.lower()

    @property
    def regularization(self) -> Any:
        """The penalty that is added to gradients; a number is that of :class:`L2Decay`."""
        decay = self._weight_decay
        return L2Decay(float(decay)) if isinstance(decay, int | float) else decay

    @property
    def _default_dict(self) -> dict[str, Any]:
        """What a group of parameters has unless it says otherwise."""
        return {"weight_decay": self._weight_decay, "grad_clip": self._grad_clip}

    @property
    def _param_groups(self) -> list[Any]:
        """The parameters; or a dict for each group where they were given in groups."""
        groups = self._groups
        if len(groups) == 1 and not groups[0].options:
            return list(groups[0].params)
        return [{"params": group.params, **self._default_dict, **group.options} for group in groups]

    def _update_param_group(self, parameters: Mapping[str, Any]) -> Any:
        """The parameters of a group, whose settings hold already where an update runs."""
        return parameters["params"]

    # ---- states

    def _add_accumulator(
        self,
        name: str,
        param: Tensor,
        dtype: Any = None,
        fill_value: float = 0.0,
        shape: Sequence[int] | None = None,
        type: Any = None,
        device: Any = None,
    ) -> Tensor:
        """The state ``name`` of a parameter, made of ``fill_value`` unless it is there."""
        kind = None if dtype is None else as_dtype(dtype).name
        return self._accumulator(name, param, fill_value, shape, kind)  # type: ignore[no-any-return]

    def _get_accumulator(self, name: str, param: Tensor) -> Tensor:
        """The state ``name`` of a parameter. Raises KeyError where nothing has made it."""
        found = self._accumulators.get(name, {}).get(param.name)
        if found is None:
            raise KeyError(f"{type(self).__name__} has no state {name!r} of parameter {param.name}")
        return found

    _get_accumulator_master = _get_accumulator

    def _create_accumulators(self, block: Any, parameters: Sequence[Tensor]) -> None:
        """Make the states of the rule's own update. It is recorded, with the parameters as gradients, and thrown
        away: values stay what they are."""
        with suspend_layers(), no_grad(), Tracer("states"):
            pairs = [(p, p) for p in parameters]
            shared = self._step_values(pairs, {})
            for p in parameters:
                self._update_one(p, p, {}, shared)

    def _create_master_weight(self, param: Tensor) -> Tensor:
        """The float32 copy of a half-precision parameter with ``multi_precision``, or the parameter itself."""
        return self._master(param)  # type: ignore[no-any-return]

    def _gen_master_weight_var_name(self, param: Tensor) -> str:
        """The name of the float32 copy."""
        return f"{param.name}_fp32_master_0"

    def _is_dtype_fp16_or_bf16(self, dtype: Any) -> bool:
        """Whether the dtype has two bytes and a fraction."""
        return as_dtype(dtype).name in ("float16", "bfloat16")

    # ---- the rate

    def _create_global_learning_rate(self) -> None:
        """Make the tensor of the rate: it is there from the beginning."""

    def _global_learning_rate(self, program: Any = None) -> Any:
        """The rate as a tensor, 0-D."""
        rate: Any = self.__dict__["_rate"]
        return rate.tensor

    def _create_param_lr(self, param_and_grad: Pair) -> Any:
        """The rate of one parameter, its own factor in it."""
        step = self.__dict__.get("_appended")
        return self._rate_of(param_and_grad[0], {} if step is None else step.options)

    # ---- the update

    def _apply_optimize(self, loss: Any, startup_program: Any, params_grads: Any, param_group_idx: int = 0) -> None:
        """Clip, decay and update: pairs, or a dict of ``params`` (pairs) with the settings of their group."""
        pairs, options = _split(params_grads)
        with no_grad():
            self._apply(pairs, options)

    def _create_regularization_of_grad(self, param: Tensor, grad: Any, regularization: Any = None) -> Any:
        """The gradient with the penalty's; a parameter's own regularizer wins."""
        return self._decay_gradient(param, grad, regularization)

    def _appends(self) -> bool:
        """Whether a subclass defines the update of a parameter itself."""
        return type(self)._append_optimize_op is not Internals._append_optimize_op

    def _create_optimization_pass(self, parameters_and_grads: Any, param_group_idx: int = 0) -> list[Any]:
        """Call :meth:`_append_optimize_op` for each pair, with states made before."""
        pairs, options = _split(parameters_and_grads)
        block = default_main_program().global_block()
        self._create_accumulators(block, [p for p, _ in pairs])
        self._appended = _StepPairs(pairs, options)
        for pair in pairs:
            self._append_optimize_op(block, pair)
        self._finish_update(block, pairs)
        del self._appended
        return []

    def _append_optimize_op(self, block: Any, param_and_grad: Pair) -> None:
        """The rule's own update of one parameter, for subclasses that do more."""
        step = self._appended
        if step.shared is None:
            step.shared = self._step_values(step.pairs, step.options)
        self._update_one(*param_and_grad, step.options, step.shared)

    def _finish_update(self, block: Any, parameters_and_grads: Sequence[Pair]) -> None:
        """Called after the last update of a step."""

    # ---- anything else

    def _set_auxiliary_var(self, key: str, val: Any) -> None:
        """Keep a value under ``key`` for the update."""
        self.__dict__.setdefault("_auxiliary_vars", {})[key] = val

    def _get_auxiliary_var(self, key: str) -> Any:
        """What :meth:`_set_auxiliary_var` has kept, or None."""
        return self.__dict__.get("_auxiliary_vars", {}).get(key)


class _StepPairs:
    """The pairs of a step with the settings of their group, and what its updates share, once the first asks."""

    __slots__ = ("options", "pairs", "shared")

    def __init__(self, pairs: list[Pair], options: Mapping[str, Any]) -> None:
        self.pairs, self.options = pairs, options
        self.shared: Any = None


def _split(params_grads: Any) -> tuple[list[Pair], dict[str, Any]]:
    """Pairs, and the settings of their group where these came with them."""
    if not isinstance(params_grads, Mapping):
        return list(params_grads), {}
    return list(params_grads["params"]), {name: value for name, value in params_grads.items() if name != "params"}
