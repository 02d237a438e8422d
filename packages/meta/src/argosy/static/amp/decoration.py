"""Optimizers of static programs that scale the loss, and leave out steps whose gradients overflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.amp.captured_scaling import ScaleState, any_overflow
from argosy.jit.conversion.runtime import choose
from argosy.optimizer.optimizer import Optimizer
from argosy.static.amp.lists import AutoMixedPrecisionLists
from argosy_phi_ops.eager.dispatch import suspend_layers
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["OptimizerWithMixedPrecision", "decorate"]

Pairs = Sequence[tuple[Tensor, Tensor]]


class OptimizerWithMixedPrecision:
    """An optimizer whose ``minimize`` differentiates the scaled loss, divides the gradients by the scale, updates
    unless one is infinite or NaN, and adapts the scale; made by :func:`decorate`. Else it is the optimizer.
    """

    def __init__(
        self, optimizer: Optimizer, init: float, dynamic: bool, ratios: tuple[float, float], every: tuple[int, int]
    ) -> None:
        self._optimizer = optimizer
        self._init, self._dynamic, self._ratios, self._every = float(init), dynamic, ratios, every
        self._state: ScaleState | None = None
        self._scaled_loss: Tensor | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    @property
    def _scales(self) -> bool:
        return self._dynamic or self._init != 1.0

    def get_loss_scaling(self) -> Tensor:
        """The scale now, 0-D float32. Raises RuntimeError before :meth:`minimize`."""
        if self._state is None:
            raise RuntimeError("Please call minimize() before calling get_loss_scaling().")
        return self._state.scale

    def get_scaled_loss(self) -> Tensor | None:
        """The loss that was differentiated; None before :meth:`minimize`."""
        return self._scaled_loss

    def backward(
        self,
        loss: Tensor,
        startup_program: Any = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
        callbacks: Any = None,
    ) -> Pairs:
        """Pairs of parameters and gradients of the scaled loss, for :meth:`apply_gradients`."""
        if loss.dtype.name != "float32":
            loss = loss.astype("float32")
        with suspend_layers():
            self._state = ScaleState(self._init, 0, 0)
        scale: Any = self._state.scale
        self._scaled_loss = scaled = scale * loss if self._scales else loss
        return self._optimizer.backward(scaled, startup_program, parameter_list, no_grad_set, callbacks)

    def apply_gradients(self, params_grads: Pairs) -> None:
        """Record the update with these scaled gradients, for when none of them overflows. Raises RuntimeError before
        :meth:`backward`."""
        state = self._state
        if state is None:
            raise RuntimeError("apply_gradients() takes what backward() gave")
        if not self._scales:
            self._optimizer.apply_gradients(params_grads)
            return
        inverse: Any = state.scale.reciprocal()
        pairs = [(p, g * inverse.astype(g.dtype)) for p, g in params_grads]
        overflow = any_overflow([g for _, g in pairs])
        if overflow is None:
            return
        choose(overflow.logical_not(), lambda: self._optimizer.apply_gradients(pairs), lambda: None)
        if self._dynamic:
            state.adapt(overflow, *self._ratios, *self._every)

    def apply_optimize(self, loss: Tensor, startup_program: Any, params_grads: Pairs) -> None:
        """:meth:`apply_gradients`."""
        self.apply_gradients(params_grads)

    def minimize(
        self, loss: Tensor, startup_program: Any = None, parameter_list: Any = None, no_grad_set: Any = None
    ) -> tuple[list[Any], Pairs]:
        """:meth:`backward` and :meth:`apply_gradients`: ([], pairs of parameters and scaled gradients)."""
        pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
        self.apply_gradients(pairs)
        return [], pairs

    def amp_init(
        self,
        place: Any,
        scope: Any = None,
        test_program: Any = None,
        use_fp16_test: bool = False,
        rewrite_master_weight: bool = False,
    ) -> None:
        """Nothing to do: parameters stay float32, and are their own master weights."""


def decorate(
    optimizer: Optimizer,
    amp_lists: AutoMixedPrecisionLists | None = None,
    level: str = "O1",
    dtype: object = "float16",
    master_weight: bool | None = None,
    master_grad: bool = False,
    init_loss_scaling: float = 2**16,
    incr_every_n_steps: int = 2000,
    decr_every_n_nan_or_inf: int = 1,
    incr_ratio: float = 2.0,
    decr_ratio: float = 0.5,
    use_dynamic_loss_scaling: bool | None = None,
    use_amp_guard: bool = False,
    use_promote: bool = False,
    use_pure_fp16: bool | None = None,
    use_fp16_guard: bool | None = None,
    use_bf16: bool | None = None,
) -> OptimizerWithMixedPrecision:
    """An optimizer with scaled losses (by default for float16 alone), for static programs.

    What operators compute in is decided when they are recorded, by ``amp.auto_cast`` (whose lists those of
    ``amp_lists`` can be): ``decorate`` comes after them and changes none, as in Paddle 3's programs. Parameters stay
    float32, so that master_weight and master_grad are always so. Raises ValueError for other levels than O0, OD, O1, O2
    and other dtypes than float16 and bfloat16.
    """
    if (level := level.upper()) not in ("O0", "OD", "O1", "O2"):
        raise ValueError(f"static.amp.decorate(): level should be O0, OD, O1 or O2, got {level!r}")
    half = "bfloat16" if use_bf16 else as_dtype(dtype).name
    if half not in ("float16", "bfloat16"):
        raise ValueError(f"static.amp.decorate(dtype={half!r}): expected 'float16' or 'bfloat16'")
    narrow = half == "float16" and level != "O0"
    dynamic = narrow and use_dynamic_loss_scaling is not False
    ratios, every = (incr_ratio, decr_ratio), (incr_every_n_steps, decr_every_n_nan_or_inf)
    return OptimizerWithMixedPrecision(optimizer, init_loss_scaling if narrow else 1.0, dynamic, ratios, every)
